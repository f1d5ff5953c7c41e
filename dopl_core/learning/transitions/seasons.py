"""Seasons: how arms moved lately, where that differs from how they moved before.

Estimates of rows count all moves alike. If everybody's moves change with time, the latest say more
of the next epoch. So each row (a state and an action) is tilted towards better or worse states, for
all arms alike: log q[n, r, s] = log p[n, r, s] + tilt[r] Z[s] + constant. A tilt is a deviation
from what all epochs have in common. It changes as a first-order autoregressive process, and a
Kalman filter predicts it for the next epoch. Whether there is a season, and how large its tilts
are, is averaged by evidence, so that chance is rarely taken for a season.

Axes: k spreads, w epochs, n arms, r rows (row 2 s + a), s next states.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray
from dopl_core.learning.log_space import softmax
from dopl_core.learning.transitions.dynamics import Dynamics

SPREADS = np.array([0.0, 0.3, 0.6])  # of tilts, in log-odds between the worst and best next state
LIKELY = np.array([0.8, 0.1, 0.1])  # beforehand; 0 is no season
PERSISTENCE = np.exp(-1 / 20)  # the correlation of the tilts of two epochs that follow each other
KEPT = 30  # epochs; those before them would hardly count
COMMON_SPREAD = 1.0  # of the tilt that all epochs have in common
STEPS = 3  # of Newton's method; the prior keeps tilts small, so it is close by then

Recent = NDArray[np.int16]  # [w, 3, n] states, 1 if helped, next states; the newest epoch last


def nothing_yet(n_arms: int) -> Recent:
    """The recent moves before there are any."""
    return np.empty((0, 3, n_arms), dtype=np.int16)


def remembered(recent: Recent, states: IntArray, helped: IntArray, next_states: IntArray) -> Recent:
    """With the moves of an epoch, [N], or of several, [E, N]; arms may be new."""
    new = _epochs(states, helped, next_states)
    return np.concatenate([_of_arms(recent, new.shape[2]), new])[-KEPT:]


def revised(
    recent: Recent, ago: int, states: IntArray, helped: IntArray, next_states: IntArray
) -> Recent:
    """With other moves in the epoch that was `ago` epochs before the last one."""
    right = _epochs(states, helped, next_states)
    kept = _of_arms(recent, right.shape[2])
    if len(right) and ago < len(kept):
        kept[len(kept) - 1 - ago] = right[-1]
    return kept


def _epochs(*moves: IntArray) -> Recent:
    return np.stack([np.atleast_2d(part) for part in moves], axis=1).astype(np.int16)


def _of_arms(recent: Recent, n_arms: int) -> Recent:
    """A copy in which arms that are new since made no moves."""
    new = n_arms - recent.shape[2]
    return np.pad(recent, ((0, 0), (0, 0), (0, new)), constant_values=UNKNOWN)


def in_season(found: Dynamics, visits: IntArray, recent: Recent) -> Dynamics:
    """What is believed of the moves of the next epoch; visits: [N, S, A, S'] of all epochs."""
    if len(recent) < 2:
        return found
    N, S = visits.shape[:2]
    shape = (N, 2 * S, S)
    p = np.maximum(found.mean.reshape(shape), 1e-12)
    common = tilts(visits.reshape(shape).astype(float), p)
    tilt = predicted(*residuals(recent, _tilted(p, common)))
    mean = _tilted(p, tilt).reshape(visits.shape)
    low, high = (np.clip(mean + edge - found.mean, 0, 1) for edge in (found.low, found.high))
    return replace(found, mean=mean, low=low, high=high)


def residuals(recent: Recent, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What each epoch says of the tilts of rows, where arms have the rows p [n, r, s].

    Both [w, r]: how much further up the moves went than expected, and its variance. The likelihood
    of a tilt t is about exp(pull t - variance t^2 / 2).
    """
    Z, rows = scores(p.shape[2]), p.shape[1]
    mean = p @ Z
    variance = p @ Z**2 - mean**2
    states, helped, then = recent.astype(np.int64).transpose(1, 0, 2)
    epoch, arm = np.nonzero((states != UNKNOWN) & (then != UNKNOWN))
    row = 2 * states[epoch, arm] + helped[epoch, arm]
    further = Z[then[epoch, arm]] - mean[arm, row]

    def summed(values: FloatArray) -> FloatArray:
        found = np.bincount(epoch * rows + row, values, minlength=len(recent) * rows)
        return found.reshape(len(recent), rows).astype(np.float64)

    return summed(further), summed(variance[arm, row])


def predicted(pull: FloatArray, variance: FloatArray) -> FloatArray:
    """The expected tilt of each row [r] in the next epoch, from the residuals [w, r] so far."""
    spread = SPREADS[:, None] ** 2
    tilt, unsure = np.zeros((len(SPREADS), pull.shape[1])), spread
    log = np.log(LIKELY)
    for u, v in zip(pull, variance, strict=True):
        surprise, known = u - v * tilt, 1 + v * unsure
        evidence = (u - v * tilt / 2) * tilt + (unsure * surprise**2 / known - np.log(known)) / 2
        log = log + evidence.sum(axis=1)
        tilt = PERSISTENCE * (tilt + unsure * surprise / known)
        unsure = PERSISTENCE**2 * unsure / known + (1 - PERSISTENCE**2) * spread
    return np.asarray(softmax(log) @ tilt)


def tilts(n: FloatArray, p: FloatArray) -> FloatArray:
    """The most likely tilt of each row [r], from moves n [n, r, s] of arms with the rows p."""
    Z = scores(p.shape[2])
    total, upward = n.sum(axis=2), (n @ Z).sum(axis=0)
    tilt = np.zeros(p.shape[1])
    for _ in range(STEPS):
        q = _tilted(p, tilt)
        mean = q @ Z
        uphill = upward - (total * mean).sum(axis=0) - tilt / COMMON_SPREAD**2
        precision = (total * (q @ Z**2 - mean**2)).sum(axis=0) + 1 / COMMON_SPREAD**2
        tilt = tilt + uphill / precision
    return tilt


def scores(n_states: int) -> FloatArray:
    """How far up each next state is [s], between -1/2 and 1/2."""
    return np.linspace(-0.5, 0.5, n_states)


def _tilted(p: FloatArray, tilt: FloatArray) -> FloatArray:
    q = p * np.exp(tilt[:, None] * scores(p.shape[2]))
    return np.asarray(q / q.sum(axis=2, keepdims=True))
