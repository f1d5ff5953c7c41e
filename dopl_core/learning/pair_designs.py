"""Which B-1 pairs of the activated arms are asked about: always a spanning tree (errata 14)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray


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


def informative(
    towards: FloatArray, covariance: FloatArray, strengths: FloatArray, keys: FloatArray
) -> IntArray:
    """The tree of one epoch whose answers tell most, built pair by pair; positions [B-1, 2].

    towards: [M, B] covariances of what the plan depends on with the B activated arm-states, each
    row scaled by how much the plan depends on it;  covariance: [B, B] of the activated ones;
    strengths: [B] their means;  keys: [2B], which of equal pairs comes first

    An answer about i and j is worth c = F (1 - F) observations of theta_i - theta_j, and lowers the
    variance of x by c cov(x, i - j)^2 / (1 + c var(i - j)). Each pair joins two parts of the tree.
    """
    B = len(strengths)
    order = keys[:B].argsort()
    towards, covariance = towards[:, order], covariance[np.ix_(order, order)]
    # Not scipy's expit, whose last bits differ: what was asked is compared when it is replayed.
    F = 1 / (1 + np.exp(strengths[order] - strengths[order][:, None]))
    c = F * (1 - F)
    part = np.arange(B)
    pairs = []
    for _ in range(B - 1):
        variance = _of_differences(covariance)
        worth = c / (1 + c * variance)
        gain = np.where(part[:, None] == part, -1.0, worth * _of_differences(towards.T @ towards))
        i, j = divmod(int(gain.argmax()), B)
        pairs.append((order[i], order[j]))
        told = covariance[:, i] - covariance[:, j]
        towards = towards - worth[i, j] * np.outer(towards[:, i] - towards[:, j], told)
        covariance = covariance - worth[i, j] * np.outer(told, told)
        part[part == part[j]] = part[i]
    return np.array(pairs)


def _of_differences(inner: FloatArray) -> FloatArray:
    """Squared lengths [B, B] of all differences of vectors with these inner products [B, B]."""
    own = inner.diagonal()
    return own[:, None] + own - 2 * inner


@dataclass(frozen=True)
class Design:
    """A way to choose the pairs of an epoch.

    draw: from keys [H, 2B], pairs of all epochs of an episode at once: positions [H, B-1, 2]
    choose: where strengths are known, the pairs of one epoch, as `informative` does; or None
    """

    label: str
    draw: Callable[[FloatArray], IntArray]
    choose: Callable[[FloatArray, FloatArray, FloatArray, FloatArray], IntArray] | None = None


DESIGNS = {
    "star": Design("Star: one of them against each of the others", star),
    "tree": Design("Tree: pairs by lot that connect all of them", tree),
    "informative": Design("Informative: the pairs that tell most", star, informative),
}
