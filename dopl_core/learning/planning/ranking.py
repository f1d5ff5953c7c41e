"""The order in which a plan serves arm-states."""

import numpy as np

from dopl_core.learning.bandit import FloatArray


def rank(*merits: FloatArray) -> FloatArray:
    """Dense ranks by the first merit, ties by the next; differences up to solver noise are ties.

    A vertex of the ELP has at most one fractional index: ranked by it alone, nearly all are tied.
    """
    keys = [merit.round(7).ravel() for merit in merits]
    order = np.lexsort(keys[::-1])
    rises = np.zeros(order.size, dtype=bool)
    for key in keys:
        key = key[order]
        rises[1:] |= key[1:] != key[:-1]
    ranks = np.empty(order.size)
    ranks[order] = rises.cumsum()
    return ranks.reshape(merits[0].shape)
