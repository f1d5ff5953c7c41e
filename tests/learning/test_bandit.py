"""A bandit that makes no sense is refused, with the place and the reason."""

import numpy as np
import pytest

from dopl_core.learning.bandit import (
    UNKNOWN,
    Bandit,
    State,
    better_states,
    check_places,
    state_chances,
)


def arrays(n_arms=3, n_states=2):
    transitions = np.full((n_arms, n_states, 2, n_states), 1 / n_states)
    return {"transitions": transitions, "rewards": np.zeros((n_arms, n_states)), "budget": 2}


def test_a_bandit_knows_its_size_and_has_default_names():
    bandit = Bandit(**arrays(), noun="patient")
    assert (bandit.n_arms, bandit.n_states) == (3, 2)
    assert bandit.arms == ("Patient 1", "Patient 2", "Patient 3")
    assert bandit.states[1].label == "State 2"


def test_better_off_is_a_better_state_or_still_the_best():
    assert better_states(3).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 1]]


def test_a_bandit_cannot_be_changed():
    given = arrays()
    bandit = Bandit(**given)
    given["transitions"][:] = 0
    assert bandit.transitions.sum() == 12
    with pytest.raises(ValueError, match="read-only"):
        bandit.transitions[0] = 0
    with pytest.raises(AttributeError):
        bandit.budget = 3


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (np.nan, r"arm 1, state 0, action 1, next state 1 is nan"),
        (-0.1, r"arm 1, state 0, action 1, next state 1 is -0.1"),
        (1.5, r"arm 1, state 0, action 1, next state 1 is 1.5"),
        (0.4, r"arm 1, state 0, action 1: the row sums to 0.9, not to 1"),
    ],
)
def test_a_bad_transition_is_named_with_its_place(entry, reason):
    given = arrays()
    given["transitions"][1, 0, 1, 1] = entry
    with pytest.raises(ValueError, match=reason):
        Bandit(**given)


@pytest.mark.parametrize("reward", [np.nan, -0.5, 1.01])
def test_rewards_lie_between_0_and_1(reward):
    given = arrays()
    given["rewards"][2, 1] = reward
    with pytest.raises(ValueError, match=r"rewards: arm 2, state 1"):
        Bandit(**given)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [(0, "between 1 and the number of arms, 3"), (4, "number of arms, 3")],
)
def test_a_budget_is_at_least_1_and_at_most_all_arms(budget, reason):
    with pytest.raises(ValueError, match=reason):
        Bandit(**arrays() | {"budget": budget})


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"must be \[3, 2, 2, 2\]"):
        Bandit(**arrays() | {"transitions": np.ones((3, 2, 2))})
    with pytest.raises(ValueError, match="1 state"):
        Bandit(**arrays(n_states=1))
    with pytest.raises(ValueError, match="states: 1 given, 2 needed, one for each state"):
        Bandit(**arrays(), states=(State("only"),))
    with pytest.raises(ValueError, match='"all" or "active"'):
        Bandit(**arrays(), pays="some")


@pytest.mark.parametrize("budget", [2.5, np.nan, np.inf, "2", None, True, [2]])
def test_a_budget_is_a_whole_number(budget):
    with pytest.raises(ValueError, match="it must be between 1 and the number of arms"):
        Bandit(**arrays() | {"budget": budget})


def test_the_chances_of_a_known_state_are_certain_and_of_an_unknown_one_as_given():
    states, here = np.array([1, UNKNOWN, 0]), np.ones(3, bool)
    where = np.array([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]])
    chances = state_chances(states, 2, where, here)
    assert chances.tolist() == [[0, 1], [0.2, 0.8], [1, 0]]
    with pytest.raises(ValueError, match="pass `where`, their probabilities"):
        state_chances(states, 2, None, here)
    gone = state_chances(states, 2, None, states != UNKNOWN)
    assert gone.tolist() == [[0, 1], [0, 0], [1, 0]]


@pytest.mark.parametrize("name", ["by_lot", "find_out"])
@pytest.mark.parametrize("places", [-1, 2])
def test_places_of_a_kind_are_fewer_than_the_budget(name, places):
    kinds = {"by_lot": None, "find_out": None}
    check_places(np.ones(4, bool), 4, 2, **kinds | {name: 1})
    with pytest.raises(ValueError, match=rf"^{name} is {places}: it must be at least 0 and below"):
        check_places(np.ones(4, bool), 4, 2, **kinds | {name: places})
