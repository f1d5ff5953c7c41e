"""Designs: how the pairs of arms of a week's duels are chosen.

Of the activated arms always a spanning tree, B-1 pairs (errata 14); where more answers are wanted,
the most informative pairs of any arms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dopl_core.learning.bandit import FloatArray, IntArray


def keys_needed(budget: int) -> int:
    """The number of uniform random numbers that the duels of one epoch need."""
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
    gram: FloatArray, covariance: FloatArray, strengths: FloatArray, keys: FloatArray
) -> IntArray:
    """The tree of one epoch whose answers tell most, built pair by pair; positions [B-1, 2].

    All as for `most_informative`;  keys: [2B], which of equal pairs comes first
    """
    B = len(strengths)
    order = keys[:B].argsort()
    information = Information(*_ordered(order, gram, covariance, strengths))
    part = np.arange(B)
    pairs = []
    for _ in range(B - 1):
        i, j = information.best(part[:, None] == part)
        information.ask(i, j)
        pairs.append((order[i], order[j]))
        part[part == part[j]] = part[i]
    return np.array(pairs)


def most_informative(
    gram: FloatArray,
    covariance: FloatArray,
    strengths: FloatArray,
    asked: IntArray,
    keys: FloatArray,
    *,
    once: bool = False,
) -> IntArray:
    """Pairs of any N arm-states, the most informative first, without answers in between; [D, 2].

    gram: [N, N] inner products of their covariances with all strengths, weighted by how much these
    matter (decisions.py);  covariance: [N, N] of their strengths;  strengths: [N] their means
    asked: [D', 2] pairs that are asked in any case
    keys: [N + D] random numbers that break ties and shuffle sides
    once: ask no pair again; as many must be left
    """
    N = len(strengths)
    order = keys[:N].argsort()
    information = Information(*_ordered(order, gram, covariance, strengths))
    position = order.argsort()
    for i, j in position[asked].tolist():
        information.ask(i, j)
    excluded = np.eye(N, dtype=bool)
    if once:
        exclude(excluded, position[asked])
    pairs = np.empty((len(keys) - N, 2), dtype=np.int64)
    for pair in pairs:
        pair[:] = information.best(excluded)
        information.ask(*pair)
        if once:
            exclude(excluded, pair[None])
    swap = keys[N:, None] < 0.5
    return order[np.where(swap, pairs[:, ::-1], pairs)]


class Information:
    """What answers about pairs tell, given those that are asked already; arrays as above."""

    def __init__(self, gram: FloatArray, covariance: FloatArray, strengths: FloatArray) -> None:
        self.gram, self.covariance = gram, covariance
        # An answer is worth F (1 - F) observations of a difference, on average over its posterior
        # (MacKay, 1992): least where the difference is large.
        flatter = 1 / np.sqrt(1 + np.pi / 8 * _of_differences(covariance))
        F = 1 / (1 + np.exp(flatter * (strengths - strengths[:, None])))
        self.curvature = flatter * F * (1 - F)

    def best(self, excluded: NDArray[np.bool_]) -> tuple[int, int]:
        """The pair whose answer lowers the weighted variance most."""
        gain = self._worth() * _of_differences(self.gram)
        return divmod(int(np.where(excluded, -1.0, gain).argmax()), len(gain))

    def ask(self, i: int, j: int) -> None:
        """Update the covariances as if i and j had been compared."""
        worth = self._worth()[i, j]
        told = self.covariance[:, i] - self.covariance[:, j]
        towards = self.gram[:, i] - self.gram[:, j]
        both = np.outer(towards, told)
        self.gram = self.gram - worth * (both + both.T)
        self.gram += worth**2 * (towards[i] - towards[j]) * np.outer(told, told)
        self.covariance = self.covariance - worth * np.outer(told, told)

    def _worth(self) -> FloatArray:
        """An answer lowers the variance of x by this times cov(x, i - j)^2 [N, N]."""
        return np.asarray(self.curvature / (1 + self.curvature * _of_differences(self.covariance)))


def exclude(excluded: NDArray[np.bool_], pairs: IntArray) -> None:
    """Mark pairs [D, 2] in `excluded` [N, N], both ways round."""
    i, j = pairs.T
    excluded[i, j] = excluded[j, i] = True


def _ordered(
    order: IntArray, gram: FloatArray, covariance: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    both = np.ix_(order, order)
    return gram[both], covariance[both], strengths[order]


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

if TYPE_CHECKING:
    DesignName = str
else:
    DesignName = Literal[tuple(DESIGNS)]  # for checks of settings and run files
