"""Which B-1 pairs of the activated arms are asked about: always a spanning tree (errata 14)."""

from typing import Literal

import numpy as np

from dopl_core.bandit import FloatArray, IntArray

Design = Literal["star", "tree", "informative"]


def keys_needed(budget: int) -> int:
    """How many uniform numbers the duels of one epoch are drawn with."""
    return 2 * budget


def star(keys: FloatArray) -> IntArray:
    """Every arm against a random centre (the paper's Example 2); positions [B-1, 2]."""
    B = len(keys) // 2
    centre = int(keys[0] * B)
    others = np.arange(B - 1)
    others[centre:] += 1
    return np.stack([np.full(B - 1, centre), others], axis=1)


def tree(keys: FloatArray) -> IntArray:
    """A uniformly random tree, decoded from a random Prüfer sequence; positions [B-1, 2]."""
    B = len(keys) // 2
    sequence = (keys[: B - 2] * B).astype(int).tolist()
    degree = [1] * B
    for node in sequence:
        degree[node] += 1
    edges = []
    for node in sequence:
        leaf = degree.index(1)
        edges.append((leaf, node))
        degree[leaf] = 0
        degree[node] -= 1
    last = degree.index(1)
    edges.append((last, degree.index(1, last + 1)))
    return np.array(edges)


def shuffle_sides(pairs: IntArray, keys: FloatArray) -> IntArray:
    """Each pair as left and right, at random, so that no side is favoured."""
    swap = keys[len(keys) // 2 :][: len(pairs), None] < 0.5
    return np.where(swap, pairs[:, ::-1], pairs)
