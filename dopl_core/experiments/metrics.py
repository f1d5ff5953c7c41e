"""How far a learner is from the truth: the four errors of the paper's appendix F.

index_error is Kendall's tau, as the authors record it: 1 if the learner orders all arm-states as
the truth does, -1 if it reverses the order. So it rises as the other errors fall. The truth is the
oracle's LP index, for MLE_WIBQL and MLE_QWIC the Whittle index. Empty if the order is all ties.
The other three are root mean squares over all entries (the authors' plots of P and R show norms,
which are larger by the square root of the number of entries). Empty if there is no such estimate.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from dopl_core.experiments import whittle
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.estimates import Rows
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import Plan, plan
from dopl_core.learning.preferences import win_chances

_AT_ONCE = 1_000_000  # entries of F
_ALL_PAIRS = 500  # up to here all pairs at once are faster than scipy's sort


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth about a bandit, which learners are compared with.

    oracle: the plan of the LP (4)-(7) with the true model;  whittle: [N, S]
    preferences: returns rows of F, [., M]
    """

    bandit: Bandit
    oracle: Plan
    whittle: FloatArray
    preferences: Rows


class Errors(NamedTuple):
    """The errors of one plan, as the module defines them."""

    index_error: float
    f_error: float
    p_error: float
    r_error: float


def truth(bandit: Bandit) -> Truth:
    """The truth about a bandit; it does not change while the bandit is played."""
    P, r = bandit.transitions, bandit.rewards
    # Always the same engine: there may be several optimal indices, and the oracle must not vary.
    oracle = plan(r, P, P, bandit.budget, engine="lagrangian", pays=bandit.pays)
    few = r.size**2 <= _AT_ONCE
    F: Rows = win_chances(r).__getitem__ if few else partial(win_chances, r)
    return Truth(bandit, oracle, whittle.indices(P, r, bandit.pays), F)


def errors(learner: Learner, truth: Truth) -> Errors:
    """The errors of the learner's present plan, and of the estimates it was made from."""
    if learner.plan is None:
        raise ValueError("there is no plan to measure yet: call replan() first")
    held, bandit = learner.estimates(), truth.bandit
    goal = truth.whittle if held.ranks_by == "whittle" else truth.oracle.index
    level = 0.0 if held.reference is None else bandit.rewards.flat[held.reference]
    return Errors(
        kendall(learner.plan.index, goal),
        np.nan
        if held.preferences is None
        else f_error(held.preferences, truth.preferences, bandit.rewards.size),
        _rms(held.transitions, bandit.transitions),
        _rms(held.rewards, bandit.rewards - level),
    )


def _rms(estimate: FloatArray | None, true: FloatArray) -> float:
    """Root mean square of the difference, over all entries; NaN without an estimate."""
    if estimate is None:
        return np.nan
    gap = (estimate - true).ravel()
    return float(np.sqrt(gap @ gap / gap.size))


def f_error(estimate: Rows, true: Rows, M: int) -> float:
    """Root mean square over all entries of F [M, M], computed in blocks of rows."""
    block = max(1, _AT_ONCE // M)
    squares = 0.0
    for start in range(0, M, block):
        at = slice(start, start + block)
        gap = (estimate(at) - true(at)).ravel()
        squares += float(gap @ gap)
    return float(np.sqrt(squares / M**2))


def kendall(x: FloatArray, y: FloatArray) -> float:
    """Kendall's tau-b of two orders; NaN if one has only ties, or contains NaN."""
    x, y = np.round(x, 7).ravel(), np.round(y, 7).ravel()  # differences up to solver noise are ties
    if x.size > _ALL_PAIRS:
        return float(kendalltau(x, y).statistic)
    a, b = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    untied = float(np.vdot(a, a) * np.vdot(b, b))
    return float(np.vdot(a, b)) / np.sqrt(untied) if untied > 0 else np.nan
