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
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from dopl_core.learning.bandit import ACT, FloatArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.moves import tilts, weeks
from dopl_core.learning.moves.weeks import BEFOREHAND, LeftOver, Recent
from dopl_core.learning.places.reported_weeks import better_states
from dopl_core.studies.analysis.effect_of_help import LEVEL, UNKNOWN_ESTIMATE, Estimate

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
    mean, covariance = fit(moves, terms(recent, moves, 2 * S), N)
    error = np.sqrt(covariance.diagonal())
    slope = slopes(rows).ravel()[moves.row]
    return EarlierHelp(
        _estimate(mean[0], error[0], slope[helped].mean()),
        _estimate(mean[1], error[1], slope.mean()),
    )


def terms(recent: Recent, moves: LeftOver, n_rows: int) -> FloatArray:
    """What the terms add to the tilt of each move, in standard deviations beforehand: [m, k]."""
    times, before = weeks.past_help(recent)
    where = moves.week, moves.person
    earlier = BEFOREHAND * np.stack([times[where] * (moves.row % 2), before[where]], axis=1)
    of_row, of_week = np.eye(n_rows)[moves.row], np.eye(len(recent))[moves.week]
    return np.concatenate([earlier, OF_ROWS * of_row, OF_WEEKS * of_week], axis=1)


def fit(moves: LeftOver, X: FloatArray, n_people: int) -> tuple[FloatArray, FloatArray]:
    """Mean [2] and covariance [2, 2] of the first two terms, in log-odds; X: [m, k].

    A term of each person is eliminated from the normal equations. Its variance is learnt.
    """
    v, u = moves.variance, moves.further
    at = moves.person, np.arange(len(v))
    of_person = csr_array((np.ones(len(v)), at), shape=(n_people, len(v)))
    few, weighted = csr_array(X), csr_array(v[:, None] * X)  # most entries are 0
    weight, pull, meets = of_person @ v, of_person @ u, (of_person @ weighted).toarray()
    precision, towards = np.eye(X.shape[1]) + (few.T @ weighted).toarray(), X.T @ u
    variance = OF_PEOPLE
    for _ in range(ROUNDS):
        own = 1 / (weight + 1 / variance)
        covariance = np.asarray(np.linalg.inv(precision - (meets.T * own) @ meets), dtype=float)
        beta = covariance @ (towards - meets.T @ (own * pull))
        square = (own * (pull - meets @ beta)) ** 2 + own
        square += own**2 * ((meets @ covariance) * meets).sum(axis=1)
        variance = (square.sum() + WORTH * OF_PEOPLE) / (n_people + WORTH)
    return BEFOREHAND * beta[:2], BEFOREHAND**2 * covariance[:2, :2]


def slopes(rows: FloatArray) -> FloatArray:
    """How fast the chance to be better off rises with the tilt of rows: [s, a]; rows: [s, a, s']"""
    S = len(rows)
    x = tilts.scores(S) - (rows @ tilts.scores(S))[..., None]
    return np.asarray(np.einsum("sat,sat,st->sa", rows, x, better_states(S).astype(float)))


def _estimate(mean: float, error: float, slope: float) -> Estimate:
    reach = float(ndtri((1 + LEVEL) / 2)) * error
    found = (slope * mean, slope * (mean - reach), slope * (mean + reach), ndtr(mean / error))
    return Estimate(*(float(x) for x in found))
