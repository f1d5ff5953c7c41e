"""A whole episode at once: within it the plan is fixed, so most of it needs no loop over epochs.

What is left for the loop are the codes (arm * S + state) that arms are in: each epoch looks up the
scores of all codes, helps the B largest, and looks up where every arm goes. Results are the same to
the bit as epoch by epoch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.learning.pairs.pair_designs import DESIGNS
from dopl_core.world import SimulatedWorld

_MOST_CODES = 2_000  # N * S: with more, tables of all codes cost more than the loop
_MOST_STATES = 8
_AT_ONCE = 400_000  # entries of a table


class Episode(NamedTuple):
    """What happened in H epochs to N arms, under P policies; states [H, P, N] before each epoch.

    helped: [H, P, N];  end: [P, N] states after the last epoch
    """

    states: IntArray
    helped: NDArray[np.bool_]
    end: IntArray


def fits(world: SimulatedWorld) -> bool:
    """Whether the moves of a world can be looked up, and its tables are small."""
    kind, bandit = type(world), world.bandit
    names = ("step", "reward", "reported", "report")
    own = all(getattr(kind, name) is getattr(SimulatedWorld, name) for name in names)
    few = bandit.n_arms * bandit.n_states <= _MOST_CODES and bandit.n_states <= _MOST_STATES
    return own and few and world.moves_as_the_bandit


def can_follow(learner: Learner, world: SimulatedWorld) -> bool:
    """Whether a learner decides by its plan alone, and can be told of a whole episode at once."""
    kind = type(learner)
    # Where states are ordered, a list of Dopl depends on who else is on it.
    by_plan = kind.activate is Learner.activate or (
        kind.activate is Dopl.activate and isinstance(learner, Dopl) and not learner.ordered
    )
    plain = by_plan and not learner.by_lot and learner.ledger is None
    told = kind.count_moves is Learner.count_moves or learner.counts_episodes
    return plain and told and bool(learner.present.all()) and fits(world)


def play_fixed(learner: Learner, world: SimulatedWorld) -> float | None:
    """Play the episode that `world` has begun: the reward per epoch. None where scores tie."""
    N, S, B = learner.n_arms, learner.n_states, learner.budget
    keys, explores = learner.tie_keys[:, :, None], learner.explores
    scores = learner.priority + keys
    if explores is not None:
        scores[explores] = keys[explores]
    H = len(scores)
    episode = follow(world, scores.reshape(H, 1, N * S), world.states[None], B)
    if episode is None:
        return None
    states, helped = episode.states[:, 0], episode.helped[:, 0]
    arms = np.nonzero(helped)[1].reshape(H, B)
    paid = world.bandit.rewards[np.arange(N), states]
    if world.bandit.pays == "active":
        paid = np.take_along_axis(paid, arms, axis=1)
    if _pairs_are_drawn(learner):
        duels = learner.drawn_duels(states, arms)
    else:
        each = enumerate(zip(states, arms, strict=True))
        duels = np.array([learner.duels(*own, epoch) for epoch, own in each])
    learner.count_duels(duels, world.answer(duels).ravel())
    world.states, world.epoch = episode.end[0], H
    then = np.concatenate([states[1:], episode.end])
    learner.count_moves(states, helped.astype(np.int64), then)
    # Summed in the same order as epoch by epoch.
    return float(paid.sum(axis=1).cumsum()[-1]) / H


def _pairs_are_drawn(learner: Learner) -> bool:
    """Whether the pairs of all epochs were drawn when the episode began."""
    kind = type(learner)
    asks = kind.duels in (Learner.duels, Dopl.duels)
    draws = kind._positions in (Learner._positions, Dopl._positions)
    fixed = learner.answers < learner.budget and DESIGNS[learner.design].choose is None
    return asks and draws and fixed and learner.budget > 1


def follow(
    world: SimulatedWorld, scores: FloatArray, states: IntArray, budget: int
) -> Episode | None:
    """Help the `budget` arms of the largest scores [H, P, M] in each epoch, from states [P, N].

    None if equal scores left it open whom to help.
    """
    (H, P, M), N, S = scores.shape, world.bandit.n_arms, world.bandit.n_states
    first, cut = np.arange(N) * S + M * np.arange(P)[:, None], N - budget
    # A row of the moves is twice the code, plus the action.
    code = (2 * (first + states))[0 if P == 1 else slice(None)]  # NumPy is faster in one dimension
    least = cut if P == 1 else np.s_[:, cut : cut + 1]  # of those who are helped
    rows = np.empty((H, *code.shape), dtype=np.int64)
    block = max(1, _AT_ONCE // (2 * P * M))
    for begin in range(0, H, block):
        part = slice(begin, begin + block)
        doubled = np.repeat(scores[part].reshape(-1, P * M), 2, axis=1)
        landings = _landings(world, part, P)
        for score_of, goes, row in zip(doubled, landings, rows[part], strict=True):
            score = score_of.take(code, mode="clip")  # codes are in range; "clip" is faster
            ordered = score.copy()
            ordered.sort()  # for few arms faster than a partition
            np.add(code, score >= ordered[least], out=row)
            code = goes.take(row, mode="clip")
    played = rows.reshape(H, P, N)
    helped = (played & 1).astype(bool)
    if (helped.sum(axis=2) != budget).any():
        return None
    return Episode((played >> 1) - first, helped, (code.reshape(P, N) >> 1) - first)


def _landings(world: SimulatedWorld, part: slice, policies: int) -> IntArray:
    """Where each doubled code and action leads in some epochs, as doubled codes: [h, P * 2 M]."""
    N, S = world.bandit.n_arms, world.bandit.n_states
    moves = np.repeat(world.moves[part, :, 0], 2 * S, axis=1)  # [h, 2 M]
    passed = np.zeros(moves.shape, dtype=np.int8)
    for thresholds in world.rows.T:
        passed += (moves >= thresholds).view(np.int8)
    first = np.repeat(2 * S * np.arange(N * policies), 2 * S).reshape(policies, -1)
    return (2 * passed[:, None] + first).reshape(len(moves), -1)
