"""What changes with time: seasons against exact posteriors, and earlier help is counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.moves import weeks
from dopl_core.learning.moves.weeks import LeftOver, Recent

N, S, R = 40, 3, 6
Moves = tuple[IntArray, IntArray, IntArray]


def moved(rng: np.random.Generator, up: float, n_weeks: int) -> Moves:
    """States, 1 if helped, next states [w, n], where a share `up` goes to the best state."""
    states = rng.integers(S, size=(n_weeks, N))
    helped = rng.integers(2, size=(n_weeks, N))
    best = rng.random((n_weeks, N)) < up
    return states, helped, np.where(best, S - 1, rng.integers(S - 1, size=(n_weeks, N)))


def remembered(*moves: Moves) -> Recent:
    """The recent moves after these, each of several weeks."""
    recent = weeks.nothing_yet(N)
    for some in moves:
        recent = weeks.remembered(recent, *some)
    return recent


# --- what is remembered


def test_weeks_told_at_once_are_remembered_as_if_told_one_by_one_and_old_ones_are_forgotten() -> (
    None
):
    moves = moved(np.random.default_rng(2), 0.4, 3 + weeks.KEPT)
    at_once = remembered(moves)
    one_by_one = remembered(*zip(*moves, strict=True))
    assert at_once.shape == (weeks.KEPT, 3, N)
    assert (at_once == one_by_one).all()
    assert (at_once == np.stack(moves, axis=1)[3:]).all()


@pytest.mark.parametrize("ago", [0, 2, 4])
def test_a_corrected_week_is_remembered_as_if_it_had_been_told_right(ago: int) -> None:
    rng = np.random.default_rng(3)
    right, wrong = moved(rng, 0.4, 5), moved(rng, 0.9, 5)
    told, corrected = (Dopl(N, S, 4, horizon=1, ordered=True) for _ in range(2))
    for week in range(5):
        told.count_moves(*(part[week] for part in right))
        said = wrong if week == 4 - ago else right
        corrected.count_moves(*(part[week] for part in said))
    before, now = ([part[4 - ago] for part in one] for one in (wrong, right))
    corrected.revise_moves(ago, tuple(before), tuple(now))
    assert (corrected.recent == told.recent).all()
    assert (corrected.visits == told.visits).all()


def test_a_correction_of_a_forgotten_week_changes_nothing() -> None:
    recent = remembered(moved(np.random.default_rng(4), 0.4, 3))
    other = [part[0] for part in moved(np.random.default_rng(5), 0.9, 1)]
    assert (weeks.revised(recent, 3, *other) == recent).all()


def test_arms_that_join_have_made_no_moves() -> None:
    recent = remembered(moved(np.random.default_rng(6), 0.4, 2))
    more = weeks.remembered(recent, *np.zeros((3, N + 2), dtype=int))
    assert more.shape == (3, 3, N + 2)
    assert (more[:2, :, N:] == UNKNOWN).all()
    assert (more[:2, :, :N] == recent).all()
    left = weeks.left_over(more, np.full((N + 2, R, S), 1 / S))
    assert (left.week[left.person >= N] == 2).all()


def test_recent_moves_are_part_of_the_state_and_arms_may_join() -> None:
    rng = np.random.default_rng(4)
    own, again = (Dopl(N, S, 4, horizon=1, ordered=True) for _ in range(2))
    own.count_moves(*moved(rng, 0.5, 4))
    own.replan()
    again.restore(own.state())
    still = np.zeros(N + 2, dtype=int)
    for one in (own, again):
        one.adapt(np.ones(N + 2, dtype=bool), 4)
        one.count_moves(still, still, still)
        one.replan()
    assert (own.recent == again.recent).all()
    assert (own.known_dynamics().mean == again.known_dynamics().mean).all()
    assert "recent" not in own.plan_state()


def test_moves_of_states_without_an_order_are_not_remembered_by_week() -> None:
    learner = Dopl(N, S, 4, horizon=1)
    learner.count_moves(*moved(np.random.default_rng(1), 0.7, 3))
    assert not len(learner.recent)
    assert "recent" not in learner.state()


# --- what is left over


def test_left_over_is_how_much_further_up_each_move_went_than_its_row_says() -> None:
    recent = weeks.nothing_yet(2)
    recent = weeks.remembered(recent, *(np.array(x) for x in ([0, 1], [1, 0], [1, 1])))
    recent = weeks.remembered(recent, *(np.array(x) for x in ([1, UNKNOWN], [0, 0], [0, 1])))
    recent = weeks.remembered(recent, *(np.array(x) for x in ([1, 0], [0, 0], [UNKNOWN, 1])))
    up = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]])
    left = weeks.left_over(recent, np.stack([1 - up, up], axis=2))
    assert left.week.tolist() == [0, 0, 1, 2]
    assert left.person.tolist() == [0, 1, 0, 1]
    assert left.row.tolist() == [1, 2, 2, 0]
    p = np.array([0.2, 0.7, 0.3, 0.5])
    arrived = np.array([1, 1, 0, 1])
    assert left.further == pytest.approx(2 * (arrived - p))  # states are -1 and 1
    assert left.variance == pytest.approx(4 * p * (1 - p))


# --- seasons


def exact(spread: float, pull: FloatArray, variance: FloatArray) -> tuple[float, float]:
    """The log evidence, and the mean of the tilt of one row in the next week, by matrices."""
    at = np.arange(len(pull) + 1)
    prior = spread**2 * weeks.PERSISTENCE ** abs(at[:, None] - at)
    pull, precision = np.append(pull, 0), np.diag(np.append(variance, 0))
    posterior = np.linalg.inv(np.linalg.inv(prior) + precision)
    size = np.linalg.slogdet(np.eye(len(pull)) + prior @ precision)[1]
    return float(pull @ posterior @ pull - size) / 2, float((posterior @ pull)[-1])


@settings(max_examples=30, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 60))
def test_the_season_is_the_mean_of_the_exact_posterior_over_all_spreads(
    seed: int, n_weeks: int, n_moves: int
) -> None:
    rng = np.random.default_rng(seed)
    week, row = rng.integers(n_weeks, size=n_moves), rng.integers(2, size=n_moves)
    further, variance = rng.normal(0, 1.5, n_moves), rng.uniform(0.1, 1, n_moves)
    found = weeks.season(LeftOver(week, 0 * week, row, further, variance), n_weeks, 2)
    pull, known = np.zeros((2, n_weeks)), np.zeros((2, n_weeks))
    np.add.at(pull, (row, week), further)
    np.add.at(known, (row, week), variance)
    by_spread = [
        [exact(max(spread, 1e-6), pull[r], known[r]) for r in range(2)] for spread in weeks.SPREADS
    ]
    log, tilt = np.array(by_spread).transpose(2, 0, 1)
    weight = weeks.LIKELY * np.exp(log.sum(axis=1) - log.sum(axis=1).max())
    assert found == pytest.approx(weight @ tilt / weight.sum(), abs=1e-6)


def test_chance_is_rarely_taken_for_a_season() -> None:
    found = {}
    for later in (0.4, 0.7):
        rng = np.random.default_rng(7)
        recent = remembered(moved(rng, 0.4, 15), moved(rng, later, 15))
        mean = (0.4 + later) / 2
        row = np.array([(1 - mean) / 2, (1 - mean) / 2, mean])
        left = weeks.left_over(recent, np.broadcast_to(row, (N, R, S)))
        found[later] = weeks.season(left, len(recent), R)
    assert abs(found[0.4]).max() < 0.05 < found[0.7].min()


def test_without_moves_there_is_no_season() -> None:
    left = weeks.left_over(np.full((4, 3, N), UNKNOWN, dtype=np.int16), np.full((N, R, S), 1 / S))
    assert weeks.season(left, 4, R) == pytest.approx(0)


# --- help in weeks before


def test_past_help_is_counted_over_the_weeks_before_and_in_the_last() -> None:
    helped = np.array([1, 1, 0, 1, 0, 1])
    recent = weeks.remembered(
        weeks.nothing_yet(1), *np.stack([0 * helped, helped, 0 * helped])[..., None]
    )
    times, before = weeks.past_help(recent)
    assert before[:, 0].tolist() == [0, *helped]
    assert weeks.REPEATS == 4
    assert times[:, 0].tolist() == [0, 1, 2, 2, 3, 2, 2]


@pytest.mark.parametrize("n_weeks", [0, 1, 3])
def test_past_help_of_few_weeks_is_all_there_was(n_weeks: int) -> None:
    moves = np.ones((3, n_weeks, 2), dtype=int)
    recent = weeks.remembered(weeks.nothing_yet(2), *moves)
    times, before = weeks.past_help(recent)
    assert times[:, 0].tolist() == list(range(n_weeks + 1))
    assert before[:, 1].tolist() == [0, *[1] * n_weeks]
