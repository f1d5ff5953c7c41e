import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments.simulator import play
from dopl_core.experiments.whittle import MleQwic, MleWibql, indices
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.planning import plan
from dopl_core.world import SimulatedWorld

RING = 0.5 * (np.eye(4) + np.roll(np.eye(4), 1, axis=1))
CIRCULANT = np.stack([RING.T, RING], axis=1)  # acting turns the ring forwards, waiting backwards


def test_the_circulant_arm_of_fu_et_al_has_its_published_indices() -> None:
    found = indices(CIRCULANT[None], np.array([[-1.0, 0.0, 0.0, 1.0]]))
    assert found == pytest.approx(np.array([[-0.5, 0.5, 1.0, -1.0]]))


def test_acting_without_effect_has_index_0_or_its_reward_if_only_acting_pays() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=(5, 3))
    transitions = np.stack([rows, rows], axis=2)
    rewards = np.random.default_rng(1).random((5, 3))
    assert indices(transitions, rewards) == pytest.approx(np.zeros((5, 3)))
    assert indices(transitions, rewards, "active") == pytest.approx(rewards)


def test_at_its_index_a_state_gains_nothing_from_acting() -> None:
    """A budget of everybody costs nothing, so the plan's advantage is at the subsidy built in."""
    bandit = environments.load("armman")
    found = indices(bandit.transitions, bandit.rewards)
    for arm, state in ((0, 1), (5, 0), (12, 2)):
        P, r = bandit.transitions[[arm]], bandit.rewards[[arm]]
        # Waiting is paid the index: with pays="active" acting must earn r less it, waiting 0.
        for shift, sign in ((-1e-3, 1), (1e-3, -1)):
            assert np.sign(_advantage(P[0], r[0], found[arm, state] + shift)[state]) == sign


def _advantage(P: np.ndarray, r: np.ndarray, subsidy: float) -> np.ndarray:
    """Acting over waiting [S] when waiting is paid `subsidy`: relative value iteration."""
    value = np.zeros(len(r))
    for _ in range(5000):
        Q = r[:, None] + np.array([subsidy, 0.0]) + P @ value
        value = Q.max(axis=1) - Q.max(axis=1)[0]
    return Q[:, 1] - Q[:, 0]


def test_an_arm_that_is_not_unichain_has_no_index_and_changes_no_other() -> None:
    stuck = np.stack([np.eye(4), np.eye(4)], axis=1)
    rewards = np.array([[-1.0, 0.0, 0.0, 1.0]] * 2)
    found = indices(np.array([stuck, CIRCULANT]), rewards)
    assert np.isnan(found[0]).all()
    assert found[1] == pytest.approx([-0.5, 0.5, 1.0, -1.0])


def test_the_arms_of_the_paper_are_indexable() -> None:
    for name in ("app_marketing", "cpap", "armman"):
        bandit = environments.load(name)
        assert np.isfinite(indices(bandit.transitions, bandit.rewards)).all()


@pytest.fixture
def circulant() -> Bandit:
    """Fu et al.'s arm with rewards brought into [0, 1]; its indices are halved."""
    rewards = np.array([[0.0, 0.5, 0.5, 1.0]] * 5)
    return Bandit(transitions=np.array([CIRCULANT] * 5), rewards=rewards, budget=2)


@pytest.mark.long
@pytest.mark.parametrize("kind", [MleWibql, MleQwic])
def test_the_indices_of_the_circulant_arm_are_learned(
    circulant: Bandit, kind: type[MleWibql] | type[MleQwic]
) -> None:
    learner = kind(5, 4, 2, horizon=100)
    for _ in play(learner, SimulatedWorld(circulant, 0), 250):
        pass
    learner.replan()
    assert learner.plan is not None
    found = learner.plan.index.mean(axis=0)
    assert found.argsort().tolist() == [3, 0, 1, 2]
    if kind is MleWibql:  # the other is discounted, and may only choose from its grid
        assert found == pytest.approx([-0.25, 0.25, 0.5, -0.5], abs=0.1)


@pytest.mark.parametrize(("kind", "rate"), [(MleWibql, 0.1), (MleQwic, 2 / np.sqrt(5000))])
def test_exploration_is_as_frequent_as_published(
    kind: type[MleWibql] | type[MleQwic], rate: float
) -> None:
    learner = kind(5, 4, 2, horizon=2000)
    for _ in range(3):
        learner.replan()
    learner.priority = np.arange(5.0)[:, None] * np.ones(4)  # so the policy takes arms 3 and 4
    states, others = np.zeros(5, dtype=int), 0
    for epoch in range(2000):
        others += learner.activate(states, epoch).tolist() != [3, 4]
    assert others / 2000 == pytest.approx(0.9 * rate, rel=0.25)  # of 10 pairs, one is the policy's


def test_plan_and_whittle_index_agree_on_the_arms_to_help() -> None:
    """Where acting pays in the LP's plan, the Whittle index is at least the plan's multiplier."""
    bandit = environments.load("cpap")
    P, r = bandit.transitions, bandit.rewards
    best = plan(r, P, P, bandit.budget, engine="highs")
    found = indices(P, r)
    assert (found[best.index > 0.999] >= best.multiplier - 1e-6).all()
