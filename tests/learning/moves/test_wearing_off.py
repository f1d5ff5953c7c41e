"""Help that wears off: what the plan believes of people who were helped lately."""

import numpy as np
import pytest

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.moves import model, weeks

S, N, WEEKS = 3, 40, 20


def moved(seed: int, wears: float) -> tuple[IntArray, weeks.Recent]:
    """Weeks in which help lifts by one state with chance 0.6, less by a share for each time before.

    A third of the people, drawn anew each week, is helped. Visits [n, s, a, t], and the weeks.
    """
    rng = np.random.default_rng(seed)
    visits, recent = np.zeros((N, S, 2, S), dtype=int), weeks.nothing_yet(N)
    states, past = rng.integers(S, size=N), np.zeros((weeks.REPEATS, N))
    for _ in range(WEEKS):
        helped = (rng.random(N) < 1 / 3).astype(int)
        lift = 0.1 + 0.6 * helped * (1 - wears) ** past.sum(axis=0)
        up = rng.random(N) < lift
        down = ~up & (rng.random(N) < 0.3)
        then = np.clip(states + up - down, 0, S - 1)
        visits[np.arange(N), states, helped, then] += 1
        recent = weeks.remembered(recent, states, helped, then)
        past, states = np.concatenate([past[1:], helped[None]]), then
    return visits, recent


def tilt(seed: int, wears: float) -> tuple[FloatArray, FloatArray]:
    """The tilt [n, r] for next week, and how often each person was helped lately [n]."""
    visits, recent = moved(seed, wears)
    rows = (visits.sum(axis=0) + 0.5) / (visits.sum(axis=0) + 0.5).sum(axis=2, keepdims=True)
    left = weeks.left_over(recent, np.tile(rows.reshape(2 * S, S), (N, 1, 1)))
    return weeks.wearing_off(recent, left, 2 * S), weeks.past_help(recent)[0][-1]


def test_who_was_helped_often_is_expected_to_gain_less_where_help_wears_off() -> None:
    for seed in range(5):
        found, times = tilt(seed, wears=0.7)
        often, never = found[times >= 3, 1].mean(), found[times == 0, 1].mean()
        assert often < -0.1 < 0.1 < never


def test_moves_without_help_are_not_tilted() -> None:
    found, _ = tilt(0, wears=0.7)
    assert (found[:, ::2] == 0).all()


def test_where_help_does_not_wear_off_it_hardly_matters_who_was_helped() -> None:
    size = [np.abs(tilt(seed, wears=0.0)[0]).mean() for seed in range(20)]
    assert np.mean(size) < 0.05


def test_nobody_is_tilted_before_anybody_was_helped() -> None:
    states = np.zeros(4, dtype=int)
    recent = weeks.remembered(weeks.nothing_yet(4), states, states, states)
    left = weeks.left_over(recent, np.full((4, 2 * S, S), 1 / S))
    assert weeks.wearing_off(recent, left, 2 * S) == pytest.approx(0)


def test_the_plan_expects_less_of_help_for_those_who_were_helped_lately() -> None:
    visits, recent = moved(1, wears=0.7)
    rng = np.random.default_rng(0)
    rows = model.estimate(visits, None, recent, rng).mean
    times = weeks.past_help(recent)[0][-1]
    gain = (rows[:, 0, 1] - rows[:, 0, 0])[:, 1:].sum(axis=1)  # of leaving the worst state
    assert gain[times >= 3].mean() < gain[times == 0].mean() - 0.03


def test_people_who_joined_since_the_last_week_have_rows() -> None:
    visits, recent = moved(2, wears=0.7)
    joined = np.concatenate([visits, np.zeros((2, S, 2, S), dtype=int)])
    rows = model.estimate(joined, None, recent, np.random.default_rng(0)).mean
    assert rows.shape[0] == N + 2
    assert rows.sum(axis=3) == pytest.approx(1)
