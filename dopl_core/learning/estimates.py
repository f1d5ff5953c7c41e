"""The estimates of a learner, in the form in which they are compared with the truth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dopl_core.learning.bandit import FloatArray

Rows = Callable[[slice], FloatArray]  # returns the rows of a matrix


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a learner estimates, to compare with the truth; None where it has no estimate.

    transitions: [N, S, A, S'];  preferences: returns rows of F, [., M];  rewards: [N, S], less that
    of `reference` if there is one;  ranks_by: the true index that its order is compared with
    """

    transitions: FloatArray | None = None
    preferences: Rows | None = None
    rewards: FloatArray | None = None
    reference: int | None = None
    ranks_by: Literal["lp", "whittle"] = "lp"
