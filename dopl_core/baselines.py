"""What DOPL is compared with: the oracle that knows everything, chance, and MLE with the LP."""

from typing import Any

import numpy as np

from dopl_core.bandit import Bandit
from dopl_core.learner import Learner
from dopl_core.planning import Plan, plan


class Oracle(Learner):
    """The index policy of the LP (4)-(7) with the true model: the paper's upper bound."""

    def __init__(self, bandit: Bandit, *, engine: str = "lagrangian", **flow: Any) -> None:
        super().__init__(bandit.n_arms, bandit.n_states, bandit.budget, **flow)
        P = bandit.transitions
        self._plan = plan(bandit.rewards, P, P, bandit.budget, engine=engine, pays=bandit.pays)

    def make_plan(self) -> Plan:
        return self._plan


class Random(Learner):
    """Any B arms, without looking: every index equal, ties by lot."""

    def make_plan(self) -> Plan:
        N, S, B = self.n_arms, self.n_states, self.budget
        flat = np.full((N, S), B / N)
        occupancy = np.stack([1 - flat, flat], axis=2) / S
        return Plan(0.0, occupancy, flat, np.zeros((N, S)), 0.0, None, "none")
