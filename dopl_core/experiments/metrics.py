"""How far a learner is from the truth: the four errors of the paper's appendix F.

index_error is Kendall's tau, as the authors record it: 1 when the learner orders all arm-states as
the truth does, -1 when it orders them the other way round. So it rises as the others fall. The
truth is the oracle's LP index, for MLE_WIBQL and MLE_QWIC the Whittle index. Empty where an order
is all ties (chance).
The other three are root mean squares over all entries (the authors' plots of P and R show norms,
which are larger by the square root of the number of entries). Empty means: it has no such estimate.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from dopl_core.experiments import whittle
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import Plan, plan
from dopl_core.learning.preferences import win_chances

_ALL_PAIRS = 500  # up to here all pairs at once are faster than scipy's sort


@dataclass(frozen=True, eq=False)
class Truth:
    """What a bandit's learners are measured against.

    oracle: the plan of the LP (4)-(7) with the true model;  whittle: [N, S];  preferences: F [M, M]
    """

    bandit: Bandit
    oracle: Plan
    whittle: FloatArray
    preferences: FloatArray


class Errors(NamedTuple):
    """The errors of one plan; see the module."""

    index_error: float
    f_error: float
    p_error: float
    r_error: float


def truth(bandit: Bandit) -> Truth:
    """Everything about a bandit that does not change while it is played."""
    P, r = bandit.transitions, bandit.rewards
    # One engine for all: which of several optimal indices the oracle follows must not vary.
    oracle = plan(r, P, P, bandit.budget, engine="lagrangian", pays=bandit.pays)
    return Truth(bandit, oracle, whittle.indices(P, r, bandit.pays), win_chances(r))


def errors(learner: Learner, truth: Truth) -> Errors:
    """The errors of a plan just made (`replan`), and of the estimates it was made from."""
    if learner.plan is None:
        raise ValueError("there is no plan to measure yet: call replan() first")
    held, bandit = learner.estimates(), truth.bandit
    goal = truth.whittle if held.ranks_by == "whittle" else truth.oracle.index
    level = 0.0 if held.reference is None else bandit.rewards.flat[held.reference]
    return Errors(
        kendall(learner.plan.index, goal),
        _rms(held.preferences, truth.preferences),
        _rms(held.transitions, bandit.transitions),
        _rms(held.rewards, bandit.rewards - level),
    )


def rms(estimate: FloatArray, true: FloatArray) -> float:
    """Root mean square of the difference, over all entries."""
    gap = (estimate - true).ravel()
    return float(np.sqrt(gap @ gap / gap.size))


def _rms(estimate: FloatArray | None, true: FloatArray) -> float:
    return np.nan if estimate is None else rms(estimate, true)


def kendall(x: FloatArray, y: FloatArray) -> float:
    """Kendall's tau-b of two orders of the same things; NaN where one has only ties, or NaN."""
    x, y = np.round(x, 7).ravel(), np.round(y, 7).ravel()  # equal up to solver noise is equal
    if x.size > _ALL_PAIRS:
        return float(kendalltau(x, y).statistic)
    a, b = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    untied = float(np.vdot(a, a) * np.vdot(b, b))
    return float(np.vdot(a, b)) / np.sqrt(untied) if untied > 0 else np.nan
