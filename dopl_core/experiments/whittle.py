"""Whittle indices: of known arms, and learned by Q-learning with rewards from duels."""

import math
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dopl_core.experiments.baselines import FixedArms, Memory, RewardFit, index_plan
from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray, Pays
from dopl_core.learning.estimates import Estimates
from dopl_core.learning.planning import Plan
from dopl_core.learning.streams import Stream

_SINGULAR, _NOISE = 1e-10, 1e-9


def indices(
    transitions: FloatArray, rewards: FloatArray, pays: Pays = "all", discount: float = 1.0
) -> FloatArray:
    """Whittle indices [N, S] of arms with transitions [N, S, A, S'] and rewards [N, S].

    The index of a state is the subsidy for waiting at which acting and waiting are worth the same:
    on average, or discounted if `discount` is below 1. Subsidies rise from minus infinity, where
    all states act; under a policy every advantage is linear in the subsidy, so the next state to
    stop acting is known exactly. NaN for an arm that is not indexable, or is not unichain under one
    of these policies.
    """
    N, S = rewards.shape
    arms = np.arange(N)
    wait, act = transitions[:, :, 0], transitions[:, :, 1]
    pay = np.zeros_like(rewards) if pays == "active" else rewards
    acts = np.ones((N, S), dtype=bool)
    index = np.empty((N, S))
    subsidy = np.full(N, -np.inf)
    sound = np.ones(N, dtype=bool)
    for _ in range(S):
        # Poisson's equation, gain in place of the first bias: once for pay, once for subsidy.
        # Discounted, the values themselves.
        system = np.eye(S) - discount * np.where(acts[..., None], act, wait)
        if discount == 1:
            system[:, :, 0] = 1.0
        sound &= np.abs(np.linalg.det(system)) > _SINGULAR
        system[~sound] = np.eye(S)
        earned = np.stack([np.where(acts, rewards, pay), ~acts], axis=2)
        bias = np.linalg.solve(system, earned)
        if discount == 1:
            bias[:, 0] = 0.0
        ahead = discount * (act - wait) @ bias
        fixed, slope = np.moveaxis(ahead, 2, 0)  # advantage = fixed + slope * subsidy
        fixed, slope = fixed + rewards - pay, slope - 1.0
        falls = acts & (slope < 0)
        root = np.divide(-fixed, slope, out=np.full((N, S), np.inf), where=falls)
        first = root.argmin(axis=1)
        rises = root[arms, first] >= subsidy - _NOISE
        subsidy = np.where(sound, root[arms, first], 0.0)
        back = ~acts & (fixed + slope * subsidy[:, None] > _NOISE)
        sound &= rises & np.isfinite(subsidy) & ~back.any(axis=1)
        subsidy[~sound] = 0.0
        index[arms, first] = subsidy
        acts[arms, first] = False
    index[~sound] = np.nan
    return index


class _IndexLearner(FixedArms):
    """What both learners share: rewards from duels, a table of Q values, and exploration.

    Q: [N * S * A, K] values of (arm, state, action) under each of K subsidies for waiting
    tries: [N * S * A] how often each occurred;  epochs: counted so far, over all episodes
    """

    counts_episodes = True

    def __init__(
        self,
        n_arms: int,
        n_states: int,
        budget: int,
        subsidies: int,
        *,
        pays: Pays = "all",
        memory: Memory = "all",
        **flow: Any,
    ) -> None:
        super().__init__(n_arms, n_states, budget, **flow)
        self.pays = pays
        self.fit = RewardFit(n_arms, n_states, memory)
        self._first = self._arms * n_states
        self.Q = np.zeros((n_arms * n_states * 2, subsidies))
        self.tries = np.zeros(n_arms * n_states * 2, dtype=np.int64)
        self.epochs = 0

    def _exploration(self, epochs: IntArray) -> FloatArray:
        """The probability that an epoch, counted from 1 over all episodes, helps B random arms."""
        raise NotImplementedError

    def _learn(self, rows: IntArray, step: FloatArray) -> None:
        """Q-learning from E epochs of all arms, one after the other.

        rows: [E, 3, N] of Q: of state and action, and of waiting and acting in the next state
        step: [E, N] how far Q moves
        """
        raise NotImplementedError

    def _rewards(self) -> FloatArray:
        """The rewards [N * S * A] of the rows of Q."""
        earns = (float(self.pays == "all"), 1.0)
        return (self.fit.rewards[..., None] * earns).ravel()

    def _begin(self, plan: Plan, episode: int) -> None:
        super()._begin(plan, episode)
        epochs = (episode - 1) * self.horizon + np.arange(1, self.horizon + 1)
        self.explores = self._draw(Stream.EXPLORE, 1)[:, 0] < self._exploration(epochs)

    def count_moves(
        self, states: IntArray, helped: IntArray, next_states: IntArray, times: int = 1
    ) -> None:
        if times != 1:
            raise ValueError(f"{type(self).__name__} cannot take moves back")
        super().count_moves(states, helped, next_states)
        if min(states.min(), next_states.min()) == UNKNOWN:  # such an epoch teaches Q nothing
            epochs = [x.reshape(-1, self.n_arms) for x in (states, helped, next_states)]
            known = ((epochs[0] != UNKNOWN) & (epochs[2] != UNKNOWN)).all(axis=1)
            if not known.any():
                return
            states, helped, next_states = (x[known] for x in epochs)
        moved, then = 2 * (self._first + states) + helped, 2 * (self._first + next_states)
        rows = np.stack([moved, then, then + 1], axis=-2).reshape(-1, 3, self.n_arms)
        self._learn(rows, self._steps(rows[:, 0]))
        self.epochs += len(rows)

    def estimates(self) -> Estimates:
        return replace(self.fit.estimates(), ranks_by="whittle")

    def _steps(self, moved: IntArray) -> FloatArray:
        """Count moves [E, N], and the size of their steps [E, N]: 0.5 / ceil(visits / 50)."""
        met = moved[..., None] == np.arange(len(self.tries)).reshape(self.n_arms, -1)
        visits = self.tries + met.reshape(len(moved), -1).cumsum(axis=0)
        self.tries = visits[-1].copy()
        places = moved + np.arange(len(moved))[:, None] * len(self.tries)
        return 0.5 / ((visits.take(places) + 49) // 50)

    def state(self) -> dict[str, NDArray[Any]]:
        own = {"Q": self.Q.copy(), "tries": self.tries.copy(), "epochs": np.array(self.epochs)}
        return super().state() | self.fit.state() | own

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.fit.restore(state)
        self.Q, self.tries = state["Q"].copy(), state["tries"].copy()
        self.epochs = int(state["epochs"])


class MleWibql(_IndexLearner):
    """Whittle-index Q-learning on two time scales (Avrachenkov and Borkar, 2022), MLE rewards.

    Each state x has its own Q values (average reward), learned fast under the present estimate of
    the index of x. That estimate, `subsidy` [N, S], moves slowly to where acting and waiting in x
    are worth the same. One epoch in ten explores, as in their paper.
    """

    def __init__(self, n_arms: int, n_states: int, budget: int, **options: Any) -> None:
        super().__init__(n_arms, n_states, budget, n_states, **options)
        self.subsidy = np.zeros((n_arms, n_states))

    def make_plan(self) -> Plan:
        self.fit.update(self.counts.wins())
        return index_plan(self.subsidy.copy())

    def _exploration(self, epochs: IntArray) -> FloatArray:
        return np.full(len(epochs), 0.1)

    def _learn(self, rows: IntArray, step: FloatArray) -> None:
        # Flat arrays [M] of arm and subsidy, because NumPy is fastest on those: Q is laid out as
        # [state and action, M], and what belongs to an arm is repeated for its subsidies.
        (E, _, N), S = rows.shape, self.n_states
        Q = self.Q.reshape(N, 2 * S, S).transpose(1, 0, 2).reshape(2 * S, N * S)
        place = np.arange(N)[:, None] * S + np.arange(S)
        own = rows - self._first * 2
        index = (own[..., None] * (N * S) + place).reshape(E, 3, -1)  # old, wait, act
        moved = rows[:, 0]
        each = (self._rewards().take(moved), 1.0 - (moved & 1), step)
        repeated = [np.repeat(x, S, axis=1) for x in each]
        there = 2 * np.tile(np.arange(S), N) * (N * S) + place.ravel()
        there = np.array([there + N * S, there])  # acting, then waiting, in x under x's
        subsidy, flat = self.subsidy.ravel().copy(), Q.reshape(-1)
        found, own_found, level = np.empty((3, N * S)), np.empty((2, N * S)), np.empty(N * S)
        old, wait, act = found
        gap, own_wait = own_found
        epochs = zip(count(self.epochs + 1), index, index[:, 0], *repeated, strict=False)
        for n, at, moved, reward, waits, far in epochs:
            flat.take(at, out=found, mode="clip")  # unlike "raise", without a buffer
            goal = waits * subsidy
            goal += reward
            np.add.reduce(Q, axis=0, out=level)  # times 2 S: f(Q), the average reward
            level /= 2 * S
            goal -= level
            goal += np.maximum(wait, act, out=wait)
            goal -= old
            goal *= far
            goal += old
            flat[moved] = goal
            flat.take(there, out=own_found, mode="clip")
            gap -= own_wait
            gap *= 0.2 / (1 + math.ceil(n * math.log(n) / 500))
            subsidy += gap
        self.subsidy = subsidy.reshape(N, S)
        self.Q = Q.reshape(2 * S, N, S).transpose(1, 0, 2).reshape(self.Q.shape)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"subsidy": self.subsidy.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.subsidy = state["subsidy"].copy()


class MleQwic(_IndexLearner):
    """Q-learning over a grid of subsidies (Fu et al., 2019), MLE rewards.

    Every move updates the Q values of all subsidies; the index of a state is the subsidy at which
    acting and waiting are closest. Explores with probability min(1, 2 / sqrt(epoch)), as in their
    paper. Discount 0.95: closer to 1, values still rise when the paper's experiments end.
    """

    GRID = np.linspace(-1, 1, 61)
    DISCOUNT = 0.95

    def __init__(self, n_arms: int, n_states: int, budget: int, **options: Any) -> None:
        super().__init__(n_arms, n_states, budget, len(self.GRID), **options)

    def make_plan(self) -> Plan:
        self.fit.update(self.counts.wins())
        Q = self.Q.reshape(self.n_arms, self.n_states, 2, -1)
        return index_plan(self.GRID[np.abs(Q[:, :, 1] - Q[:, :, 0]).argmin(axis=2)])

    def _exploration(self, epochs: IntArray) -> FloatArray:
        return np.minimum(1.0, 2 / np.sqrt(epochs))

    def _learn(self, rows: IntArray, step: FloatArray) -> None:
        # One table of Q and of what each row earns, so that one call looks up all of an epoch.
        waits = 1.0 - np.arange(len(self.Q))[:, None] % 2
        table = np.concatenate([self.Q, waits * self.GRID + self._rewards()[:, None]])
        index = np.concatenate([rows, rows[:, :1] + len(self.Q)], axis=1)
        found = np.empty((4, self.n_arms, len(self.GRID)))
        old, goal, act, earned = found  # the goal begins as the value of waiting
        for at, moved, far in zip(index, rows[:, 0], step[..., None], strict=True):
            table.take(at, axis=0, out=found, mode="clip")  # unlike "raise", without a buffer
            np.maximum(goal, act, out=goal)
            goal *= self.DISCOUNT
            goal += earned
            goal -= old
            goal *= far
            goal += old
            table[moved] = goal
        self.Q = table[: len(self.Q)].copy()
