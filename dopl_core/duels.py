"""Which B-1 pairs of the activated arms are asked about: always a spanning tree (errata 14)."""

from typing import Literal

import numpy as np

from dopl_core.bandit import FloatArray, IntArray

Design = Literal["star", "tree", "informative"]


def keys_needed(budget: int) -> int:
    """How many uniform numbers the duels of one epoch are drawn with."""
    return 2 * budget


def star(keys: FloatArray) -> IntArray:
    """Every arm against a random centre (the paper's Example 2).

    keys: [H, 2B], a row an epoch;  gives positions [H, B-1, 2] among the activated arms
    """
    H, B = len(keys), keys.shape[1] // 2
    centre = (keys[:, :1] * B).astype(np.int64)
    others = np.arange(B - 1) + (np.arange(B - 1) >= centre)
    return np.stack([np.broadcast_to(centre, (H, B - 1)), others], axis=2)


def tree(keys: FloatArray) -> IntArray:
    """A uniformly random tree each epoch; keys and positions as for `star`."""
    return np.array([_decode(row[: len(row) // 2 - 2], len(row) // 2) for row in keys])


def _decode(keys: FloatArray, B: int) -> list[tuple[int, int]]:
    """The edges of the tree on B nodes whose Prüfer sequence the B-2 keys spell."""
    sequence = (keys * B).astype(int).tolist()
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
    return [*edges, (last, degree.index(1, last + 1))]


def shuffle_sides(pairs: IntArray, keys: FloatArray) -> IntArray:
    """Pairs [..., B-1, 2] as left and right, at random, so that no side is favoured."""
    B = pairs.shape[-2] + 1
    swap = keys[..., B : 2 * B - 1, None] < 0.5
    return np.where(swap, pairs[..., ::-1], pairs)
