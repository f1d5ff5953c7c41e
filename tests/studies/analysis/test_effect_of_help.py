"""The effect of help, on data with a known answer."""

import numpy as np
import pytest
from scipy.special import ndtri

from dopl_core.learning.bandit import actions
from dopl_core.learning.moves import model
from dopl_core.learning.places.lots import exchange
from dopl_core.learning.places.reported_weeks import ReportedWeeks, better_off
from dopl_core.studies.analysis import effect_of_help, forecast
from dopl_core.studies.analysis.effect_of_help import Slope
from dopl_core.studies.model.log_values import Epoch, reported_weeks
from dopl_core.studies.operate.known_effects import KnownEffect

UNKNOWN = -1


def weeks(
    seed: int, *, gain: float = 0.0, W: int = 30, N: int = 16, lots: int = 2
) -> ReportedWeeks:
    """Weeks of arms with two states; each arm has its own chance of the better one, plus `gain`.

    Three helped arms are those in the worse state with the lowest chances, the others by lot.
    """
    rng = np.random.default_rng(seed)
    own = rng.uniform(0.1, 0.6, N)
    states = rng.integers(0, 2, N)
    rows = []
    for _ in range(W):
        chosen = np.lexsort((own, states))[:3]
        drawn = rng.choice(np.setdiff1d(np.arange(N), chosen), lots, replace=False)
        helped, by_lot = np.zeros(N, dtype=int), np.zeros(N, dtype=int)
        helped[chosen] = helped[drawn] = by_lot[drawn] = 1
        after = (rng.random(N) < own + gain * helped).astype(int)
        rows.append((states, helped, after, helped, by_lot))
        states = after
    return ReportedWeeks(*np.array(rows).transpose(1, 0, 2))


@pytest.mark.parametrize(("states", "half"), [(2, [0, 1]), (3, [0, 0, 1]), (4, [0, 0, 1, 1])])
def test_the_better_half_is_above_the_middle(states, half):
    assert effect_of_help.better_half(states).tolist() == half


def test_reported_weeks_have_the_arms_helped_listed_and_drawn():
    def states(*numbers):
        return np.array(numbers)

    moves = [
        Epoch(1, 0, states(0, 1), states(0), states(1, UNKNOWN), "owner", by_lot=states(0)),
        Epoch(2, 0, states(1, 0, 1), states(1), states(1, 1, 0), "owner", helped=states(2)),
        Epoch(3, 0, states(1, 1, 0), states(0), None, None),
    ]
    found = reported_weeks(moves, 3)
    assert found.helped.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert found.listed.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert found.by_lot.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert effect_of_help.state_counts(found, 2).tolist() == [[[0, 0], [0, 1]], [[0, 2], [1, 0]]]


def within(seen: ReportedWeeks) -> effect_of_help.Estimate:
    return effect_of_help.effect_within(seen, 2).overall


def test_choosing_the_worst_off_does_not_bias_the_effect_within_people():
    found = [within(weeks(seed)) for seed in range(120)]
    assert abs(np.mean([one.mean for one in found])) < 0.03
    assert 0.85 <= np.mean([one.low < 0 < one.high for one in found]) <= 0.97


def test_the_interval_within_people_covers_a_true_gain():
    found = [within(weeks(seed, gain=0.3)) for seed in range(120)]
    assert np.mean([one.mean for one in found]) == pytest.approx(0.3, abs=0.04)
    assert 0.84 <= np.mean([one.low < 0.3 < one.high for one in found]) <= 0.97


def season(seed: int, gain: float = 0.0, W: int = 26, N: int = 20) -> ReportedWeeks:
    """Weeks in which everybody rises and falls together, and more help is given in good weeks."""
    rng = np.random.default_rng([seed, 8])
    own, states, rows = rng.uniform(0.1, 0.4, N), rng.integers(0, 2, N), []
    for week in range(W):
        wave = 0.4 * np.sin(2 * np.pi * week / 13)
        helped = (rng.random(N) < 0.5 + wave).astype(int)
        after = (rng.random(N) < own + 0.2 + wave / 2 + gain * helped).astype(int)
        rows.append((states, helped, after, helped, 0 * helped))
        states = after
    return ReportedWeeks(*np.array(rows).transpose(1, 0, 2))


def sceptical(seen: ReportedWeeks, seed: int) -> effect_of_help.Estimate:
    """The effect by all moves, whatever the week, under the sceptical prior."""
    visits = np.zeros((seen.states.shape[1], 2, 2, 2), dtype=np.int64)
    arms = np.broadcast_to(np.arange(len(visits)), seen.states.shape)
    np.add.at(visits, (arms, seen.states, seen.helped, seen.next_states), 1)
    rng = np.random.default_rng(seed)
    drawn = model.draw(visits, None, 100, rng, forecast.NO_EFFECT_PRIOR)
    return effect_of_help.overall_effect(effect_of_help.gains(drawn), visits)


def test_a_season_does_not_pass_for_an_effect_of_help():
    clinics = [season(seed) for seed in range(6)]
    by_moves = [sceptical(seen, seed) for seed, seen in enumerate(clinics)]
    assert sum(one.probability > 0.99 for one in by_moves) >= 3  # all moves alone would be wrong
    claims = [
        effect_of_help.proven_sign(within(seen), moves, 26)
        for seen, moves in zip(clinics, by_moves, strict=True)
    ]
    assert claims == [0] * 6
    helped = [season(seed, gain=0.25) for seed in range(6)]
    assert [
        effect_of_help.proven_sign(within(seen), sceptical(seen, seed), 26)
        for seed, seen in enumerate(helped)
    ] == [1] * 6


def test_the_effect_within_weeks_is_unbiased_in_a_season():
    assert abs(np.mean([within(season(seed)).mean for seed in range(20)])) < 0.03


def test_the_effect_within_people_and_weeks_is_that_of_least_squares_in_each_state():
    seen = season(3)
    y = better_off(seen.states, seen.next_states, 2)
    week, arm = np.indices(seen.states.shape)
    found = effect_of_help.effect_within(seen, 2).by_state
    for state, estimate in enumerate(found):
        here = seen.states == state
        X = np.column_stack([seen.helped[here], np.eye(26)[week[here]], np.eye(20)[arm[here]]])
        assert estimate.mean == pytest.approx(np.linalg.lstsq(X, y[here])[0][0])


def test_over_all_states_the_effect_in_standard_errors_is_the_sum_of_those_of_the_states():
    slopes = [Slope(0.4, 0.1, 20.0), Slope(0.1, 0.05, 80.0), effect_of_help.NO_SLOPE]
    found = effect_of_help.mean_of_states(slopes)
    assert found.effect == pytest.approx((0.4 / 0.1 + 0.1 / 0.05) / (1 / 0.1 + 1 / 0.05))
    assert found.effect / found.sd == pytest.approx((4 + 2) / np.sqrt(2))
    assert found.freedom == pytest.approx(4 / (1 / 20 + 1 / 80))
    assert np.isnan(effect_of_help.mean_of_states(slopes[2:]).effect)


def test_a_state_without_arms_seen_both_ways_has_no_estimate():
    states = np.zeros((4, 2), dtype=int)
    helped = np.tile([1, 0], (4, 1))  # one arm always helped, the other never
    seen = ReportedWeeks(states, helped, states, helped, 0 * helped)
    found = effect_of_help.effect_within(seen, 2)
    assert not found.overall.known
    assert not any(one.known for one in found.by_state)


def test_the_effect_by_state_weighs_arms_by_their_visits_helped_or_not():
    visits = np.zeros((2, 2, 2, 2), dtype=int)
    visits[0, 0, 0, 1], visits[0, 0, 1, 0], visits[1, 0, 1, 1] = 5, 2, 9
    gains = np.tile([[0.0], [0.4]], (10, 1, 2))
    worse, better = effect_of_help.effect_by_state(gains, visits)
    assert worse.known == KnownEffect(11, 9, 5, 5)
    assert worse.estimate.mean == pytest.approx(0.4 * 9 / 16)
    assert not better.estimate.known


def test_a_state_with_four_moves_without_help_has_counts_and_no_estimate():
    visits = np.zeros((1, 2, 2, 2), dtype=int)
    visits[0, 0, 0, 1], visits[0, 0, 1, 1] = 4, 20
    worse, _ = effect_of_help.effect_by_state(np.full((10, 1, 2), 0.5), visits)
    assert worse.known.seen_without == 4
    assert not worse.estimate.known


def test_a_state_that_was_not_seen_both_ways_has_counts_and_no_estimate():
    visits = np.zeros((2, 2, 2, 2), dtype=int)
    visits[:, 0, 1, 1] = 4  # from the worse state, with help, to the better one
    gains = np.full((10, 2, 2), 0.5)
    worse, better = effect_of_help.effect_by_state(gains, visits)
    assert worse.known == KnownEffect(8, 8, 0, 0)
    assert better.known == KnownEffect(0, 0, 0, 0)
    assert not worse.estimate.known
    assert not better.estimate.known


def test_the_effect_by_lot_is_unbiased_and_its_interval_covers_the_truth():
    for gain in (0.0, 0.3):
        found = [
            effect_of_help.effect_by_lot(weeks(seed, gain=gain), 2).effect for seed in range(200)
        ]
        assert np.mean([one.mean for one in found]) == pytest.approx(gain, abs=0.02)
        assert 0.85 <= np.mean([one.low <= gain <= one.high for one in found]) <= 0.95


def with_waiting(seed: int, gain: float, groups: np.ndarray | None = None) -> ReportedWeeks:
    """Weeks in which four arms of 16 are listed, nearly always the same; two of them wait by lot.

    groups: [n] the groups that places by lot stay in;  help does `gain` on the list, nothing off it
    """
    rng = np.random.default_rng(seed)
    own = np.linspace(0.1, 0.6, 16)
    rows, states = [], rng.integers(0, 2, 16)
    for _ in range(30):
        listed = np.lexsort((own, states))[:4]
        others = np.setdiff1d(np.arange(16), listed)
        waiting, drawn = exchange(listed, others, 2, rng, groups)
        arms = np.union1d(np.setdiff1d(listed, waiting), drawn)
        helped, by_lot = actions(arms, 16), actions(np.union1d(waiting, drawn), 16)
        chance = own + gain * helped * np.isin(np.arange(16), listed)
        after = (rng.random(16) < chance).astype(int)
        rows.append((states, helped, after, helped, by_lot))
        states = after
    return ReportedWeeks(*np.array(rows).transpose(1, 0, 2), groups=groups)


def test_arms_that_wait_by_lot_show_the_effect_on_arms_that_are_listed():
    for gain in (0.0, 0.4):
        found = [effect_of_help.effect_by_lot(with_waiting(seed, gain), 2) for seed in range(80)]
        assert all((one.drawn, one.waiting) == (120, 60) for one in found)
        # On the list two wait and two do not, off it two of twelve are drawn: weights of 1 and 5/3.
        truth = gain * 1 / (1 + 5 / 3)
        assert np.mean([one.effect.mean for one in found]) == pytest.approx(truth, abs=0.03)
        held = [one.effect.low <= truth <= one.effect.high for one in found]
        assert 0.8 <= np.mean(held) <= 0.98


def test_lots_that_stay_in_a_group_are_compared_within_it():
    groups = (np.arange(16) > 5).astype(int)  # those who do worst, and the others
    found = [effect_of_help.effect_by_lot(with_waiting(seed, 0.0, groups), 2) for seed in range(60)]
    assert np.mean([one.effect.mean for one in found]) == pytest.approx(0.0, abs=0.02)
    few = [effect_of_help.effect_by_lot(with_waiting(seed, 0.4, groups), 2) for seed in range(20)]
    assert np.mean([one.effect.mean for one in few]) > 0.1


def test_people_barred_by_rules_are_not_compared_with_those_drawn():
    rng = np.random.default_rng(1)
    shape = (40, 20)
    drawn = np.zeros(shape, dtype=int)
    barred = rng.random(shape) < 0.5  # helped lately, so better off than the others
    for week in range(40):
        drawn[week, rng.choice(np.flatnonzero(~barred[week]), 3, replace=False)] = 1
    after = np.where(barred, 1, rng.integers(0, 2, shape))
    states = 0 * drawn
    seen = ReportedWeeks(states, drawn, after, drawn, drawn)
    assert effect_of_help.effect_by_lot(seen, 2).effect.high < 0  # the wrong answer
    fair = effect_of_help.effect_by_lot(seen._replace(barred=barred), 2).effect
    assert fair.low < 0 < fair.high


def test_without_lots_there_is_no_effect_by_lot():
    seen = weeks(0)
    none = seen._replace(by_lot=0 * seen.by_lot)
    assert effect_of_help.effect_by_lot(none, 2).drawn == 0
    assert not effect_of_help.effect_by_lot(none, 2).effect.known
    one = seen._replace(by_lot=np.where(np.arange(30)[:, None] == 3, seen.by_lot, 0))
    assert effect_of_help.effect_by_lot(one, 2).drawn == 2


def test_drawn_arms_count_whether_help_reached_them_or_not():
    seen = weeks(0, gain=0.3)
    unreached = seen._replace(helped=np.where(seen.by_lot == 1, 0, seen.helped))
    assert effect_of_help.effect_by_lot(unreached, 2) == effect_of_help.effect_by_lot(seen, 2)


def test_gains_are_differences_of_the_probability_to_be_better_off():
    P = np.zeros((1, 2, 3, 2, 3))
    P[..., 0, :], P[..., 1, :] = [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]
    found = effect_of_help.gains(P)
    assert np.allclose(found, [[[0.4, 0.4, 0.4]] * 2])
    visits = np.ones((2, 3, 2, 3), dtype=int)
    assert effect_of_help.overall_effect(found, visits).mean == pytest.approx(0.4)
    visits[:, 1:, 1] = 0  # nobody was helped in the other states
    assert effect_of_help.overall_effect(found * [1, 0, 0], visits).mean == pytest.approx(0.4)
    assert not effect_of_help.overall_effect(found, 0 * visits).known


def test_a_claim_needs_eight_weeks_and_must_hold_under_the_sceptical_prior():
    sure, sceptical = (
        effect_of_help.Estimate(0.2, 0.1, 0.3, 0.9999),
        effect_of_help.Estimate(0.1, 0, 0.3, 0.901),
    )
    assert effect_of_help.proven_sign(sure, sceptical, 8) == 1
    assert effect_of_help.proven_sign(sure, sceptical, 7) == 0
    assert effect_of_help.proven_sign(sure, sceptical._replace(probability=0.899), 26) == 0
    assert effect_of_help.proven_sign(effect_of_help.UNKNOWN_ESTIMATE, sceptical, 26) == 0


def test_a_claim_needs_more_in_early_weeks():
    sceptical = effect_of_help.Estimate(0.1, 0, 0.3, 0.95)
    needed = [effect_of_help.claim_probability(weeks) for weeks in (8, 13, 20, 26, 40)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-2] == needed[-1] == pytest.approx(0.971, abs=0.001)
    for weeks, least in zip((8, 13, 20, 26), needed, strict=False):
        for sign in (1, -1):
            sure = [0.5 + sign * (least - 0.5 + more) for more in (1e-6, -1e-6)]
            some = sceptical._replace(probability=0.5 + sign * 0.45)
            found = [
                effect_of_help.proven_sign(sceptical._replace(probability=p), some, weeks)
                for p in sure
            ]
            assert found == [sign, 0]


def test_a_random_walk_is_claimed_to_be_an_effect_in_at_most_five_percent():
    rng = np.random.default_rng(0)
    walks = rng.standard_normal((20_000, 26)).cumsum(axis=1) / np.sqrt(np.arange(1, 27))
    weeks = range(effect_of_help.FIRST_CLAIM_WEEK, 27)
    needed = ndtri([effect_of_help.claim_probability(week) for week in weeks])
    assert 0.02 < (walks[:, 7:] >= needed).any(axis=1).mean() < 0.05


def test_a_claim_of_harm_needs_the_same_proof_as_a_claim_of_help():
    harm, sceptical = (
        effect_of_help.Estimate(-0.2, -0.3, -0.1, 0.0001),
        effect_of_help.Estimate(-0.1, -0.3, 0, 0.09),
    )
    assert effect_of_help.proven_sign(harm, sceptical, 8) == -1
    assert effect_of_help.proven_sign(harm, sceptical, 7) == 0
    assert effect_of_help.proven_sign(harm, sceptical._replace(probability=0.3), 26) == 0


def test_the_targeting_gain_compares_listed_places_with_places_by_lot():
    gains = np.array([[[0.5, 0.0], [0.1, 0.0]], [[0.7, 0.0], [0.1, 0.0]]])  # [d, n, s]
    zeros = np.zeros((3, 2), dtype=int)
    listed = np.ones((3, 2), dtype=int)
    by_lot = np.tile([0, 1], (3, 1))
    found = effect_of_help.targeting_gain(
        gains, ReportedWeeks(zeros, listed, zeros, listed, by_lot)
    )
    assert found.mean == pytest.approx(0.5)
    assert not effect_of_help.targeting_gain(
        gains, ReportedWeeks(zeros, listed, zeros, listed, zeros)
    ).known
