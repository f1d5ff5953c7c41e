"""Baselines that know the rewards of all states: beside them one sees what preferences cost.

The Whittle oracle knows the moves too; UCWhittle and Thompson sampling learn them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dopl_core.experiments import whittle
from dopl_core.experiments.baselines import FixedArms, index_plan
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.estimates import Estimates
from dopl_core.learning.planning import Plan, plan
from dopl_core.learning.streams import Stream, generator

_ROUNDS = 1000  # of value iteration
_SETTLED = 1e-9
_DELTA = 0.1  # probability that UCWhittle's confidence bounds fail


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
    Learning for Restless Bandits", AAAI 2023).

    Each episode takes the transitions within the confidence bounds that are worth most at the
    present subsidy for waiting, and plays their Whittle indices. Unlike theirs: average reward in
    place of discounted, and the subsidy is the LP's price of the budget under the last such
    transitions, in place of the B-th largest index of the last epoch. An arm that has no index
    under them is ranked by the subsidy plus its advantage there.
    """

    subsidy = 0.0

    def make_plan(self) -> Plan:
        visits = self.visits.sum(axis=3)
        mean = self.visits / np.maximum(visits, 1)[..., None]
        mean[visits == 0] = 1 / self.n_states
        radius = confidence_radius(visits, self.episode + 1)
        pay = np.stack([self._rewards * (self.pays == "all") + self.subsidy, self._rewards], axis=2)
        self.transitions = optimistic_transitions(mean, radius, pay)
        found = self._plan()
        self.subsidy = found.multiplier
        index = whittle.indices(self.transitions, self._rewards, self.pays)
        return index_plan(np.where(np.isnan(index), self.subsidy + found.advantage, index))

    def estimates(self) -> Estimates:
        return Estimates(self.transitions, rewards=self._rewards, ranks_by="whittle")

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"subsidy": np.array(self.subsidy)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.subsidy = float(state["subsidy"])


def confidence_radius(visits: NDArray[np.int64], episode: int) -> FloatArray:
    """How far rows may be from their means in the L1 norm, for visits [N, S, A].

    sqrt(2 S log(2 S A N t / delta) / max(1, visits)), t the number of the episode from 1
    """
    N, S, A = visits.shape
    log = np.log(2 * S * A * N * episode / _DELTA)
    return np.asarray(np.sqrt(2 * S * log / np.maximum(visits, 1)))


def optimistic_transitions(mean: FloatArray, radius: FloatArray, pay: FloatArray) -> FloatArray:
    """The rows [N, S, A, S'] within an L1 radius [N, S, A] of their means that are worth most.

    pay: [N, S, A] of each action. By relative value iteration, made aperiodic by staying half of
    the time, which changes no policy.
    """
    value = np.zeros(pay.shape[:2])
    for _ in range(_ROUNDS):
        rows = best_rows(mean, radius, value)
        ahead = np.einsum("nsat,nt->nsa", rows, value)
        new = 0.5 * ((pay + ahead).max(axis=2) + value)
        new -= new[:, :1]
        moved = np.abs(new - value).max()
        value = new
        if moved < _SETTLED:
            break
    return best_rows(mean, radius, value)


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
