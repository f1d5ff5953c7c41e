"""Whom to trust: random clickers weigh little, honest people as much as ever."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from dopl_core.learning import annotators, preferences
from dopl_core.learning.counts import Counts
from dopl_core.learning.dopl import Dopl

TRUTH = np.tile([0.0, 1.2, 2.5], 8)


def crowd(count: int, people: int, random: int, seed: int = 0) -> Counts:
    """Answers of people of whom the first click at random."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, len(TRUTH), (count, 2))
    pairs = pairs[pairs[:, 0] // 3 != pairs[:, 1] // 3]
    who = rng.integers(0, people, len(pairs))
    chance = np.where(who < random, 0.5, expit(TRUTH[pairs[:, 0]] - TRUTH[pairs[:, 1]]))
    left = rng.random(len(pairs)) < chance
    counts = Counts(len(TRUTH))
    counts.add(np.where(left, *pairs.T), np.where(left, *pairs.T[::-1]), 1.0, who)
    return counts


def without(counts: Counts, random: int) -> Counts:
    """The answers of the others."""
    winner, loser, who, times = counts.table()
    honest = Counts(counts.size)
    some = who >= random
    honest.add(winner[some], loser[some], times[some], who[some])
    return honest


def loss(belief: preferences.Preferences) -> float:
    """How much worse than the truth the beliefs predict answers."""
    true, said = (expit(t[:, None] - t) for t in (TRUTH, belief.mean.ravel()))
    return float((true * np.log(true / said) + (1 - true) * np.log((1 - true) / (1 - said))).mean())


def fit_of(counts: Counts):
    return lambda k: preferences.calibrated(counts, 3, None, ordered=True, sureness=k)


def test_those_who_click_at_random_weigh_little_and_cost_less_than_a_third():
    lost = []
    for seed in range(8):
        counts = crowd(500, 10, 3, seed)
        honest = without(counts, 3)
        belief, k = annotators.weighed(counts, fit_of(counts))
        assert k[:3].mean() < 0.6
        assert k[:3].max() < np.median(k[3:])
        least = loss(fit_of(honest)(None))
        lost.append((loss(fit_of(counts)(None)) - least, loss(belief) - least))
    plain, weighed = np.mean(lost, axis=0)
    assert weighed < plain / 3


def test_among_honest_people_nothing_is_lost():
    lost = []
    for seed in range(4):
        counts = crowd(500, 10, 0, seed)
        lost.append(
            loss(annotators.weighed(counts, fit_of(counts))[0]) - loss(fit_of(counts)(None))
        )
    assert np.mean(lost) < 0.002


def habits(counts: Counts, random: int, seed: int) -> None:
    """One answer in five asked again; those who click at random are fast."""
    rng = np.random.default_rng(seed)
    winner, loser, who, times = counts.table()
    careless = who < random
    counts.habits["fast"].add(winner[careless], loser[careless], times[careless], who[careless])
    asked = rng.random(len(who)) < 0.2
    chance = np.where(careless, 0.5, expit(TRUTH[winner] - TRUTH[loser]))
    same = rng.random(len(who)) < chance
    won, lost = np.where(same, winner, loser), np.where(same, loser, winner)
    counts.habits["repeats"].add(won[asked], lost[asked], 1.0, who[asked])


def test_fast_and_inconsistent_people_weigh_less_and_honest_people_lose_nothing():
    weights = []
    for seed in range(4):
        found = []
        for told in (False, True):
            counts = crowd(120, 3, 1, seed)
            if told:
                habits(counts, 1, seed)
            found.append(annotators.weighed(counts, fit_of(counts))[1])
        weights.append(found)
    before, after = np.mean(weights, axis=0)
    assert after[0] < 0.7 * before[0]
    assert (after[1:] > 0.97 * before[1:]).all()


def test_contradictions_of_oneself_lower_the_weight_and_repeats_that_agree_do_not():
    counts = crowd(300, 3, 0)
    winner, loser, who, times = counts.table()
    own = who == 0
    belief = fit_of(counts)(None)
    before = annotators.of_people(counts, belief)
    agreeing, contrary = Counts(counts.size), Counts(counts.size)
    for one, sides in ((agreeing, (winner, loser)), (contrary, (loser, winner))):
        one.add(winner, loser, times, who)
        one.habits["repeats"].add(*(side[own] for side in sides), 1.0, who[own])
    assert annotators.of_people(agreeing, belief)[0] >= before[0]
    assert annotators.of_people(contrary, belief)[0] < 0.5 * before[0]


def test_one_person_is_what_all_answers_are_to_the_bit():
    counts = crowd(200, 1, 0)
    belief, k = annotators.weighed(counts, fit_of(counts))
    assert np.array_equal(belief.mean, fit_of(counts)(None).mean)
    assert k.tolist() == [1.0]
    assert (
        len(annotators.weighed(Counts(6), lambda k: preferences.calibrated(Counts(6), 3, None))[1])
        == 0
    )


def test_the_middle_person_has_the_scale():
    counts = crowd(500, 5, 0)
    assert np.median(annotators.weighed(counts, fit_of(counts))[1]) == 1.0


def test_a_learner_weighs_people_unless_told_not_to():
    counts = crowd(400, 4, 1)
    winner, loser, who, times = counts.table()
    duels = np.stack([winner // 3, winner % 3, loser // 3, loser % 3], axis=1)
    found = {}
    for weigh in (True, False):
        learner = Dopl(8, 3, 2, horizon=1, ordered=True)
        learner.adapt(np.ones(8, dtype=bool), 2, weigh_annotators=weigh)
        learner.count_duels(duels, np.ones(len(duels)), times, who)
        learner.replan()
        found[weigh] = learner
    assert found[True].sureness()[0] < 0.7
    assert not np.array_equal(found[True].preferences.mean, found[False].preferences.mean)


def week(rng: np.random.Generator, odd: str, arms: int = 12, people: int = 3):
    """30 answers of people who never err: winners, losers, who; the last, or half, may be odd."""
    two = rng.permuted(np.tile(np.arange(arms), (30, 1)), axis=1)[:, :2]
    states, who = rng.integers(3, size=(30, 2)), np.arange(30) % people
    left = states[:, 0] + 0.5 * rng.integers(2, size=30) > states[:, 1]
    if odd:
        other = who >= people // 2 if odd == "halves" else who == people - 1
        left = np.where(other, True if odd == "left" else ~left, left)
    codes = np.where(left[:, None], two * 3 + states, (two * 3 + states)[:, ::-1])
    return *codes.T, who


def after(weeks: int, odd: str, **crowd: int) -> tuple[preferences.Preferences, np.ndarray]:
    """Strengths and sureness that were learnt every week, each time from those of the last."""
    rng, counts, warm = np.random.default_rng(0), Counts(3 * crowd.get("arms", 12)), None
    for _ in range(weeks):
        winner, loser, who = week(rng, odd, **crowd)
        counts.add(winner, loser, 1.0, who)
        fit = partial(_fit, counts, warm)
        belief, k = annotators.weighed(counts, fit)
        warm = belief.warm
        assert np.abs(belief.mean).max() < 20
        assert (np.diff(belief.mean.mean(axis=0)) > 0).all()
    return belief, k


def _fit(counts, warm, k):
    return preferences.calibrated(counts, 3, None, warm, ordered=True, sureness=k)


def test_one_who_always_says_left_among_people_who_never_err_is_found_out_for_good():
    learner = Dopl(12, 3, 3, horizon=1, ordered=True)
    rng = np.random.default_rng(0)
    for _ in range(15):
        winner, loser, who = week(rng, "left")
        duels = np.stack([winner // 3, winner % 3, loser // 3, loser % 3], axis=1)
        learner.count_duels(duels, np.ones(30), who=who)
        learner.replan()
        strengths = learner.preferences.mean
        assert np.abs(strengths).max() < 10
        assert (np.diff(strengths.mean(axis=0)) > 0).all()
    k = learner.sureness()
    assert k[:2].min() > 0.5
    assert k[2] < 0.3


def test_one_who_says_the_contrary_of_all_others_weighs_nothing():
    assert after(12, "contrary")[1][2] < 0.1


def test_of_two_halves_that_contradict_each_other_one_is_believed():
    k = after(12, "halves", people=4)[1]
    assert k[:2].min() > 10 * k[2:].max()


@pytest.mark.long
@pytest.mark.parametrize("people", [1, 3])
def test_strengths_stay_bounded_where_nobody_errs_for_200_weeks(people):
    belief, k = after(200, "", arms=4, people=people)
    assert k == pytest.approx(1, abs=0.2)
    assert np.abs(belief.mean).max() < 12


def test_without_its_own_answer_a_gap_is_smaller_and_less_certain():
    counts = Counts(6)
    counts.add(np.array([0]), np.array([5]))
    belief = preferences.calibrated(counts, 1, None)
    gap, variance = annotators.without_the_answer(counts.table(), belief, np.ones(1))
    before = belief.mean.ravel()[0] - belief.mean.ravel()[5]
    assert before > 0.2
    assert gap[0] < 0.6 * before
    assert variance[0] > (belief.sd.ravel()[[0, 5]] ** 2).sum()


def test_the_spread_of_sureness_is_learnt():
    """Log likelihoods of 20 annotators: the surer are trusted more where they surely differ."""
    log_k = np.log(annotators.GRID)
    seen = np.tile([0.7, -0.7], 10)[:, None]
    unlike = annotators.expected(-0.5 * ((log_k - seen) / 0.2) ** 2)
    vague = annotators.expected(-0.5 * ((log_k - seen) / 2.0) ** 2)
    assert unlike[0] / unlike[1] > 2.5
    assert vague[0] / vague[1] < 1.2
