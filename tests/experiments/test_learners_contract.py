"""One contract, kept by every learner: what it does in an epoch, and that it can stop and go on."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments import contract
from dopl_core.experiments.contract import HORIZON, begin, epochs, same
from dopl_core.experiments.learners import LEARNERS
from dopl_core.experiments.runs import Run
from dopl_core.learning.beliefs import UnsupportedError
from dopl_core.learning.learner import Learner
from dopl_core.world import SimulatedWorld

CASES = [("dopl", "paper", "star"), ("dopl", "calibrated", "informative")] + [
    (name, "paper", design) for name in LEARNERS for design in ("star", "tree")
]
KNOW_THE_TRUTH = {"oracle", "whittle_oracle", "uc_whittle", "thompson"}  # of moves or rewards


@pytest.fixture(params=sorted(set(CASES)), ids="-".join)
def run(request: pytest.FixtureRequest) -> Run:
    learner, confidence, design = request.param
    settings = {"confidence": confidence, "design": design, "engine": "highs"}
    return Run("cpap", learner, 3, episodes=6, horizon=HORIZON, **settings)


@pytest.mark.parametrize("check", contract.CHECKS)
def test_every_learner_keeps_the_contract_that_anybody_can_check(run: Run, check: str) -> None:
    contract.CHECKS[check](run)


def test_learners_are_told_only_the_size_of_the_bandit() -> None:
    """A learner that sees the truth other than through its epochs would differ here."""
    bandit = environments.load("cpap")
    for name in LEARNERS.keys() - KNOW_THE_TRUTH:
        run = Run("cpap", name, 0, 1, HORIZON, confidence="paper", engine="highs")
        other = environments.load("armman")
        plans = []
        for played in (bandit, other):
            learner = run.make_learner(played)
            learner.budget = bandit.budget
            learner.replan()
            assert learner.plan is not None
            plans.append(learner.plan.index)
        assert np.array_equal(*plans), name


# --- what studies and pages ask of a learner


def after_two_episodes(run: Run) -> tuple[Learner, SimulatedWorld]:
    learner, world = begin(run)
    epochs(learner, world, 2 * HORIZON)
    return learner, world


def is_refused(learner: Learner, call: Callable[[], object]) -> bool:
    """Whether the learner says that it cannot do this; the message names the learner."""
    try:
        call()
    except UnsupportedError as error:
        said = str(error)
    else:
        return False
    assert said.startswith(f"{type(learner).__name__} cannot ")
    return True


def test_before_the_first_plan_a_learner_can_ask_a_first_round(run: Run) -> None:
    learner, world = begin(run)
    duels = learner.first_round(world.states, 9)
    assert duels.shape in ((9, 4), (0, 4))  # no pair is more informative than another: the paper's
    assert (duels[:, 1] == world.states[duels[:, 0]]).all()
    assert (duels[:, 0] != duels[:, 2]).all()
    assert learner.plan is None


def test_a_learner_ranks_every_arm_state_and_every_arm(run: Run) -> None:
    learner, world = after_two_episodes(run)
    assert learner.priority.shape == (learner.n_arms, learner.n_states)
    standing = learner.standing(world.states)
    assert standing.shape == (learner.n_arms,)
    assert np.isfinite(standing).all()


def test_beliefs_have_the_shapes_of_the_problem_or_there_are_none(run: Run) -> None:
    learner, _ = after_two_episodes(run)
    N, S = learner.n_arms, learner.n_states
    if learner.dynamics is not None:
        assert learner.dynamics.mean.shape == learner.dynamics.sd.shape == (N, S, 2, S)
        assert learner.dynamics.mean.sum(axis=3) == pytest.approx(1)
    if learner.preferences is not None:
        assert learner.preferences.mean.shape == learner.preferences.sd.shape == (N, S)
    refused = is_refused(learner, lambda: learner.rewards())
    assert refused == (learner.preferences is None)
    if not refused:
        assert learner.rewards().shape == (N, S, 2)
    assert learner.sureness().shape in ((0,), (1,))
    assert learner.which_columns() == {}  # CPAP has no columns
    assert learner.pays in ("all", "active")


def test_posteriors_are_drawn_from_exactly_where_the_learner_has_them(run: Run) -> None:
    learner, world = after_two_episodes(run)
    N, S, rng = learner.n_arms, learner.n_states, np.random.default_rng(0)
    asks: list[Callable[[], object]] = [
        lambda: learner.belief(),
        lambda: learner.draw_strengths(2, rng),
        lambda: learner.informative_duels(world.states, 2, rng),
    ]
    refused = [is_refused(learner, ask) for ask in asks]
    assert refused == [not learner.has_posterior] * 3
    if learner.dynamics is not None:
        moves = learner.draw_moves(2, rng)
        assert moves.shape == (2, N, S, 2, S)
        assert moves.sum(axis=4) == pytest.approx(1)
    else:
        assert is_refused(learner, lambda: learner.draw_moves(2, rng))
    if learner.has_posterior:
        covariance = learner.belief().covariance
        assert covariance is not None
        assert covariance.shape == (N * S, N * S)
        assert learner.draw_strengths(2, rng).shape == (2, N, S)
        assert learner.informative_duels(world.states, 2, rng).shape == (2, 4)


def test_a_learner_follows_a_setting_or_refuses_it_and_changes_nothing(run: Run) -> None:
    learner, world = after_two_episodes(run)
    N, B = learner.n_arms, learner.budget
    everybody, one_left, one_new = np.ones(N, bool), np.arange(N) > 0, np.ones(N + 1, bool)
    before = learner.state()
    settings: list[tuple[np.ndarray, int, dict[str, Any]]] = [
        (everybody, B, {"by_lot": 2}),
        (everybody, B, {"find_out": 1}),
        (everybody, B, {"find_out": None}),
        (everybody, B, {"by_lot": 0, "answers": B + 3}),
        (everybody, B, {"answers": 0, "weigh_annotators": True, "groups": ("a",) * N}),
        (one_left, B - 1, {}),
        (one_new, B, {"groups": ("b",) * (N + 1)}),
    ]
    for present, budget, more in settings:
        if is_refused(learner, partial(learner.adapt, present, budget, **more)):
            after = learner.state()
            assert same(list(before.values()), list(after.values()))
            continue
        learner.replan()
        states = np.resize(world.states, len(present))
        arms = learner.activate(states, 0)
        waiting, drawn = learner.draw_lots(arms, 0)
        assert len(arms) == budget
        assert len(waiting) == len(drawn) == learner.by_lot
        assert np.isin(learner.finds_out(states, arms), arms).all()
        assert present[arms].all()
        before = learner.state()
    with pytest.raises(ValueError, match="are known"):
        learner.adapt(np.ones(3, bool), 2)
    with pytest.raises(ValueError, match="below the budget"):
        learner.adapt(learner.present, learner.budget, by_lot=learner.budget)
