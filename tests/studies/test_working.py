"""Is it working: every number on data whose answer is known."""

import numpy as np
import pytest

from dopl_core.learning import draws
from dopl_core.studies import believed, working
from dopl_core.studies.history import Move
from dopl_core.studies.working import Seen

UNKNOWN = -1


def weeks(seed: int, *, gain: float = 0.0, W: int = 30, N: int = 16, lots: int = 2) -> Seen:
    """Weeks of arms in two states: each its own chance to be in the better one, more with help.

    Half of the help goes to the badly off who are worst at recovering, the rest by lot.
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
    return Seen(*np.array(rows).transpose(1, 0, 2))


def test_better_off_is_a_better_state_or_still_the_best_one():
    states, after = np.array([0, 1, 2, 2, 1, UNKNOWN, 0]), np.array([1, 1, 2, 1, 0, 2, UNKNOWN])
    found = working.better(states, after, 3)
    assert found.tolist()[:5] == [1, 0, 1, 0, 0]
    assert np.isnan(found[5:]).all()


@pytest.mark.parametrize(("states", "half"), [(2, [0, 1]), (3, [0, 0, 1]), (4, [0, 0, 1, 1])])
def test_the_better_half_is_above_the_middle(states, half):
    assert working.better_half(states).tolist() == half


def test_weeks_are_those_reported_with_who_was_helped_listed_and_drawn():
    def states(*numbers):
        return np.array(numbers)

    moves = [
        Move(1, 0, states(0, 1), states(0), states(1, UNKNOWN), "owner", by_lot=states(0)),
        Move(2, 0, states(1, 0, 1), states(1), states(1, 1, 0), "owner", helped=states(2)),
        Move(3, 0, states(1, 1, 0), states(0), None, None),
    ]
    found = working.seen(moves, 3)
    assert found.helped.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert found.listed.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert found.by_lot.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert working.course(found, 2).tolist() == [[[0, 0], [0, 1]], [[0, 2], [1, 0]]]


def test_everybody_is_compared_with_themselves_so_who_is_helped_makes_no_effect():
    found = np.array([working.with_themselves(weeks(seed), 2)[2:5] for seed in range(150)])
    assert abs(found[:, 0].mean()) < 0.03
    held = (found[:, 1] < 0) & (found[:, 2] > 0)
    assert 0.85 <= held.mean() <= 0.97


def test_a_gain_is_found_in_each_state_with_its_interval():
    found = np.array([working.with_themselves(weeks(seed, gain=0.3), 2)[2:5] for seed in range(80)])
    assert found[:, 0].mean() == pytest.approx(0.3, abs=0.04)
    held = (found[:, 1] < 0.3) & (found[:, 2] > 0.3)
    assert 0.84 <= held.mean() <= 0.97


def test_where_nobody_was_seen_both_ways_nothing_is_said():
    states = np.zeros((4, 2), dtype=int)
    helped = np.tile([1, 0], (4, 1))  # always the one, never the other
    found = working.with_themselves(Seen(states, helped, states, helped, 0 * helped), 2)
    assert np.isnan(found.gain).all()
    assert found.weight.tolist() == [0, 0]


def test_lots_are_unbiased_and_their_interval_holds_with_and_without_an_effect():
    for gain in (0.0, 0.3):
        found = [working.by_lot(weeks(seed, gain=gain), 2).effect for seed in range(200)]
        assert np.mean([one.mean for one in found]) == pytest.approx(gain, abs=0.02)
        assert 0.85 <= np.mean([one.low <= gain <= one.high for one in found]) <= 0.95


def test_lots_that_are_not_there_or_too_few_say_nothing():
    seen = weeks(0)
    none = seen._replace(by_lot=0 * seen.by_lot)
    assert working.by_lot(none, 2).drawn == 0
    assert not working.by_lot(none, 2).effect.known
    one = seen._replace(by_lot=np.where(np.arange(30)[:, None] == 3, seen.by_lot, 0))
    assert working.by_lot(one, 2).drawn == 2


def test_lots_count_whether_help_reached_them_or_not():
    seen = weeks(0, gain=0.3)
    unreached = seen._replace(helped=np.where(seen.by_lot == 1, 0, seen.helped))
    assert working.by_lot(unreached, 2) == working.by_lot(seen, 2)


def test_gains_are_what_help_adds_to_the_chance_to_be_better_off():
    P = np.zeros((1, 2, 3, 2, 3))
    P[..., 0, :], P[..., 1, :] = [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]
    found = working.gains(P)
    assert np.allclose(found, [[[0.4, 0.4, 0.4]] * 2])
    visits = np.ones((2, 3, 2, 3), dtype=int)
    assert working.effect(found, visits).mean == pytest.approx(0.4)
    visits[:, 1:, 1] = 0  # nobody was helped in the other states
    assert working.effect(found * [1, 0, 0], visits).mean == pytest.approx(0.4)
    assert not working.effect(found, 0 * visits).known


def test_a_claim_needs_weeks_and_must_hold_even_for_who_doubts_it():
    sure, doubted = working.Estimate(0.2, 0.1, 0.3, 0.991), working.Estimate(0.1, 0, 0.3, 0.951)
    assert working.known_sign(sure, doubted, 8) == 1
    assert working.known_sign(sure, doubted, 7) == 0
    assert working.known_sign(sure._replace(sure=0.989), doubted, 26) == 0
    assert working.known_sign(sure, doubted._replace(sure=0.949), 26) == 0
    assert working.known_sign(working.NOTHING, doubted, 26) == 0


def test_harm_is_said_as_carefully_as_help():
    harm, doubted = working.Estimate(-0.2, -0.3, -0.1, 0.009), working.Estimate(-0.1, -0.3, 0, 0.04)
    assert working.known_sign(harm, doubted, 8) == -1
    assert working.known_sign(harm, doubted, 7) == 0
    assert working.known_sign(harm, doubted._replace(sure=0.3), 26) == 0


def test_the_list_over_lots_compares_where_help_was_sent():
    gains = np.array([[[0.5, 0.0], [0.1, 0.0]], [[0.7, 0.0], [0.1, 0.0]]])  # [d, n, s]
    zeros = np.zeros((3, 2), dtype=int)
    listed = np.ones((3, 2), dtype=int)
    by_lot = np.tile([0, 1], (3, 1))
    found = working.list_over_lots(gains, Seen(zeros, listed, zeros, listed, by_lot))
    assert found.mean == pytest.approx(0.5)
    assert not working.list_over_lots(gains, Seen(zeros, listed, zeros, listed, zeros)).known


# --- the weeks to come


def two_kinds(help_first: float, help_second: float) -> np.ndarray:
    """Four arms that fall to state 0 unless helped: two are raised by help, two otherwise."""
    P = np.zeros((1, 4, 2, 2, 2))
    P[..., 0, :] = [1.0, 0.0]
    for arms, chance in ((slice(0, 2), help_first), (slice(2, 4), help_second)):
        P[:, arms, :, 1] = [1 - chance, chance]
    return P


def test_the_list_is_worth_what_it_does_and_chance_by_the_same_truth():
    P, half = two_kinds(1.0, 0.0), np.tile([0.0, 1.0], (4, 1))
    priority = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    states, rng = np.zeros(4, dtype=int), np.random.default_rng(0)
    had = believed.ahead(P, half, priority, states, 2, rng, times=200)[0]
    assert had.tolist() == pytest.approx([2.0, 1.0, 0.0], abs=0.03)
    found = believed.worth(np.tile(had, (5, 1)))
    assert found.over_chance.mean == pytest.approx(1.0, abs=0.03)


def test_where_help_does_nothing_the_list_is_worth_exactly_what_chance_is():
    P, half = two_kinds(0.0, 0.0), np.tile([0.0, 1.0], (4, 1))
    rng = np.random.default_rng(0)
    had = believed.ahead(P, half, np.eye(4)[:, :2], np.zeros(4, dtype=int), 2, rng)
    assert had.tolist() == [[0.0, 0.0, 0.0]]


def lucky_list(seed: int, idle: float) -> float:
    """What a list of those whom help seemed to do most for gains where it does nothing."""
    rng, N = np.random.default_rng(seed), 10
    visits = rng.multinomial(6, [0.6, 0.4], (N, 2, 2))
    seemed = working.gains(draws.moves(visits, None, 50, rng)).mean(axis=0)
    truths, half = draws.moves(visits, None, 100, rng, idle), np.tile([0.0, 1.0], (N, 1))
    states = np.zeros(N, dtype=int)
    had = believed.ahead(truths, half, 100 * seemed, states, 3, rng, times=5)
    return believed.worth(had).over_chance.mean


def test_what_luck_has_made_a_list_seem_worth_is_doubted():
    gained = [[lucky_list(seed, idle) for idle in (believed.IDLE, 0.0)] for seed in range(6)]
    doubting, believing = np.mean(gained, axis=0)
    assert believing > 0.1
    assert doubting < 0.75 * believing


def test_who_belongs_by_all_draws_is_not_taken_for_sure():
    found = np.zeros((99, 4), dtype=bool)
    found[:, 0], found[:49, 1], found[:89, 2] = True, True, True
    chance = believed.chance(found)
    assert chance.tolist() == pytest.approx([0.934, 0.4975, 0.745, 0.066], abs=0.002)
    assert believed.how_many(chance).mean == pytest.approx(2.242, abs=0.005)


def test_how_many_belong_has_an_interval_within_what_there_is():
    found = believed.how_many(np.full(100, 0.5))
    assert found[:3] == pytest.approx((50, 41.8, 58.2), abs=0.1)
    few = believed.how_many(np.array([0.9, 0.9]))
    assert few.high == 2
    assert believed.how_many(np.array([0.1])).low == 0


def test_those_belong_on_the_list_whom_the_truth_would_help():
    P = np.concatenate([two_kinds(0.9, 0.1), two_kinds(0.9, 0.1), two_kinds(0.1, 0.9)])
    strengths = np.tile([0.0, 1.0], (3, 4, 1))
    found = believed.belonging(P, strengths, np.zeros(4, dtype=int), 2)
    assert found.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]


def test_what_answers_may_change_is_what_they_would_teach():
    V, pairs = np.diag([4.0, 1.0, 1.0]), np.array([[0, 1]])
    F = believed.learnt_from(V, pairs, np.zeros(3))
    x = np.array([1.0, -1.0, 0.0])
    lost = np.outer(V @ x, V @ x) / (4 + x @ V @ x)  # a duel between equals tells 1/4
    assert np.allclose(F @ F.T, lost)
