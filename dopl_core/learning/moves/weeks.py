"""What changes with time: seasons, and help that wears off or works late.

Rows say how people move in all weeks alike. What the recent weeks say beyond that is learnt from
what is left over: how much further up each move went than its row says. Of each row a tilt changes
slowly with the weeks, a first-order autoregressive process, which a Kalman filter follows. Whether
there is a season, and how large, is averaged by evidence, so that chance is rarely taken for one.

Axes: k spreads, w weeks, n people, r rows (row 2 s + a), m moves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray
from dopl_core.learning.log_space import softmax
from dopl_core.learning.moves.tilts import scores

SPREADS = np.array([0.0, 0.15, 0.3])  # of tilts
LIKELY = np.array([0.8, 0.1, 0.1])  # beforehand; 0 is no season
PERSISTENCE = np.exp(-1 / 20)  # the correlation of the tilts of two weeks that follow each other
KEPT = 30  # weeks; those before them would hardly count
REPEATS = 4  # weeks before, of which help may wear off
BEFOREHAND = 0.3  # standard deviation of what earlier help does to a tilt
WEARS_OFF = 0.1  # probability, beforehand, that help does less or more after earlier help

Recent = NDArray[np.int16]  # [w, 3, n] states, 1 if helped, next states; the newest week last


class Season(NamedTuple):
    """The tilt of each row in the next week: mean [r] and covariance [r, r]."""

    tilt: FloatArray
    covariance: FloatArray


class LeftOver(NamedTuple):
    """What moves say beyond their rows, all [m]: how much further up each went; its variance."""

    week: IntArray
    person: IntArray
    row: IntArray
    further: FloatArray
    variance: FloatArray


def nothing_yet(n_arms: int) -> Recent:
    """The recent moves before there are any."""
    return np.empty((0, 3, n_arms), dtype=np.int16)


def remembered(recent: Recent, states: IntArray, helped: IntArray, next_states: IntArray) -> Recent:
    """With the moves of a week, [N], or of several, [E, N]; arms may be new."""
    new = _weeks(states, helped, next_states)
    return np.concatenate([of_arms(recent, new.shape[2]), new])[-KEPT:]


def revised(
    recent: Recent, ago: int, states: IntArray, helped: IntArray, next_states: IntArray
) -> Recent:
    """With other moves in the week that was `ago` weeks before the last one."""
    right = _weeks(states, helped, next_states)
    kept = of_arms(recent, right.shape[2])
    if len(right) and ago < len(kept):
        kept[len(kept) - 1 - ago] = right[-1]
    return kept


def _weeks(*moves: IntArray) -> Recent:
    return np.stack([np.atleast_2d(part) for part in moves], axis=1).astype(np.int16)


def of_arms(recent: Recent, n_arms: int) -> Recent:
    """A copy in which arms that are new since made no moves."""
    new = n_arms - recent.shape[2]
    return np.pad(recent, ((0, 0), (0, 0), (0, new)), constant_values=UNKNOWN)


def left_over(recent: Recent, rows: FloatArray) -> LeftOver:
    """What recent moves say beyond the rows [n, r, t] of their people."""
    x = scores(rows.shape[2])
    mean = rows @ x
    variance = rows @ x**2 - mean**2
    states, helped, then = recent.astype(np.int64).transpose(1, 0, 2)
    week, person = np.nonzero((states != UNKNOWN) & (then != UNKNOWN))
    row = 2 * states[week, person] + helped[week, person]
    further = x[then[week, person]] - mean[person, row]
    return LeftOver(week, person, row, further, variance[person, row])


def season(moves: LeftOver, n_weeks: int, n_rows: int) -> FloatArray:
    """The expected tilt of each row [r] in the next week."""
    return next_season(moves, n_weeks, n_rows).tilt


def next_season(moves: LeftOver, n_weeks: int, n_rows: int) -> Season:
    """The tilt of each row in the next week, averaged over all spreads.

    The likelihood of a tilt y in a week is about exp(pull y - variance y^2 / 2).
    """
    cell = moves.week * n_rows + moves.row
    sums = (np.bincount(cell, part, n_weeks * n_rows) for part in (moves.further, moves.variance))
    pull, variance = (part.reshape(n_weeks, n_rows) for part in sums)
    spread = SPREADS[:, None] ** 2
    tilt, unsure = np.zeros((len(SPREADS), n_rows)), np.tile(spread, n_rows)
    log = np.log(LIKELY)
    for u, v in zip(pull, variance, strict=True):
        surprise, known = u - v * tilt, 1 + v * unsure
        evidence = (u - v * tilt / 2) * tilt + (unsure * surprise**2 / known - np.log(known)) / 2
        log = log + evidence.sum(axis=1)
        tilt = PERSISTENCE * (tilt + unsure * surprise / known)
        unsure = PERSISTENCE**2 * unsure / known + (1 - PERSISTENCE**2) * spread
    chance = softmax(log)
    mean = chance @ tilt
    off = tilt - mean
    return Season(mean, np.diag(chance @ unsure) + (chance[:, None] * off).T @ off)


def wearing_off(recent: Recent, moves: LeftOver, n_rows: int) -> FloatArray:
    """The expected tilt [n, r] of moves with help, by how often people were helped lately.

    A ridge on what earlier help leaves over, with two terms: for each time helped in the weeks
    before, on moves with help; and for help in the last week, on all moves. Within a row, rows
    already say what help does on average, so a term counts as it differs from its mean in the row.
    The first is weighed by the evidence for it against none (the Savage-Dickey ratio).
    """
    times, before = past_help(recent)
    then, acted = times[moves.week, moves.person], moves.row % 2
    terms = np.stack([then * acted, before[moves.week, moves.person]])
    total = np.maximum(np.bincount(moves.row, moves.variance, n_rows), 1e-12)
    for term in terms:
        term -= (np.bincount(moves.row, moves.variance * term, n_rows) / total)[moves.row]
    covariance = np.linalg.inv((terms * moves.variance) @ terms.T + np.eye(2) / BEFOREHAND**2)
    size, variance = (covariance @ (terms @ moves.further))[0], covariance[0, 0]
    evidence = (size**2 / variance + np.log(variance / BEFOREHAND**2)) / 2
    size *= expit(evidence + logit(WEARS_OFF))
    usual = then @ acted / max(acted.sum(), 1)
    return np.asarray(size * (times[-1] - usual)[:, None] * (np.arange(n_rows) % 2))


def past_help(recent: Recent) -> tuple[FloatArray, FloatArray]:
    """How often people were helped in the REPEATS weeks before each week, and in the last one.

    Both [w+1, n]; the last entry is of the week that comes.
    """
    helped = np.pad(recent[:, 1] == 1, ((1, 0), (0, 0))).astype(float)
    total = helped.cumsum(axis=0)
    times = total.copy()
    times[REPEATS:] -= total[:-REPEATS]
    return times, helped
