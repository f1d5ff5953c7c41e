"""A whole episode at once gives the same as epoch by epoch, to the bit."""

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments import simulator
from dopl_core.experiments.contract import different
from dopl_core.experiments.episodes import can_follow, fits, follow
from dopl_core.experiments.learners import LEARNERS
from dopl_core.experiments.runs import Run
from dopl_core.learning.bandit import Bandit
from dopl_core.world import SimulatedWorld

CASES = [
    *((name, {}) for name in LEARNERS),
    ("dopl", {"confidence": "calibrated", "answers": 10}),
    ("random", {"design": "tree", "restart": True}),
]


@pytest.mark.parametrize("pays", ["all", "active"])
@pytest.mark.parametrize(("learner", "more"), CASES, ids=lambda case: str(case))
def test_an_episode_at_once_is_the_same_as_epoch_by_epoch(
    learner: str, more: dict[str, str], pays: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpap = environments.load("cpap")
    bandit = Bandit(cpap.transitions, cpap.rewards, cpap.budget, pays=pays)  # type: ignore[arg-type]
    run = Run("cpap", learner, 4, 3, 15, **({"confidence": "paper"} | more))  # type: ignore[arg-type]
    ends = []
    for at_once in (True, False):
        one, world = run.make_learner(bandit), run.make_world(bandit)
        assert can_follow(one, world)
        with monkeypatch.context() as patch:
            if not at_once:
                patch.setattr(simulator, "can_follow", lambda learner, world: False)
            rewards = [reward for reward, _ in simulator.play(one, world, 3)]
        ends.append(one.state() | {"rewards": np.array(rewards), "world": world.states})
    assert different(*ends) == []


def test_equal_scores_are_left_to_the_learner() -> None:
    bandit = environments.load("cpap")
    world = SimulatedWorld(bandit, 0)
    world.begin(1, 4)
    scores = np.zeros((4, 1, bandit.rewards.size))
    assert follow(world, scores, world.states[None], bandit.budget) is None


def test_long_episodes_are_played_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = environments.load("cpap")
    world = SimulatedWorld(bandit, 0)
    world.begin(1, 7)
    scores = np.random.default_rng(0).random((7, 2, bandit.rewards.size))
    start = np.stack([world.states] * 2)
    whole = follow(world, scores, start, bandit.budget)
    monkeypatch.setattr("dopl_core.experiments.episodes._AT_ONCE", 3 * 2 * scores[0].size)
    parts = follow(world, scores, start, bandit.budget)
    assert whole is not None
    assert parts is not None
    assert all(map(np.array_equal, whole, parts))


def test_worlds_and_learners_that_decide_otherwise_are_played_epoch_by_epoch() -> None:
    run = Run("cpap", "random", 0, 1, 3)
    bandit = run.bandit()
    learner, world = run.make_learner(bandit), run.make_world(bandit)

    class Own(SimulatedWorld):
        def next_chances(self, states, helped, epoch):  # type: ignore[no-untyped-def]
            return super().next_chances(states, helped, epoch)

    class Counting(type(learner)):  # type: ignore[misc]
        def count_moves(self, *moves):  # type: ignore[no-untyped-def]
            super().count_moves(*moves)

    sizes = bandit.n_arms, bandit.n_states, bandit.budget
    assert not fits(Own(bandit, 0))
    assert not can_follow(Counting(*sizes, horizon=3), world)
    learner.by_lot = 1
    assert not can_follow(learner, world)
