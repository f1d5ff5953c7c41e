"""Seasons: how arms moved lately, where that differs from how they moved before.

Estimates of rows count all moves alike. If everybody's moves change with time, the latest say more
of the next epoch. So each row (a state and an action) is tilted towards better or worse states, for
all arms alike: log q[n, r, s] = log p[n, r, s] + tilt[r] Z[s] + constant. The tilt is the one that
explains recent moves, less the one that explains all moves, each with the prior N(0, SPREAD^2).
While all moves are recent, both are the same and nothing is tilted.

Axes: w epochs, n arms, r rows (row 2 s + a), s next states.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray
from dopl_core.learning.dynamics import Dynamics

FADING = 10.0  # epochs after which a move counts 1/e as much as a new one
KEPT = 30  # epochs; moves before them would count less than a twentieth
SPREAD = 0.3  # of tilts, in log-odds between the worst and the best next state
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


def counted(recent: Recent, n_arms: int, n_states: int) -> FloatArray:
    """The recent moves [n, r, s], each counted the less the older it is."""
    states, helped, then = recent.astype(np.int64).transpose(1, 0, 2)
    known = (states != UNKNOWN) & (then != UNKNOWN)
    age = np.arange(len(recent))[::-1, None]
    weight = np.broadcast_to(np.exp(-age / FADING), known.shape)
    codes = (np.arange(recent.shape[2]) * n_states + states) * 2 + helped
    shape = (n_arms, 2 * n_states, n_states)
    codes = (codes * n_states + then)[known]
    found = np.bincount(codes, weight[known], minlength=int(np.prod(shape)))
    return found.reshape(shape).astype(float)


def in_season(found: Dynamics, visits: IntArray, recent: Recent) -> Dynamics:
    """What is believed of the moves of the next epoch; visits: [N, S, A, S'] of all epochs."""
    if not len(recent):
        return found
    N, S = visits.shape[:2]
    shape = (N, 2 * S, S)
    p = np.maximum(found.mean.reshape(shape), 1e-12)
    lately = tilts(counted(recent, N, S), p)
    tilt = lately - tilts(visits.reshape(shape).astype(float), p)
    mean = _tilted(p, tilt).reshape(visits.shape)
    low, high = (np.clip(mean + edge - found.mean, 0, 1) for edge in (found.low, found.high))
    return replace(found, mean=mean, low=low, high=high)


def tilts(n: FloatArray, p: FloatArray) -> FloatArray:
    """The most likely tilt of each row [r], from moves n [n, r, s] of arms with the rows p."""
    Z = scores(p.shape[2])
    total, upward = n.sum(axis=2), (n @ Z).sum(axis=0)
    tilt = np.zeros(p.shape[1])
    for _ in range(STEPS):
        q = _tilted(p, tilt)
        mean = q @ Z
        uphill = upward - (total * mean).sum(axis=0) - tilt / SPREAD**2
        precision = (total * (q @ Z**2 - mean**2)).sum(axis=0) + 1 / SPREAD**2
        tilt = tilt + uphill / precision
    return tilt


def scores(n_states: int) -> FloatArray:
    """How far up each next state is [s], between -1/2 and 1/2."""
    return np.linspace(-0.5, 0.5, n_states)


def _tilted(p: FloatArray, tilt: FloatArray) -> FloatArray:
    q = p * np.exp(tilt[:, None] * scores(p.shape[2]))
    return np.asarray(q / q.sum(axis=2, keepdims=True))
