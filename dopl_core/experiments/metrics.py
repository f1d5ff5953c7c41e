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
from dopl_core.experiments.baselines import MleLp
from dopl_core.experiments.whittle import MleQwic, MleWibql
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.learner import Dopl, Learner
from dopl_core.learning.planning import Plan, plan
from dopl_core.learning.preferences import F_HIGH, F_LOW, Preferences, empirical
from dopl_core.world import bradley_terry

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
    return Truth(bandit, oracle, whittle.indices(P, r, bandit.pays), matrix(r))


def errors(learner: Learner, truth: Truth) -> Errors:
    """The errors of a plan just made (`replan`), and of the estimates it was made from."""
    if learner.plan is None:
        raise ValueError("there is no plan to measure yet: call replan() first")
    index = learner.plan.index
    f = p = r = np.nan
    goal = truth.oracle.index
    if isinstance(learner, Dopl) and learner.preferences and learner.dynamics:
        beliefs = learner.preferences
        p = rms(learner.dynamics.mean, truth.bandit.transitions)
        f = rms(_preferences(learner, beliefs), truth.preferences)
        if beliefs.reference is not None:
            Q = truth.bandit.rewards - truth.bandit.rewards.flat[beliefs.reference]
            r = rms(beliefs.overestimate, Q)
    elif isinstance(learner, MleLp | MleWibql | MleQwic):
        r = rms(learner.fit.rewards, truth.bandit.rewards)
        f = rms(matrix(learner.fit.rewards), truth.preferences)
        if isinstance(learner, MleLp):
            p = rms(learner.transitions, truth.bandit.transitions)
        else:
            goal = truth.whittle
    return Errors(kendall(index, goal), f, p, r)


def matrix(strengths: FloatArray) -> FloatArray:
    """F [M, M] of strengths [N, S]: the chance that the row's arm-state is preferred (eq. (2))."""
    flat = strengths.ravel()
    return bradley_terry(flat[:, None] - flat)


def rms(estimate: FloatArray, true: FloatArray) -> float:
    """Root mean square of the difference, over all entries."""
    gap = (estimate - true).ravel()
    return float(np.sqrt(gap @ gap / gap.size))


def kendall(x: FloatArray, y: FloatArray) -> float:
    """Kendall's tau-b of two orders of the same things; NaN where one has only ties, or NaN."""
    x, y = np.round(x, 7).ravel(), np.round(y, 7).ravel()  # equal up to solver noise is equal
    if x.size > _ALL_PAIRS:
        return float(kendalltau(x, y).statistic)
    a, b = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    untied = float(np.vdot(a, a) * np.vdot(b, b))
    return float(np.vdot(a, b)) / np.sqrt(untied) if untied > 0 else np.nan


def _preferences(learner: Dopl, beliefs: Preferences) -> FloatArray:
    """F^ [M, M]: counted and inferred with the paper's confidence, else as the strengths imply."""
    if learner.confidence == "calibrated" or beliefs.reference is None:
        return matrix(beliefs.mean)
    F = np.clip(empirical(learner.wins)[0], F_LOW, F_HIGH)
    column = bradley_terry(beliefs.mean.ravel())
    F[:, beliefs.reference], F[beliefs.reference] = column, 1 - column
    return F
