"""Baselines that know the rewards of all states: beside them one sees what preferences cost.

The Whittle oracle knows the moves too; UCWhittle and Thompson sampling learn them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dopl_core.experiments import whittle
from dopl_core.experiments.baselines import FixedArms, index_plan
from dopl_core.learning.bandit import UNKNOWN, Bandit, FloatArray, IntArray
from dopl_core.learning.estimates import Estimates
from dopl_core.learning.planning import Plan, plan
from dopl_core.learning.streams import Stream, generator

_ROUNDS = 100  # of policy iteration; a handful is usual
_SETTLED = 1e-9


class WhittleOracle(FixedArms):
    """The Whittle index policy with the true model (Whittle, 1988, "Restless bandits").

    Refuses arms that are not indexable, or not unichain: they have no index.
    """

    def __init__(self, bandit: Bandit, **flow: Any) -> None:
        super().__init__(bandit.n_arms, bandit.n_states, bandit.budget, **flow)
        self._index = whittle.indices(bandit.transitions, bandit.rewards, bandit.pays)
        if (bad := np.flatnonzero(np.isnan(self._index).any(axis=1))).size:
            raise ValueError(f"whittle_oracle: arm {bad[0]} of {bandit.name} is not indexable")

    def make_plan(self) -> Plan:
        return index_plan(self._index)

    def estimates(self) -> Estimates:
        return Estimates(ranks_by="whittle")


class _LearnsMoves(FixedArms):
    """Rewards [N, S] are known; transitions [N, S, A, S'] are what the present plan assumes."""

    def __init__(self, bandit: Bandit, **flow: Any) -> None:
        super().__init__(bandit.n_arms, bandit.n_states, bandit.budget, **flow)
        self._rewards, self.pays = bandit.rewards, bandit.pays
        self.transitions = np.full(self.visits.shape, 1 / self.n_states)

    def _plan(self) -> Plan:
        P = self.transitions
        return plan(self._rewards, P, P, self.budget, engine="lagrangian", pays=self.pays)

    def estimates(self) -> Estimates:
        return Estimates(transitions=self.transitions, rewards=self._rewards)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"transitions": self.transitions}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.transitions = state["transitions"]


class Thompson(_LearnsMoves):
    """Thompson sampling (Jung and Tewari, "Regret Bounds for Thompson Sampling in Episodic Restless
    Bandit Problems", NeurIPS 2019).

    Each episode draws transitions from their posterior, Dirichlet with a uniform prior, and plays
    the LP index policy that would be right if they were true.
    """

    def make_plan(self) -> Plan:
        rng = generator(Stream.EXPLORE, self.seed, self.episode)
        drawn = rng.standard_gamma(self.visits + 1.0)
        self.transitions = drawn / drawn.sum(axis=3, keepdims=True)
        return self._plan()


class UcWhittle(_LearnsMoves):
    """UCWhittle-value (Wang, Xu, Taneja and Tambe, "Optimistic Whittle Index Policy: Online
    Learning for Restless Bandits", AAAI 2023): their main variant, program P_V.

    Each episode takes the transitions within the confidence bounds under which each state is worth
    most if an action costs the present penalty, and plays their Whittle indices; all discounted by
    0.9, with bounds that fail with probability 0.001, as in the authors' code. The penalty is 0 in
    the first episode, then the B-th largest index of the arms in the last epoch. Their bilinear
    program is solved exactly, by policy iteration. An arm that has no index is ranked by the
    penalty plus the advantage of acting at it.
    """

    DISCOUNT = 0.9
    DELTA = 1e-3
    counts_episodes = True
    penalty = 0.0

    def make_plan(self) -> Plan:
        visits = self.visits.sum(axis=3)
        mean = self.visits / np.maximum(visits, 1)[..., None]
        mean[visits == 0] = 1 / self.n_states
        radius = confidence_radius(visits, self.episode + 1, self.DELTA)
        pay = np.stack([self._rewards * (self.pays == "all"), self._rewards - self.penalty], axis=2)
        self.transitions, value = optimistic(mean, radius, pay, self.DISCOUNT)
        ahead = np.einsum("nsat,nt->nsa", self.transitions, value)
        gain = (pay + self.DISCOUNT * ahead) @ (-1, 1)
        index = whittle.indices(self.transitions, self._rewards, self.pays, self.DISCOUNT)
        return index_plan(np.where(np.isnan(index), self.penalty + gain, index))

    def count_moves(
        self, states: IntArray, helped: IntArray, next_states: IntArray, times: int = 1
    ) -> None:
        super().count_moves(states, helped, next_states, times)
        last = np.asarray(states).reshape(-1, self.n_arms)[-1]
        known = np.flatnonzero(last != UNKNOWN)
        if self.plan is not None and times > 0 and len(known) >= self.budget:
            index = self.plan.index[known, last[known]]
            self.penalty = float(np.sort(index)[-self.budget])

    def estimates(self) -> Estimates:
        return Estimates(self.transitions, rewards=self._rewards, ranks_by="whittle")

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"penalty": np.array(self.penalty)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.penalty = float(state["penalty"])


def confidence_radius(visits: NDArray[np.int64], episode: int, delta: float) -> FloatArray:
    """How far rows may be from their means in the L1 norm, for visits [N, S, A].

    sqrt(2 S log(2 S A N t^4 / delta) / max(1, visits)), t the number of the episode from 1
    """
    N, S, A = visits.shape
    log = np.log(2 * S * A * N * episode**4 / delta)
    return np.asarray(np.sqrt(2 * S * log / np.maximum(visits, 1)))


def optimistic(
    mean: FloatArray, radius: FloatArray, pay: FloatArray, discount: float
) -> tuple[FloatArray, FloatArray]:
    """The transitions [N, S, A, S'] within a radius that are worth most, and the values [N, S].

    mean: [N, S, A, S'];  radius: [N, S, A] in the L1 norm;  pay: [N, S, A] of each action
    By policy iteration: rows are chosen as actions are, so one choice is best for all states.
    """
    value = pay.max(axis=2)
    for _ in range(_ROUNDS):
        rows = best_rows(mean, radius, value)
        worth = pay + discount * np.einsum("nsat,nt->nsa", rows, value)
        acts = worth.argmax(axis=2)[..., None]
        chain = np.take_along_axis(rows, acts[..., None], axis=2)[:, :, 0]
        system = np.eye(mean.shape[1]) - discount * chain
        new = np.linalg.solve(system, np.take_along_axis(pay, acts, axis=2))[..., 0]
        moved = np.abs(new - value).max()
        value = new
        if moved < _SETTLED:
            break
    return best_rows(mean, radius, value), value


def best_rows(mean: FloatArray, radius: FloatArray, value: FloatArray) -> FloatArray:
    """Rows [N, S, A, S'] within the radius [N, S, A] of `mean` with the greatest mean value.

    value: [N, S']. The best state gains half of the radius, and the worst states lose it, as in
    UCRL2 (Jaksch, Ortner and Auer, 2010).
    """
    order = value.argsort(axis=1, kind="stable")[:, None, None]
    rows = np.take_along_axis(mean, np.broadcast_to(order, mean.shape), axis=3)
    rows[..., -1] = np.minimum(rows[..., -1] + radius / 2, 1.0)
    excess = rows.sum(axis=3) - 1
    for state in range(rows.shape[3] - 1):  # from the worst
        taken = np.minimum(rows[..., state], np.maximum(excess, 0))
        rows[..., state] -= taken
        excess -= taken
    found = np.empty_like(rows)
    np.put_along_axis(found, np.broadcast_to(order, mean.shape), rows, axis=3)
    return found
