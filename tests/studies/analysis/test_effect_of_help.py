"""The effect of help and the forecast, on data with a known answer."""

import numpy as np
import pytest

from dopl_core.learning import draws
from dopl_core.studies.analysis import effect_of_help, forecast
from dopl_core.studies.analysis.effect_of_help import ReportedWeeks
from dopl_core.studies.model.log_values import Epoch

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


def test_better_off_is_a_better_state_or_still_the_best_one():
    states, after = np.array([0, 1, 2, 2, 1, UNKNOWN, 0]), np.array([1, 1, 2, 1, 0, 2, UNKNOWN])
    found = effect_of_help.better_off(states, after, 3)
    assert found.tolist()[:5] == [1, 0, 1, 0, 0]
    assert np.isnan(found[5:]).all()


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
    found = effect_of_help.reported_weeks(moves, 3)
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
    drawn = draws.moves(visits, None, 100, rng, forecast.NO_EFFECT_PRIOR)
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


def test_the_effect_within_people_and_weeks_is_that_of_least_squares():
    seen = season(3)
    y = effect_of_help.better_off(seen.states, seen.next_states, 2).ravel()
    week, arm = (i.ravel() for i in np.indices(seen.states.shape))
    state = seen.states.ravel()
    dummies = [
        np.eye(kinds)[of] * (state == s)[:, None]
        for s in (0, 1)
        for of, kinds in ((week, 26), (arm, 20))
    ]
    X = np.column_stack([seen.helped.ravel(), *dummies])
    assert within(seen).mean == pytest.approx(np.linalg.lstsq(X, y)[0][0])


def test_a_state_without_arms_seen_both_ways_has_no_estimate():
    states = np.zeros((4, 2), dtype=int)
    helped = np.tile([1, 0], (4, 1))  # one arm always helped, the other never
    seen = ReportedWeeks(states, helped, states, helped, 0 * helped)
    found = effect_of_help.effect_within(seen, 2)
    assert not found.overall.known
    assert not any(one.known for one in found.by_state)


def test_the_effect_by_state_weighs_arms_by_their_visits_helped_or_not():
    visits = np.zeros((2, 2, 2, 2), dtype=int)
    visits[0, 0, 0, 1], visits[0, 0, 1, 0], visits[1, 0, 1, 1] = 1, 2, 9
    gains = np.tile([[0.0], [0.4]], (10, 1, 2))
    worse, better = effect_of_help.effect_by_state(gains, visits)
    assert worse.known == (11, 9, 1, 1)
    assert worse.estimate.mean == pytest.approx(0.4 * 9 / 12)
    assert not better.estimate.known


def test_a_state_that_was_not_seen_both_ways_has_counts_and_no_estimate():
    visits = np.zeros((2, 2, 2, 2), dtype=int)
    visits[:, 0, 1, 1] = 4  # from the worse state, with help, to the better one
    gains = np.full((10, 2, 2), 0.5)
    worse, better = effect_of_help.effect_by_state(gains, visits)
    assert worse.known == (8, 8, 0, 0)
    assert better.known == (0, 0, 0, 0)
    assert not worse.estimate.known
    assert not better.estimate.known


def test_the_effect_by_lot_is_unbiased_and_its_interval_covers_the_truth():
    for gain in (0.0, 0.3):
        found = [
            effect_of_help.effect_by_lot(weeks(seed, gain=gain), 2).effect for seed in range(200)
        ]
        assert np.mean([one.mean for one in found]) == pytest.approx(gain, abs=0.02)
        assert 0.85 <= np.mean([one.low <= gain <= one.high for one in found]) <= 0.95


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
        effect_of_help.Estimate(0.2, 0.1, 0.3, 0.971),
        effect_of_help.Estimate(0.1, 0, 0.3, 0.901),
    )
    assert effect_of_help.proven_sign(sure, sceptical, 8) == 1
    assert effect_of_help.proven_sign(sure, sceptical, 7) == 0
    assert effect_of_help.proven_sign(sure._replace(probability=0.969), sceptical, 26) == 0
    assert effect_of_help.proven_sign(sure, sceptical._replace(probability=0.899), 26) == 0
    assert effect_of_help.proven_sign(effect_of_help.UNKNOWN_ESTIMATE, sceptical, 26) == 0


def test_a_claim_of_harm_needs_the_same_proof_as_a_claim_of_help():
    harm, sceptical = (
        effect_of_help.Estimate(-0.2, -0.3, -0.1, 0.009),
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


# --- the forecast


def two_kinds(help_first: float, help_second: float) -> np.ndarray:
    """Four arms that fall to state 0 unless help raises them: two with each chance."""
    P = np.zeros((1, 4, 2, 2, 2))
    P[..., 0, :] = [1.0, 0.0]
    for arms, chance in ((slice(0, 2), help_first), (slice(2, 4), help_second)):
        P[:, arms, :, 1] = [1 - chance, chance]
    return P


def test_the_forecast_compares_the_list_with_help_at_random_and_worst_first():
    P, half = two_kinds(1.0, 0.0), np.tile([0.0, 1.0], (4, 1))
    priority = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    states, rng = np.zeros(4, dtype=int), np.random.default_rng(0)
    ways = forecast.policies(priority)
    pay = forecast.simulate_weeks(P, half, ways, states, 2, rng, times=200)[0]
    assert pay.tolist() == pytest.approx([2.0, 14 / 19, 1.0, 0.0], abs=0.03)
    found = forecast.summarise_weeks(np.tile(pay, (5, 1)))
    assert found.over_random.mean == pytest.approx(1.0, abs=0.03)
    assert found.over_worst_first.mean == pytest.approx(24 / 19, abs=0.03)


def test_the_list_gains_nothing_if_help_has_no_effect():
    P, half = two_kinds(0.0, 0.0), np.tile([0.0, 1.0], (4, 1))
    rng = np.random.default_rng(0)
    ways = forecast.policies(np.eye(4)[:, :2])
    pay = forecast.simulate_weeks(P, half, ways, np.zeros(4, dtype=int), 2, rng)
    assert pay.tolist() == [[0.0, 0.0, 0.0, 0.0]]


def lucky_list(seed: int, idle: float) -> float:
    """The forecast gain of a list of the arms with the highest estimates, if help has no effect."""
    rng, N = np.random.default_rng(seed), 10
    visits = rng.multinomial(6, [0.6, 0.4], (N, 2, 2))
    estimated = effect_of_help.gains(draws.moves(visits, None, 50, rng)).mean(axis=0)
    drawn, half = draws.moves(visits, None, 100, rng, idle), np.tile([0.0, 1.0], (N, 1))
    states = np.zeros(N, dtype=int)
    ways = forecast.policies(100 * estimated)
    pay = forecast.simulate_weeks(drawn, half, ways, states, 3, rng, times=5)
    return forecast.summarise_weeks(pay).over_random.mean


def test_the_sceptical_prior_reduces_the_winners_curse():
    gained = [
        [lucky_list(seed, idle) for idle in (forecast.NO_EFFECT_PRIOR, 0.0)] for seed in range(6)
    ]
    sceptical, plain = np.mean(gained, axis=0)
    assert plain > 0.1
    assert sceptical < 0.75 * plain


def test_agreement_of_all_draws_is_not_certainty():
    found = np.zeros((99, 4), dtype=bool)
    found[:, 0], found[:49, 1], found[:89, 2] = True, True, True
    probability = forecast.belonging_probability(found)
    assert probability.tolist() == pytest.approx([0.934, 0.4975, 0.745, 0.066], abs=0.002)
    assert forecast.expected_count(probability).mean == pytest.approx(2.242, abs=0.005)


def test_the_interval_of_an_expected_count_stays_within_its_bounds():
    found = forecast.expected_count(np.full(100, 0.5))
    assert found[:3] == pytest.approx((50, 41.8, 58.2), abs=0.1)
    few = forecast.expected_count(np.array([0.9, 0.9]))
    assert few.high == 2
    assert forecast.expected_count(np.array([0.1])).low == 0


def test_best_lists_are_optimal_for_each_draw():
    P = np.concatenate([two_kinds(0.9, 0.1), two_kinds(0.9, 0.1), two_kinds(0.1, 0.9)])
    strengths = np.tile([0.0, 1.0], (3, 4, 1))
    found = forecast.best_lists(P, strengths, np.zeros(4, dtype=int), 2)
    assert found.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]


def test_the_mean_shift_has_the_variance_that_answers_remove():
    V, pairs = np.diag([4.0, 1.0, 1.0]), np.array([[0, 1]])
    F = forecast.mean_shift_factor(V, pairs, np.zeros(3))
    x = np.array([1.0, -1.0, 0.0])
    removed = np.outer(V @ x, V @ x) / (4 + x @ V @ x)  # a duel of equals has information 1/4
    assert np.allclose(F @ F.T, removed)
