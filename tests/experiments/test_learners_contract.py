"""One contract, kept by every learner: what it does in an epoch, and that it can stop and go on."""

import io

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.experiments.learners import LEARNERS
from dopl_core.experiments.runs import Run
from dopl_core.learning.bandit import actions
from dopl_core.learning.learner import Learner
from dopl_core.world import SimulatedWorld

HORIZON = 12
CASES = [("dopl", "paper", "star"), ("dopl", "calibrated", "informative")] + [
    (name, "paper", design) for name in LEARNERS for design in ("star", "tree")
]


@pytest.fixture(params=sorted(set(CASES)), ids="-".join)
def run(request: pytest.FixtureRequest) -> Run:
    learner, confidence, design = request.param
    settings = {"confidence": confidence, "design": design, "engine": "highs"}
    return Run("cpap", learner, 3, episodes=6, horizon=HORIZON, **settings)


def begin(run: Run) -> tuple[Learner, SimulatedWorld]:
    bandit = run.bandit()
    return run.make_learner(bandit), SimulatedWorld(bandit, run.seed)


def epochs(
    learner: Learner, world: SimulatedWorld, count: int, played: int = 0
) -> list[np.ndarray]:
    """Play `count` epochs where `played` were played before; all that was decided."""
    decided = []
    for epoch in range(played, played + count):
        h = epoch % HORIZON
        if h == 0:
            learner.replan()
            world.begin(learner.episode, HORIZON)
        states = world.states
        arms = learner.activate(states, h)
        duels = learner.duels(states, arms, h)
        learner.count_duels(duels, world.answer(duels))
        learner.count_moves(states, actions(arms, learner.n_arms), world.step(arms))
        decided += [arms, duels]
    return decided


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_every_epoch_activates_b_arms_and_its_duels_connect_them(run: Run) -> None:
    learner, world = begin(run)
    decided = epochs(learner, world, 3 * HORIZON)
    for arms, duels in zip(decided[::2], decided[1::2], strict=True):
        assert len(arms) == learner.budget
        assert (np.diff(arms) > 0).all()  # in order, each once
        assert duels.shape == (learner.budget - 1, 4)
        reached, edges = {int(arms[0])}, duels[:, [0, 2]].tolist()
        for _ in edges:
            reached |= {arm for edge in edges if reached & set(edge) for arm in edge}
        assert reached == set(arms.tolist())


def test_nothing_counted_is_lost(run: Run) -> None:
    learner, world = begin(run)
    epochs(learner, world, 5 * HORIZON)
    assert learner.visits.sum() == learner.n_arms * 5 * HORIZON
    assert learner.visits[:, :, 1].sum() == learner.budget * 5 * HORIZON
    assert learner.counts.total() == (learner.budget - 1) * 5 * HORIZON


def test_asking_what_to_do_changes_nothing(run: Run) -> None:
    learner, world = begin(run)
    epochs(learner, world, HORIZON + 3)
    before = learner.state()
    once = [learner.activate(world.states, 3)]
    once.append(learner.duels(world.states, once[0], 3))
    again = [learner.activate(world.states, 3), learner.duels(world.states, once[0], 3)]
    assert same(once, again)
    after = learner.state()
    assert before.keys() == after.keys()
    assert same(list(before.values()), list(after.values()))


def test_the_same_seed_decides_the_same_and_another_seed_otherwise(run: Run) -> None:
    first, second = (epochs(*begin(run), 3 * HORIZON) for _ in range(2))
    assert same(first, second)
    bandit = run.bandit()
    other = Run(**{**run.__dict__, "seed": 4}).make_learner(bandit)
    assert not same(first, epochs(other, SimulatedWorld(bandit, run.seed), 3 * HORIZON))


@pytest.mark.parametrize("stop", [HORIZON, 2 * HORIZON + 5])
def test_a_learner_restored_from_plain_arrays_goes_on_to_the_bit(run: Run, stop: int) -> None:
    learner, world = begin(run)
    epochs(learner, world, stop)
    file = io.BytesIO()
    np.savez(file, **learner.state())
    file.seek(0)
    saved = dict(np.load(file, allow_pickle=False))
    states, bandit = world.states, world.bandit
    onwards = epochs(learner, world, 2 * HORIZON + 1, stop)

    restored, world = run.make_learner(bandit), SimulatedWorld(bandit, run.seed)
    restored.restore(saved)
    world.states = states
    if stop % HORIZON:
        world.begin(restored.episode, HORIZON)
        world.states, world._epoch = states, stop % HORIZON
    assert same(onwards, epochs(restored, world, 2 * HORIZON + 1, stop))
    ends = learner.state(), restored.state()
    assert ends[0].keys() == ends[1].keys()
    assert same(list(ends[0].values()), list(ends[1].values()))


def test_learners_are_told_only_the_size_of_the_bandit() -> None:
    """A learner that sees the truth other than through its epochs would differ here."""
    bandit = environments.load("cpap")
    for name in set(LEARNERS) - {"oracle"}:
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
