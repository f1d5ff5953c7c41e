"""Baselines that know the rewards, on small cases with a known answer."""

import itertools

import numpy as np
import pytest

from dopl_core import environments, simulate
from dopl_core.experiments.baselines import index_plan
from dopl_core.experiments.known_rewards import (
    Thompson,
    UcWhittle,
    WhittleOracle,
    best_rows,
    confidence_radius,
    optimistic,
)
from dopl_core.experiments.simulator import play
from dopl_core.experiments.whittle import indices
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.learner import Learner
from dopl_core.world import SimulatedWorld

RING = 0.5 * (np.eye(4) + np.roll(np.eye(4), 1, axis=1))
CIRCULANT = np.stack([RING.T, RING], axis=1)
HELP_WORKS = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]])
NOTHING_WORKS = np.full((2, 2, 2), 0.5)


def responders() -> Bandit:
    """Four arms, help for one: it works for arm 2 only."""
    transitions = np.array([NOTHING_WORKS, NOTHING_WORKS, HELP_WORKS, NOTHING_WORKS])
    return Bandit(transitions, np.tile([0.0, 1.0], (4, 1)), budget=1)


def test_the_whittle_oracle_has_the_published_indices_of_the_circulant_arm() -> None:
    bandit = Bandit(np.array([CIRCULANT] * 3), np.tile([0.0, 0.5, 0.5, 1.0], (3, 1)), budget=1)
    learner = WhittleOracle(bandit, horizon=1)
    learner.replan()
    # Fu et al. (2019) with rewards -1, 0, 0, 1: half of their indices for half of the spread.
    assert learner.planned().index[0] == pytest.approx([-0.25, 0.25, 0.5, -0.5])


def test_the_whittle_oracle_refuses_an_arm_without_an_index() -> None:
    stuck = np.stack([np.eye(2), np.eye(2)], axis=1)
    bandit = Bandit(np.array([HELP_WORKS, stuck]), np.tile([0.0, 1.0], (2, 1)), budget=1)
    with pytest.raises(ValueError, match="arm 1 of bandit is not indexable"):
        WhittleOracle(bandit, horizon=1)


@pytest.mark.parametrize(
    ("radius", "row"),
    [(0.0, [0.5, 0.3, 0.2]), (0.4, [0.3, 0.3, 0.4]), (1.2, [0, 0.2, 0.8]), (2.0, [0, 0, 1])],
)
def test_the_best_row_within_a_radius(radius: float, row: list[float]) -> None:
    mean = np.array([0.5, 0.3, 0.2]).reshape(1, 1, 1, 3)
    found = best_rows(mean, np.full((1, 1, 1), radius), np.array([[0.0, 1.0, 2.0]]))
    assert found.ravel() == pytest.approx(row)


def test_the_radius_falls_with_the_root_of_the_visits_and_grows_with_time() -> None:
    visits = np.array([0, 1, 4]).reshape(1, 1, 3)
    never, once, four = confidence_radius(visits, 1, 0.1).ravel()
    assert never == once == pytest.approx(2 * four)
    assert once == pytest.approx(np.sqrt(2 * np.log(2 * 3 / 0.1)))
    later = confidence_radius(visits, 3, 0.1).ravel()
    assert later[0] == pytest.approx(np.sqrt(2 * np.log(2 * 3 * 3**4 / 0.1)))


def test_without_a_radius_the_optimistic_transitions_are_the_means() -> None:
    bandit = environments.load("cpap")
    P, r = bandit.transitions, bandit.rewards
    found, value = optimistic(P, np.zeros(P.shape[:3]), np.stack([r, r], axis=2), 0.9)
    assert found == pytest.approx(P)
    best = r + 0.9 * np.einsum("nsat,nt->nsa", P, value).max(axis=2)
    assert value == pytest.approx(best)  # Bellman's equation


def test_optimism_gives_the_largest_value_of_all_corners_of_the_bounds() -> None:
    """Two states: within a radius the chance of the second is at one of two ends."""
    mean, radius, pay = np.full((1, 2, 2, 2), 0.5), np.full((1, 2, 2), 0.4), np.zeros((1, 2, 2))
    pay[0] = [[0.0, -0.3], [1.0, 0.7]]  # an action costs 0.3
    mean[0, :, 1] = [0.3, 0.7]
    best = -np.inf
    for ends in itertools.product((-0.2, 0.2), repeat=4):
        up = mean[0, ..., 1] + np.reshape(ends, (2, 2))
        value = np.zeros(2)
        for _ in range(300):
            value = (pay[0] + 0.9 * (value[0] + up * (value[1] - value[0]))).max(axis=1)
        best = np.maximum(best, value)
    assert optimistic(mean, radius, pay, 0.9)[1][0] == pytest.approx(best)


def test_before_any_visit_everything_is_worth_the_same_to_ucwhittle() -> None:
    """Both actions may lead to the best state for sure, so that acting gains nothing."""
    learner = UcWhittle(responders(), horizon=1)
    learner.replan()
    assert learner.transitions[..., 1] == pytest.approx(1)
    assert learner.planned().index == pytest.approx(0)


def certain(learner: UcWhittle | Thompson, bandit: Bandit) -> None:
    """Let a learner plan after a million million visits to each row."""
    learner.visits = np.round(1e12 * bandit.transitions).astype(np.int64)
    learner.replan()


def test_with_many_visits_ucwhittle_has_the_true_whittle_indices() -> None:
    bandit = responders()
    learner = UcWhittle(bandit, horizon=1)
    certain(learner, bandit)
    truth = indices(bandit.transitions, bandit.rewards, discount=0.9)
    assert learner.planned().index == pytest.approx(truth, abs=1e-3)
    # Acting moves 0.7 of the arm to a state that pays 1, an epoch later.
    assert truth[2] == pytest.approx(0.9 * 0.7)
    assert truth[[0, 1, 3]] == pytest.approx(0)


def test_the_penalty_of_ucwhittle_is_the_least_index_of_those_helped_last() -> None:
    learner = UcWhittle(responders(), horizon=2)
    learner.replan()
    learner.plan = index_plan(np.array([[1.0, 8.0], [2.0, 7.0], [3.0, 6.0], [4.0, 5.0]]))
    learner.budget = 2
    states = np.array([[1, 1, 1, 1], [0, 1, 0, 0]])
    learner.count_moves(states, np.array([[1, 1, 0, 0], [0, 1, 0, 1]]), states)
    assert learner.penalty == 4.0  # in the last epoch the indices were 1, 7, 3 and 4


def test_with_many_visits_thompson_sampling_plans_with_the_truth() -> None:
    bandit = responders()
    learner = Thompson(bandit, horizon=1)
    certain(learner, bandit)
    assert learner.transitions == pytest.approx(bandit.transitions, abs=1e-4)
    assert learner.planned().value == pytest.approx(3 * 0.5 + 0.8, abs=1e-3)
    assert learner.planned().index[2] == pytest.approx(1)


@pytest.mark.parametrize("kind", [WhittleOracle, UcWhittle, Thompson])
def test_the_arm_that_responds_is_found(kind: type[Learner]) -> None:
    bandit = responders()
    learner = kind(bandit, horizon=100, seed=1)  # type: ignore[arg-type]
    for _ in play(learner, SimulatedWorld(bandit, seed=1), episodes=30):
        pass
    before = learner.visits[:, :, 1].sum(axis=(1, 2))
    for _ in play(learner, SimulatedWorld(bandit, seed=2), episodes=4):
        pass
    helped = learner.visits[:, :, 1].sum(axis=(1, 2)) - before
    assert helped[2] >= 0.9 * helped.sum()


def test_known_rewards_have_no_reward_error() -> None:
    table = simulate("thompson", "armman", episodes=3, horizon=5, seeds=1)
    assert (table.r_error == 0).all()
    assert table.p_error.notna().all()
