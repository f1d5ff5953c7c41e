"""Whether help wears off, and whether it still works a week later, in shares of people.

The log-odds of better states after a move (learning/moves/tilts.py) have one term for each time
helped in the weeks before, on moves with help, and one for help in the week before, on all moves.
Help is not random: the worse people do, the more often they are helped, and both change with the
weeks. So people, weeks and rows have terms, too, estimated together with these two. Without the
terms of people, help seemed to wear off in 30 % of simulated clinics where it did not.

Times the slope of the chance to be better off, a term is a difference of two shares of people.
Axes: m moves, n people, r rows (row 2 s + a), k terms: earlier help (2), rows, weeks.
"""

from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import ACT, FloatArray, IntArray, better_states
from dopl_core.learning.learner import Learner
from dopl_core.learning.moves import tilts, weeks
from dopl_core.learning.moves.weeks import BEFOREHAND, LeftOver, Recent
from dopl_core.studies.analysis.effect_of_help import (
    UNKNOWN_ESTIMATE,
    Estimate,
    normal_estimate,
)

WEEKS_BEFORE = weeks.REPEATS
OF_ROWS, OF_WEEKS = 10.0, 0.3  # standard deviations of terms, beforehand
OF_PEOPLE, WORTH = 0.04, 5.0  # the variance of people's terms beforehand, and its worth in people
ROUNDS = 15  # of expectation and maximisation


class EarlierHelp(NamedTuple):
    """How earlier help changes the chance to be better off after a week.

    again: with help, for each time helped in the WEEKS_BEFORE before
    later: with help or without, for help in the week before
    """

    again: Estimate
    later: Estimate


NOT_KNOWN = EarlierHelp(UNKNOWN_ESTIMATE, UNKNOWN_ESTIMATE)


def of_learner(learner: Learner) -> EarlierHelp:
    """What the learner's recent moves say; NOT_KNOWN where it does not keep them."""
    kept = learner.state().get("recent")
    if kept is None or not learner.has_posterior:
        return NOT_KNOWN
    P = learner.known_dynamics().mean
    recent = kept[:, :, : len(P)]  # people who joined since the plan have no rows yet
    N, S = P.shape[:2]
    rows = P.mean(axis=0)
    moves = weeks.left_over(recent, np.broadcast_to(rows.reshape(2 * S, S), (N, 2 * S, S)))
    helped = moves.row % 2 == ACT
    if len(recent) < 2 or not helped.any():
        return NOT_KNOWN
    mean, covariance = fit(recent, moves, 2 * S)
    error = np.sqrt(covariance.diagonal())
    slope = tilts.slopes(rows, better_states(S)[:, None]).ravel()[moves.row]
    again, later = slope[helped].mean(), slope.mean()
    return EarlierHelp(
        normal_estimate(again * mean[0], again * error[0]),
        normal_estimate(later * mean[1], later * error[1]),
    )


def fit(recent: Recent, moves: LeftOver, n_rows: int) -> tuple[FloatArray, FloatArray]:
    """Mean [2] and covariance [2, 2] of the terms of earlier help, in log-odds.

    With what the terms add to the tilts of moves, X [m, k] in standard deviations beforehand, and
    the moves' variances v [m], the normal equations are of X'vX + 1. A term of each person is
    eliminated from them. Its variance is learnt.
    """
    W, _, N = recent.shape
    v, person = moves.variance, moves.person
    times, before = weeks.past_help(recent)
    earlier = times[moves.week, person] * (moves.row % 2), before[moves.week, person]
    sizes = np.repeat([BEFOREHAND, OF_ROWS, OF_WEEKS], [2, n_rows, W])

    def sums(weight: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
        """Of weight X over the moves of each group [g, k]; of rows and weeks X has one entry."""
        parts = [np.bincount(group, weight * part, n_groups)[:, None] for part in earlier]
        for code, n_codes in ((moves.row, n_rows), (moves.week, W)):
            crossed = np.bincount(group * n_codes + code, weight, n_groups * n_codes)
            parts.append(crossed.reshape(n_groups, n_codes))
        return sizes * np.concatenate(parts, axis=1)

    one = np.zeros_like(person)
    products = [sums(v * part, one, 1) for part in earlier]
    products += [sums(v, moves.row, n_rows), sums(v, moves.week, W)]
    precision = np.eye(len(sizes)) + sizes[:, None] * np.concatenate(products)
    towards, meets = sums(moves.further, one, 1)[0], sums(v, person, N)
    weight, pull = (np.bincount(person, part, N) for part in (v, moves.further))
    variance = OF_PEOPLE
    for _ in range(ROUNDS):
        own = 1 / (weight + 1 / variance)
        covariance = np.asarray(np.linalg.inv(precision - (meets.T * own) @ meets), dtype=float)
        beta = covariance @ (towards - meets.T @ (own * pull))
        square = (own * (pull - meets @ beta)) ** 2 + own
        square += own**2 * ((meets @ covariance) * meets).sum(axis=1)
        variance = (square.sum() + WORTH * OF_PEOPLE) / (N + WORTH)
    return BEFOREHAND * beta[:2], BEFOREHAND**2 * covariance[:2, :2]
