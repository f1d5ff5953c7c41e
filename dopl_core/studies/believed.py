"""What is believed of the weeks to come: the list, chance and nobody's help by the same beliefs.

Never an optimistic value against a mean one: whole truths are drawn (learning/draws.py), and in
each of them every way of helping meets the same luck.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from dopl_core.learning.bandit import ACT, WAIT, FloatArray, IntArray
from dopl_core.learning.planning import plan
from dopl_core.learning.planning.problem import Pays
from dopl_core.studies.working import LEVEL, Estimate, summed_up

AHEAD = 26  # weeks
# How likely it seems beforehand that help makes no difference in a state. Without this, a list is
# worth what luck has made it seem: those are on it whom help seemed to do most for.
IDLE = 0.12
WIDER = 1.05  # than drawn intervals are; it and IDLE were found with bench working


class Worth(NamedTuple):
    """How many are in the better half, on average of the weeks to come; and the list's gains."""

    by_list: Estimate
    by_chance: Estimate
    by_nobody: Estimate
    over_chance: Estimate
    over_nobody: Estimate


def ahead(
    transitions: FloatArray,
    pay: FloatArray,
    priority: FloatArray,
    states: IntArray,
    budget: int,
    rng: np.random.Generator,
    weeks: int = AHEAD,
    times: int = 1,
) -> FloatArray:
    """What all arms together have a week, by the list, by chance and without any help: [d, 3].

    Expected, as far as the mean over so many times of luck is.

    transitions: [d, n, s, a, s'];  pay: [d, n, s] or [n, s];  priority: [n, s], ties by lot
    states: [n] where they begin
    """
    drawn, N, S = transitions.shape[:3]
    D = drawn * times
    # Flat arrays and where in them an arm's states begin: much faster than three indices a move.
    up_to = np.moveaxis(transitions.cumsum(axis=4)[..., :-1], 4, 0).reshape(S - 1, -1)
    pay = np.broadcast_to(pay, (drawn, *pay.shape[-2:])).ravel()
    arm = np.arange(N) * S
    place = np.repeat(np.arange(drawn), times)[:, None] * N * S + arm  # [D, n]
    now = np.broadcast_to(states, (3, D, N)).copy()
    total = np.zeros((D, 3))
    for _ in range(weeks):
        lots, luck = rng.random((2, D, N))
        for way in range(3):
            here = now[way]
            helped = np.full((D, N), WAIT)
            if way < 2:
                urgent = lots + (priority.ravel()[arm + here] if way == 0 else 0.0)
                chosen = np.argpartition(urgent, N - budget, axis=1)[:, N - budget :]
                np.put_along_axis(helped, chosen, ACT, axis=1)
            row = 2 * (place + here) + helped
            here[:] = sum((luck >= below[row]).astype(np.int64) for below in up_to)
            total[:, way] += pay[place + here].sum(axis=1)
    return np.asarray(total.reshape(drawn, times, 3).mean(axis=1) / weeks)


def worth(had: FloatArray) -> Worth:
    """What the list, chance and nobody's help are worth, from what they have had [d, 3]."""
    gains = [had[:, 0] - had[:, way] for way in (1, 2)]
    return Worth(*(summed_up(way, wider=WIDER) for way in (*had.T, *gains)))


def belonging(
    transitions: FloatArray,
    strengths: FloatArray,
    states: IntArray,
    budget: int,
    pays: Pays = "all",
) -> NDArray[np.bool_]:
    """Whom a plan that knew the truth would help now, for each draw of the truth [d, n].

    transitions: [d, n, s, a, s'];  strengths: [d, n, s];  states: [n]
    """
    found = np.zeros(strengths.shape[:2], dtype=bool)
    start, arm = None, np.arange(len(states))
    for truth, P, Q in zip(found, transitions, strengths, strict=True):
        made = plan(Q, P, P, budget, engine="lagrangian", pays=pays, start=start)
        start = made.start
        truth[np.argsort(-made.advantage[arm, states], kind="stable")[:budget]] = True
    return found


def chance(found: NDArray[np.bool_]) -> FloatArray:
    """The chance [n] to belong, from whom the draws [d, n] would help: with half the log-odds.

    Where somebody was hardly ever seen without help, all draws agree about them by what is true of
    others, and others are not always like them: of those of whom 9 in 10 draws say that they belong
    two in three do (bench working).
    """
    counted = (found.sum(axis=0) + 0.5) / (len(found) + 1)
    return np.asarray(expit(logit(counted) / 2))


def how_many(chances: FloatArray) -> Estimate:
    """How many of those with chances [n] to belong do, each for themselves."""
    mean, sd = float(chances.sum()), float(np.sqrt((chances * (1 - chances)).sum()))
    reach = float(ndtri((1 + LEVEL) / 2)) * sd
    return Estimate(mean, max(mean - reach, 0.0), min(mean + reach, len(chances)), 1.0)


def learnt_from(covariance: FloatArray, pairs: IntArray, strengths: FloatArray) -> FloatArray:
    """How far strengths [m] may move by answers to pairs [k, 2] of codes: a factor F [m, k].

    The mean after the answers is the mean now plus F times standard normal numbers: F F' is what
    the covariance [m, m] loses by them.
    """
    left, right = pairs.T
    towards = covariance[:, left] - covariance[:, right]  # [m, k]
    between = towards[left] - towards[right]
    gap = strengths[left] - strengths[right]
    noise = 2 + 2 * np.cosh(gap)  # 1 / (p (1 - p)) of a duel
    known, basis = np.linalg.eigh(between + np.diag(noise))
    return np.asarray(towards @ (basis / np.sqrt(known)))
