"""Whom to trust: random clickers weigh little, honest people as much as ever."""

import numpy as np
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
        learner.weigh_people = weigh
        learner.count_duels(duels, np.ones(len(duels)), times, who)
        learner.replan()
        found[weigh] = learner
    assert found[True].sureness()[0] < 0.7
    assert not np.array_equal(found[True].preferences.mean, found[False].preferences.mean)
