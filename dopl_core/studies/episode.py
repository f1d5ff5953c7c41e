"""What one plan leads to, without a database: its epochs, their duels, and its worth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, IntArray, actions
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.streams import Stream, generator
from dopl_core.studies import whereabouts
from dopl_core.studies.arrays import Arrays
from dopl_core.studies.config import StudyConfig, adapt, bandit_of, learner_of, world_of
from dopl_core.studies.history import Move

PRACTICE = 3  # duels that a person begins with
_SOME = 8  # arms of each state that they may be about

_COUNTS = (
    "visits",
    "duels.at",
    "duels.times",
)  # what a learner has been told; all else of it is its plan


@dataclass(frozen=True, eq=False)
class Epoch:
    """One decision: states [N], the list [B], the duels asked [D, 4], and what came.

    next_states: [N], None where the owner has yet to report them
    by_lot: those on the list whose places were drawn by lot
    """

    states: IntArray
    arms: IntArray
    duels: IntArray
    next_states: IntArray | None
    by_lot: IntArray


@dataclass(frozen=True, eq=False)
class Episode:
    """A learner that has just planned, and the epochs that can be known at once."""

    learner: Dopl
    epochs: list[Epoch]
    random_value: float
    changed: float
    seconds: float


def begin(
    config: StudyConfig, learner: Dopl, states: IntArray, moves: Sequence[Move] = ()
) -> Episode:
    """Plan, and open the first epoch from `states`; a simulated world plays all epochs at once.

    moves: of all epochs before, as corrected by now
    """
    before = None if learner.plan is None else learner.plan.index > 0.5
    adapt(learner, config)
    started = perf_counter()
    learner.replan()
    seconds = perf_counter() - started
    assert learner.plan is not None  # noqa: S101
    changed = 1.0
    if before is not None:
        now = learner.plan.index > 0.5
        known = np.zeros_like(now)
        known[: len(before)] = before
        changed = float((now != known).mean())
    value = random_value(learner)
    epochs = list(first_epochs(config, learner, states, moves))
    return Episode(learner, epochs, value, changed, seconds)


def first_epochs(
    config: StudyConfig,
    learner: Dopl,
    states: IntArray,
    moves: Sequence[Move] = (),
    as_it_was: Callable[[Epoch], Epoch] = lambda epoch: epoch,
) -> Iterator[Epoch]:
    """The epochs that can be known as soon as there is a plan: one, or all of a simulated world's.

    Inside an episode the plan is fixed, so nothing that is answered could change its duels.
    as_it_was: gives each epoch, before its world moves, as it is on record
    """
    if config.world == "observed":
        yield as_it_was(open_epoch(learner, states, 0, moves))
        return
    world = world_of(config)
    world.states = states
    world.begin(learner.episode, learner.horizon)
    for h in range(learner.horizon):
        epoch = as_it_was(open_epoch(learner, world.states, h))
        next_states = world.step(epoch.arms)
        learner.count_moves(epoch.states, actions(epoch.arms, learner.n_arms), next_states)
        yield replace(epoch, next_states=next_states)


def open_epoch(learner: Dopl, states: IntArray, epoch: int, moves: Sequence[Move] = ()) -> Epoch:
    """Whom to help and what to ask in an epoch of the learner's present episode."""
    where = None
    if (states == UNKNOWN).any() and learner.dynamics is not None:
        where = whereabouts.where(states, moves, learner.present, learner.dynamics.mean)
    chosen = learner.activate(states, epoch, where)
    lots = learner.draw_lots(chosen, epoch)
    arms = np.sort(np.concatenate([chosen, lots]))
    return Epoch(states, arms, learner.duels(states, arms, epoch), None, lots)


def plan_arrays(learner: Dopl) -> Arrays:
    """What a learner holds beside its counts."""
    return {name: array for name, array in learner.state().items() if name not in _COUNTS}


def planned_learner(config: StudyConfig, arrays: Arrays) -> Dopl:
    """The learner with the plan that `arrays` are of, and no counts."""
    learner = learner_of(config)
    nothing = learner.state()
    learner.restore(arrays | {name: nothing[name] for name in _COUNTS})
    return learner


def random_value(learner: Dopl) -> float:
    """What helping any B arms would pay per epoch, by the beliefs that the plan was made with.

    A lower bar than the plan's own value, which may choose the best rows of the box.
    """
    assert learner.dynamics is not None  # noqa: S101
    assert learner.preferences is not None  # noqa: S101
    here = learner.present
    share = learner.budget / int(here.sum())
    P = learner.dynamics.mean[here]
    rows = (1 - share) * P[:, :, WAIT] + share * P[:, :, ACT]  # [N, S, S']
    # The stationary distribution d: d (P - 1) = 0 and sum d = 1, the last replacing one column.
    S = learner.n_states
    system = rows - np.eye(S)
    system[:, :, -1] = 1.0
    right = np.zeros((len(P), S, 1))
    right[:, -1] = 1.0
    stay = np.linalg.solve(system.transpose(0, 2, 1), right)[..., 0]
    rewards = learner.rewards(learner.preferences)[here]
    pay = share * rewards[:, :, ACT]
    if learner.pays == "all":
        pay = pay + (1 - share) * rewards[:, :, WAIT]
    return float((stay * pay).sum())


def sitting_duels(config: StudyConfig) -> IntArray:
    """The duels of a first sitting [K, 4], about everybody who is there when the study is made."""
    return learner_of(config).sitting(whereabouts.first_states(config), config.sitting)


def practice_duels(config: StudyConfig) -> IntArray:
    """Up to three duels [D, 4] whose better side is known: two that are plain, and a hard one.

    None of them is against the order of the states where the owner has given one, and there are
    fewer, or none, where too many are in one state.
    """
    rng = generator(Stream.PRACTICE, config.seed, edition=config.edition)
    if config.edition == 1:
        return _first_practice_duels(config, rng)
    if config.world == "simulated":
        worth = bandit_of(config).rewards
        states = np.tile(np.arange(config.n_states), (config.n_arms, 1))
    else:
        states = whereabouts.first_states(config)[:, None]
        worth = states.astype(float)
    # Some arms of each state, drawn by lot.
    lot = rng.permutation(states.size)
    some = [lot[states.ravel()[lot] == s][:_SOME] for s in range(config.n_states)]
    at = rng.permutation(np.concatenate(some))
    arm, state, worth = at // states.shape[1], states.ravel()[at], worth.ravel()[at]
    duels: list[tuple[int, int, int, int]] = []
    for hard in (False, False, True):
        gap = worth[:, None] - worth  # [M, M] by how much the first is better
        free = ~np.isin(arm, [n for duel in duels for n in duel[::2]])
        fits = (gap > 1e-9) & (arm[:, None] != arm) & free[:, None] & free
        if config.ordered:
            fits &= state[:, None] > state
        if not fits.any():
            break
        wanted = np.where(fits, -gap if hard else gap, -np.inf)
        better, worse = np.unravel_index(wanted.argmax(), wanted.shape)
        duels.append((arm[better], state[better], arm[worse], state[worse]))
    swap = rng.random(len(duels)) < 0.5
    pairs = np.array(duels, dtype=np.int64).reshape(-1, 4)
    return np.where(swap[:, None], pairs[:, [2, 3, 0, 1]], pairs)


def _first_practice_duels(config: StudyConfig, rng: np.random.Generator) -> IntArray:
    """Those of the first edition: all of them plain."""
    if config.world == "simulated":
        rewards = bandit_of(config).rewards
        best, worst = rewards.argmax(axis=1), rewards.argmin(axis=1)
        arms = rng.permutation(config.n_arms)[: 2 * PRACTICE]
        arms = arms[: len(arms) // 2 * 2].reshape(-1, 2)
        duels = np.stack([arms[:, 0], best[arms[:, 0]], arms[:, 1], worst[arms[:, 1]]], axis=1)
    else:
        states = whereabouts.first_states(config)
        order = np.lexsort((rng.random(config.n_arms), states))
        order = order[states[order] != UNKNOWN]
        count = min(PRACTICE, len(order) // 2)
        low, high = order[:count], order[::-1][:count]
        duels = np.stack([high, states[high], low, states[low]], axis=1)
        duels = duels[states[high] > states[low]]
    swap = rng.random(len(duels)) < 0.5
    return np.where(swap[:, None], duels[:, [2, 3, 0, 1]], duels)


def better_side(config: StudyConfig, duel: tuple[int, int, int, int]) -> str:
    """The plain answer to a practice duel."""
    left_arm, left_state, right_arm, right_state = duel
    if config.world == "simulated":
        rewards = bandit_of(config).rewards
        return (
            "left" if rewards[left_arm, left_state] > rewards[right_arm, right_state] else "right"
        )
    return "left" if left_state > right_state else "right"
