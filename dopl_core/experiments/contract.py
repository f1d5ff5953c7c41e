"""The contract of a learner: checks that anybody can run on their own, as `dopl check` does.

A check plays a learner in CPAP and raises BrokenContractError where it breaks a rule.
"""

import io
from collections.abc import Callable

import numpy as np

from dopl_core.experiments.runs import Run
from dopl_core.learning.bandit import Arrays, IntArray, actions
from dopl_core.learning.learner import Learner
from dopl_core.world import SimulatedWorld

HORIZON = 12
_EPISODES = 3


class BrokenContractError(ValueError):
    """A learner breaks a rule; says which."""


def check(learner: str) -> dict[str, str]:
    """What each check found: "" if the learner keeps it. An error of the learner is a finding."""
    run = Run("cpap", learner, 3, episodes=_EPISODES, horizon=HORIZON)
    found = {}
    for name, one in CHECKS.items():
        try:
            one(run)
            found[name] = ""
        except BrokenContractError as error:
            found[name] = str(error)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def begin(run: Run) -> tuple[Learner, SimulatedWorld]:
    """A new learner, and the world that it plays in."""
    bandit = run.bandit()
    return run.make_learner(bandit), SimulatedWorld(bandit, run.seed)


def epochs(learner: Learner, world: SimulatedWorld, count: int, played: int = 0) -> list[IntArray]:
    """Play `count` epochs where `played` were played before: arms and duels of each, in turn."""
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


def same(a: list[IntArray], b: list[IntArray]) -> bool:
    """Whether two lists of arrays are equal to the bit."""
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def different(a: Arrays, b: Arrays) -> list[str]:
    """The names of arrays that two states of learners do not share to the bit."""
    return sorted(
        name
        for name in a.keys() | b.keys()
        if name not in a or name not in b or not np.array_equal(a[name], b[name])
    )


# --- the checks


def shapes(run: Run) -> None:
    """A plan ranks every arm-state; duels are about helped arms in their states, and connect."""
    learner, world = begin(run)
    epochs(learner, world, HORIZON)
    N, S, B = learner.n_arms, learner.n_states, learner.budget
    plan = learner.planned()
    for name, array in (("index", plan.index), ("advantage", plan.advantage)):
        _must(np.shape(array) == (N, S), f"{name} of the plan is {np.shape(array)}, not {(N, S)}")
        _must(np.isfinite(array).all(), f"{name} of the plan contains NaN or infinity")
    learner.replan()
    states = world.states
    arms = learner.activate(states, 0)
    duels = learner.duels(states, arms, 0)
    _must(duels.shape == (B - 1, 4), f"duels are {duels.shape}, not {(B - 1, 4)}")
    at = states[duels[:, ::2]]
    _must((at == duels[:, 1::2]).all(), "duels name arms in other states than theirs")
    reached, edges = {int(arms[0])}, duels[:, ::2].tolist()
    for _ in edges:
        reached |= {arm for edge in edges if reached & set(edge) for arm in edge}
    _must(reached == set(arms.tolist()), "duels do not connect the helped arms")


def budget(run: Run) -> None:
    """Every epoch helps B arms, in order, each once."""
    learner, world = begin(run)
    B = learner.budget
    for epoch, arms in enumerate(epochs(learner, world, 3 * HORIZON)[::2]):
        _must(len(arms) == B, f"epoch {epoch} helps {len(arms)} arms: the budget is {B}")
        _must((np.diff(arms) > 0).all(), f"epoch {epoch} helps {arms}: not in order, or twice")
        _must(arms[0] >= 0 and arms[-1] < learner.n_arms, f"epoch {epoch} helps unknown arms")


def counts(run: Run) -> None:
    """No move and no answer that the learner was told is lost."""
    learner, world = begin(run)
    epochs(learner, world, 5 * HORIZON)
    N, B, E = learner.n_arms, learner.budget, 5 * HORIZON
    for what, seen, told in (
        ("moves", learner.visits.sum(), N * E),
        ("moves with help", learner.visits[:, :, 1].sum(), B * E),
        ("answers", learner.counts.total(), (B - 1) * E),
    ):
        _must(seen == told, f"{told} {what} were told, {seen} are counted")


def asking(run: Run) -> None:
    """To ask what to do changes nothing."""
    learner, world = begin(run)
    epochs(learner, world, HORIZON + 3)
    before = learner.state()
    asked = [
        (arms, learner.duels(world.states, arms, 3))
        for arms in (learner.activate(world.states, 3) for _ in range(2))
    ]
    _must(same(*map(list, asked)), "asked twice in one epoch, it decides differently")
    changed = different(before, learner.state())
    _must(not changed, f"activate or duels change its state: {', '.join(changed)}")


def determinism(run: Run) -> None:
    """The same seed gives the same decisions, and another seed others."""
    first, second = (epochs(*begin(run), 3 * HORIZON) for _ in range(2))
    _must(same(first, second), "the same seed gives other decisions: draw from `seed` alone")
    bandit = run.bandit()
    other = Run(**{**run.plain(), "own": run.own, "seed": run.seed + 1}).make_learner(bandit)
    played = epochs(other, SimulatedWorld(bandit, run.seed), 3 * HORIZON)
    _must(not same(first, played), "another seed gives the same decisions")


def restores(run: Run) -> None:
    """A learner restored from plain arrays continues to the bit, between and within episodes."""
    for stop in (HORIZON, 2 * HORIZON + 5):
        learner, world = begin(run)
        epochs(learner, world, stop)
        file = io.BytesIO()
        np.savez(file, **learner.state())  # type: ignore[arg-type]
        file.seek(0)
        saved = dict(np.load(file, allow_pickle=False))
        states = world.states
        onwards = epochs(learner, world, 2 * HORIZON + 1, stop)

        restored, world = begin(run)
        restored.restore(saved)
        world.states = states
        if stop % HORIZON:
            world.begin(restored.episode, HORIZON)
            world.epoch = stop % HORIZON
        again = epochs(restored, world, 2 * HORIZON + 1, stop)
        _must(same(onwards, again), f"restored after {stop} epochs, it decides differently")
        lost = different(learner.state(), restored.state())
        _must(not lost, f"restored after {stop} epochs, its state differs: {', '.join(lost)}")


def forgets(run: Run) -> None:
    """Answers that are taken back leave no trace."""
    ends = []
    for told in (False, True):
        learner, world = begin(run)
        epochs(learner, world, 2 * HORIZON)
        if told:
            duels = learner.duels(world.states, learner.activate(world.states, 0), 0)
            credit = np.arange(len(duels)) % 3 / 2  # right, tie, left
            learner.count_duels(duels, credit)
            learner.count_duels(duels, credit, times=-1)
        learner.replan()
        ends.append(learner.state())
    traces = different(*ends)
    _must(not traces, f"answers taken back leave a trace: {', '.join(traces)}")


CHECKS: dict[str, Callable[[Run], None]] = {
    "shapes": shapes,
    "budget": budget,
    "counts": counts,
    "asking": asking,
    "determinism": determinism,
    "restores": restores,
    "forgets": forgets,
}


def _must(kept: bool | np.bool_, trouble: str) -> None:
    if not kept:
        raise BrokenContractError(trouble)
