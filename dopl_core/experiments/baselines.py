"""What DOPL is compared with: the oracle, chance, simple rules, pooled moves, and MLE with the LP.

The other two baselines of the paper's section 6, which learn Whittle indices, are in whittle.py.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import ACT, WAIT, Bandit, FloatArray, Pays
from dopl_core.learning.estimates import Estimates
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import Engine, Plan, plan
from dopl_core.learning.preferences import win_chances

Memory = Literal["all", "episode"]


class FixedArms(Learner):
    """A learner whose arms and budget stay the same throughout."""

    def _check_support(self, present: NDArray[np.bool_], budget: int, *settings: Any) -> None:
        if len(present) > self.n_arms or not present.all() or budget != self.budget:
            self._cannot("change its arms or its budget")
        super()._check_support(present, budget, *settings)


class Oracle(FixedArms):
    """The index policy of the LP (4)-(7) with the true model: the paper's upper bound."""

    def __init__(self, bandit: Bandit, *, engine: Engine = "lagrangian", **flow: Any) -> None:
        super().__init__(bandit.n_arms, bandit.n_states, bandit.budget, **flow)
        P = bandit.transitions
        self._plan = plan(bandit.rewards, P, P, bandit.budget, engine=engine, pays=bandit.pays)

    def make_plan(self) -> Plan:
        return self._plan


class Random(Learner):
    """B random arms: every index is equal, and ties are broken at random."""

    def make_plan(self) -> Plan:
        N, S, B = self.n_arms, self.n_states, self.budget
        return index_plan(np.full((N, S), B / N))


class WorstFirst(Learner):
    """The worst states first, ties broken at random: a roster sorted by state.

    States go from worst to best, so state 0 is helped before state 1. It learns nothing.
    """

    def make_plan(self) -> Plan:
        return index_plan(np.tile(-np.arange(self.n_states, dtype=float), (self.n_arms, 1)))


class MiddleFirst(Learner):
    """The states nearest the middle first, of two as near the worse, ties broken at random.

    States go from worst to best. It learns nothing.
    """

    def make_plan(self) -> Plan:
        S = self.n_states
        states = np.arange(S)
        urgency = -np.abs(2 * states - (S - 1)) - states / S
        return index_plan(np.tile(urgency, (self.n_arms, 1)))


class Pooled(Learner):
    """One table of moves for all arms, and the ELP of one arm with evenly rising values.

    States go from worst to best. It uses no answers. Each row starts from `PRIOR` moves: without
    help half of them stay, the others go anywhere; with help they go as the estimate without help
    says, so that help does nothing until moves say otherwise.
    """

    PRIOR = 10

    def __init__(
        self,
        n_arms: int,
        n_states: int,
        budget: int,
        *,
        engine: Engine = "lagrangian",
        pays: Pays = "all",
        **flow: Any,
    ) -> None:
        super().__init__(n_arms, n_states, budget, **flow)
        self.engine, self.pays = engine, pays
        self.rows = self._estimate()

    def make_plan(self) -> Plan:
        self.rows = self._estimate()
        P, values = self.rows[None], np.linspace(0, 1, self.n_states)[None]
        share = self.budget / self.present.sum()
        one = plan(values, P, P, share, engine=self.engine, pays=self.pays)
        return index_plan(one.advantage.repeat(self.n_arms, axis=0))

    def _estimate(self) -> FloatArray:
        """The rows [S, A, S'] that all arms share."""
        S, seen = self.n_states, self.visits.sum(axis=0)
        wait = _shares(seen[:, WAIT] + self.PRIOR * (np.eye(S) / 2 + 1 / (2 * S)))
        act = _shares(seen[:, ACT] + self.PRIOR * wait)
        return np.stack([wait, act], axis=1)

    def estimates(self) -> Estimates:
        return Estimates(transitions=np.broadcast_to(self.rows, self.visits.shape))

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"rows": self.rows}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.rows = state["rows"]


def _shares(moves: FloatArray) -> FloatArray:
    return np.asarray(moves / moves.sum(axis=-1, keepdims=True))


class MleLp(FixedArms):
    """Rewards by maximum likelihood, counted transitions, then the LP (4)-(7).

    It plans as if its estimates were true, so it does not explore.
    """

    def __init__(
        self,
        n_arms: int,
        n_states: int,
        budget: int,
        *,
        engine: Engine = "lagrangian",
        pays: Pays = "all",
        memory: Memory = "all",
        **flow: Any,
    ) -> None:
        super().__init__(n_arms, n_states, budget, **flow)
        self.engine, self.pays = engine, pays
        self.fit = RewardFit(n_arms, n_states, memory)
        self.transitions = np.full(self.visits.shape, 1 / n_states)

    def make_plan(self) -> Plan:
        rewards = self.fit.update(self.counts.wins())
        Z = self.visits.sum(axis=3, keepdims=True)
        self.transitions = np.where(Z > 0, self.visits / np.maximum(Z, 1), 1 / self.n_states)
        P, start = self.transitions, None if self.plan is None else self.plan.start
        return plan(rewards, P, P, self.budget, engine=self.engine, pays=self.pays, start=start)

    def estimates(self) -> Estimates:
        return replace(self.fit.estimates(), transitions=self.transitions)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | self.fit.state() | {"transitions": self.transitions}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.fit.restore(state)
        self.transitions = state["transitions"]


class RewardFit:
    """Bradley-Terry rewards [N, S] fitted anew before each plan, starting from the last fit.

    memory: which duels count: "all", or, as in the authors' runs, those of the last "episode"
    """

    def __init__(self, n_arms: int, n_states: int, memory: Memory) -> None:
        if memory not in get_args(Memory):
            raise ValueError(f'memory is "{memory}": it must be one of all, episode')
        self.memory = memory
        self.rewards = np.full((n_arms, n_states), 0.5)
        self._before = np.zeros((n_arms * n_states,) * 2)  # wins when the last episode began

    def update(self, wins: FloatArray) -> FloatArray:
        """The maximum-likelihood rewards of the wins [M, M] so far."""
        self.rewards = mle(wins - self._before, self.rewards)
        if self.memory == "episode":
            self._before = wins.copy()
        return self.rewards

    def estimates(self) -> Estimates:
        """The rewards, and the preferences that follow from them."""
        return Estimates(preferences=partial(win_chances, self.rewards), rewards=self.rewards)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"fit.rewards": self.rewards, "fit.before": self._before}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        self.rewards, self._before = state["fit.rewards"], state["fit.before"]


def mle(wins: FloatArray, start: FloatArray) -> FloatArray:
    """Maximum likelihood of a Bradley-Terry model with rewards in [0, 1], like `start` [N, S].

    Minimises sum_ij wins_ij ln(1 + e^(r_j - r_i)) by projected Newton steps: an entry at a bound
    that the gradient pushes against stays there. The likelihood does not depend on a shift of all
    rewards, nor on an arm-state never compared: in these directions the fit stays where it started.
    """
    counts = wins + wins.T
    asked, won = counts.sum(axis=1), wins.sum(axis=1)
    enough = 1e-6 * (1 + asked.max())
    r = start.ravel().copy()
    loss, odds = _loss(wins, r)
    for _ in range(100):
        base = 1 + odds
        share = counts / base
        gradient = share.sum(axis=1) - won
        held = ((r <= 0) & (gradient > 0)) | ((r >= 1) & (gradient < 0))
        gradient[held] = 0.0
        if np.abs(gradient).max() <= enough:
            break
        curvature = share * odds / base
        system = -curvature
        if held.any():
            system[held] = system[:, held] = 0.0
        np.fill_diagonal(system, curvature.sum(axis=1) + 1e-6 * (1 + asked))
        step = np.linalg.solve(system, gradient)
        # With rewards in [0, 1] curvature varies by a quarter: nearly always a full step is taken.
        for halvings in range(20):
            moved = (r - 0.5**halvings * step).clip(0, 1)
            new_loss, new_odds = _loss(wins, moved)
            if new_loss <= loss + 1e-4 * gradient @ (moved - r):
                break
        r, loss, odds = moved, new_loss, new_odds
    return r.reshape(start.shape)


def _loss(wins: FloatArray, r: FloatArray) -> tuple[float, FloatArray]:
    """The negative log-likelihood, and the odds [M, M] against the row: e^(r_j - r_i)."""
    odds = np.exp(r - r[:, None])
    return float(np.vdot(wins, np.log1p(odds))), odds


def index_plan(index: FloatArray) -> Plan:
    """A plan without an LP: arms are ranked by the given index [N, S]."""
    none = np.zeros_like(index)
    occupancy = np.stack([none, none], axis=2)
    return Plan(0.0, occupancy, index, index, 0.0, np.empty(0), "none")  # type: ignore[arg-type]
