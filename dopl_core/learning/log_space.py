"""Sums and shares of numbers that are given by their logs.

scipy has both, and takes some ten times as long for the small arrays of a plan.
"""

import numpy as np
from numpy.typing import ArrayLike

from dopl_core.learning.bandit import FloatArray

Axis = int | tuple[int, ...] | None


def softmax(log: ArrayLike, axis: Axis = None) -> FloatArray:
    """Shares that sum to 1 along the axes; all axes if None. One of each sum is finite."""
    log = np.asarray(log, dtype=np.float64)
    shares = np.exp(log - log.max(axis=axis, keepdims=True))
    return np.asarray(shares / shares.sum(axis=axis, keepdims=True))


def logsumexp(log: ArrayLike, axis: Axis = None) -> FloatArray:
    """The log of the sum along the axes; all axes if None. One of each sum is finite."""
    log = np.asarray(log, dtype=np.float64)
    most = log.max(axis=axis, keepdims=True)
    total = np.log(np.exp(log - most).sum(axis=axis, keepdims=True)) + most
    return np.asarray(np.squeeze(total, axis=axis))
