"""What answers changed of a list, against the order of the states alone."""

import numpy as np
import pytest

from dopl_core.learning.dopl import Dopl
from dopl_core.studies.analysis.assessment import AnswersChanged, _answers_changed
from dopl_core.studies.model.log_values import Epoch

N, S, B = 12, 3, 4


def learner(seed: int, answers: int, spread: float) -> Dopl:
    """A learner that has seen 20 weeks, and answers by people whose strengths have this spread."""
    rng = np.random.default_rng(seed)
    made = Dopl(N, S, B, horizon=1, seed=seed, ordered=True, find_out=0)
    for _ in range(20):
        states, after = rng.integers(S, size=(2, N))
        made.count_moves(states, rng.integers(2, size=N), after)
    strengths = np.arange(S) + spread * rng.standard_normal((N, 1)) * np.arange(S)
    left, other = rng.integers(N, size=answers), rng.integers(1, N, size=answers)
    sides = rng.integers(S, size=(2, answers))
    duels = np.stack([left, sides[0], (left + other) % N, sides[1]], axis=1)
    gap = strengths[duels[:, 0], duels[:, 1]] - strengths[duels[:, 2], duels[:, 3]]
    made.count_duels(duels, (gap > 0).astype(float))
    made.replan()
    return made


def changed(made: Dopl, states: np.ndarray, may: np.ndarray | None = None) -> AnswersChanged | None:
    arms = made.activate(states, 0, eligible=may)
    return _answers_changed(made, Epoch(1, 0, states, arms), np.eye(S)[states], may)


@pytest.mark.parametrize("seed", range(4))
def test_places_that_answers_changed_are_those_not_on_the_list_of_the_order_alone(seed):
    states = np.random.default_rng(seed).integers(S, size=N)
    made, alone = learner(seed, 400, 2.0), learner(seed, 0, 2.0)
    found = changed(made, states)
    others = np.setdiff1d(made.activate(states, 0), alone.activate(states, 0))
    assert found == (len(others), B, True)


@pytest.mark.parametrize("seed", range(4))
def test_places_of_people_who_must_rest_are_not_counted_as_changed_by_answers(seed):
    rng = np.random.default_rng(seed)
    states, may = rng.integers(S, size=N), rng.permutation(N) < 7
    made, alone = learner(seed, 400, 2.0), learner(seed, 0, 2.0)
    found = changed(made, states, may)
    others = np.setdiff1d(made.activate(states, 0, None, may), alone.activate(states, 0, None, may))
    assert found == (len(others), B, True)


def test_without_answers_nothing_is_said_of_them():
    assert changed(learner(0, 0, 2.0), np.zeros(N, dtype=int)) is None


def test_where_people_in_one_state_are_alike_answers_say_what_the_order_says():
    found = changed(learner(0, 60, 0.0), np.arange(N) % S)
    assert found is not None
    assert not found.people_differ


def test_places_to_find_out_are_no_places_that_answers_changed():
    made, states = learner(0, 400, 2.0), np.random.default_rng(0).integers(S, size=N)
    arms = made.activate(states, 0)
    epoch = Epoch(1, 0, states, arms, to_find_out=arms[:1])
    found, all_places = (
        _answers_changed(made, one, np.eye(S)[states]) for one in (epoch, Epoch(1, 0, states, arms))
    )
    assert found is not None
    assert all_places is not None
    assert (found.of, all_places.of) == (B - 1, B)
    assert all_places.places - 1 <= found.places <= all_places.places
