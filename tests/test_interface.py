"""What researchers import from dopl_core."""

import subprocess
import sys

import numpy as np
import pytest

import dopl_core
from dopl_core import Dopl, Learner, SimulatedWorld, load_environment, plan, simulate, strengths
from dopl_core.experiments.results import COLUMNS


def run(code: str) -> str:
    """What Python prints in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_every_public_name_can_be_imported() -> None:
    for name in dopl_core.__all__:
        assert getattr(dopl_core, name) is not None
        assert name in (dopl_core.__doc__ or "")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = dopl_core.nothing


def test_simulate_returns_a_row_for_each_episode_with_the_columns_of_the_design() -> None:
    table = simulate("dopl", "cpap", episodes=2, horizon=3, seeds=2, confidence="paper")
    assert tuple(table.columns) == COLUMNS
    assert table[["seed", "episode"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert (table.epochs == 3).all()
    assert set(table.confidence) == {"paper"}


def test_simulate_refuses_an_unknown_learner() -> None:
    with pytest.raises(ValueError, match="not one of oracle, dopl"):
        simulate("magic", "cpap", episodes=1, horizon=1, seeds=1)


def test_the_other_names_work_together() -> None:
    bandit = load_environment("cpap")
    learner = Dopl(bandit.n_arms, bandit.n_states, bandit.budget, horizon=1)
    assert isinstance(learner, Learner)
    world = SimulatedWorld(bandit, seed=0)
    learner.replan()
    arms = learner.activate(world.states, 0)
    assert len(arms) == bandit.budget
    P = bandit.transitions
    best = plan(bandit.rewards, P, P, bandit.budget, engine="lagrangian")
    assert best.value == pytest.approx(15.9004, abs=1e-4)
    mean, sd = strengths(np.array([0, 0, 1]), np.array([1, 2, 2]), n_arms=3)
    assert mean.ravel().argsort().tolist() == [2, 1, 0]
    assert (sd > 0).all()


def test_importing_the_package_is_cheap_and_sets_the_threads_before_numpy() -> None:
    code = "import dopl_core, os, sys; print('numpy' in sys.modules, os.environ['OMP_NUM_THREADS'])"
    assert run(code) == "False 1"
