"""What a learner can be asked about its beliefs; it refuses what it does not have."""

from typing import NoReturn

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.estimates import Estimates
from dopl_core.learning.moves.dynamics import Dynamics
from dopl_core.learning.moves.model import Size
from dopl_core.learning.planning import Plan
from dopl_core.learning.preferences import Preferences


class UnsupportedError(ValueError):
    """The learner cannot do what it was asked to do."""


class Beliefs:
    """The part of `Learner` that says what the present plan was made from.

    plan: of the present episode, None before the first one
    dynamics, preferences: beliefs that the present plan was made from; None if there are none
    has_posterior: whether these are honest posteriors that `belief` and the draws are taken from
    """

    plan: Plan | None = None
    dynamics: Dynamics | None = None
    preferences: Preferences | None = None

    def planned(self) -> Plan:
        """The plan of the present episode, for a caller that needs one."""
        if self.plan is None:
            raise ValueError("there is no plan yet: call replan() to begin the first episode")
        return self.plan

    def _cannot(self, what: str) -> NoReturn:
        raise UnsupportedError(f"{type(self).__name__} cannot {what}")

    def known_dynamics(self) -> Dynamics:
        """The dynamics that the present plan was made from, for a caller that needs them."""
        self.planned()
        if self.dynamics is None:
            self._cannot("say how arms move")
        return self.dynamics

    @property
    def has_posterior(self) -> bool:
        return False

    def rewards(self) -> FloatArray:
        """The rewards [N, S, A] that the present plan was made with."""
        self._cannot("say what rewards its plan was made with")

    def belief(self) -> Preferences:
        """The strengths that the present plan was made with, with their covariance."""
        self._cannot("give a posterior of strengths")

    def draw_moves(self, count: int, rng: np.random.Generator, idle: float = 0.0) -> FloatArray:
        """Transitions [count, N, S, A, S'] drawn from the posterior.

        idle: prior probability, for each state, that help makes no difference in it
        """
        self._cannot("draw transitions from a posterior")

    def draw_strengths(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Strengths [count, N, S] drawn from the posterior."""
        self._cannot("draw strengths from a posterior")

    def informative_duels(self, states: IntArray, count: int, rng: np.random.Generator) -> IntArray:
        """The duels [count, 4] whose answers would tell the plan most now."""
        self._cannot("say which duels tell most")

    def sureness(self) -> FloatArray:
        """How sure each annotator is [W], 1 is usual; empty if the learner does not estimate it."""
        return np.empty(0)

    def which_columns(self) -> dict[str, float]:
        """The posterior probability that each column explains moves; empty if not estimated."""
        return {}

    def column_sizes(self) -> list[Size]:
        """How much likelier arms with each label of the columns are better off than others."""
        return []

    def season_size(self) -> tuple[float, float] | None:
        """How much likelier arms are better off next week than in all weeks: mean, error."""
        return None

    def estimates(self) -> Estimates:
        """What the present plan was made from, to compare with the truth."""
        return Estimates()
