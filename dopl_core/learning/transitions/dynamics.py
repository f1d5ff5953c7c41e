"""How arms move: from counts of visits to an estimate of every transition row, and its box."""

from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.columns import Columns
from dopl_core.learning.transitions import moves


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What is believed of the transitions; all arrays [N, S, A, S'].

    mean: the estimate P^;  sd: how uncertain each entry is (paper: the half-width of its box)
    low, high: the box that the plan may choose from
    seen: [S, A] moves of all arms that it was learnt from; None if the plan does not depend on it
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    seen: IntArray | None = None


def hoeffding(
    counts: FloatArray | IntArray, n_arms: int, n_states: int, epochs: int, epsilon: float
) -> FloatArray:
    """The paper's confidence width (sec. 4.1), for dynamics and preferences alike.

    epochs: (k-1) H, those before this plan; at least 1, or the first plan has no width (errata 3)
    """
    log = np.log(4 * n_states * 2 * n_arms * max(1, epochs) / epsilon)
    return np.sqrt(log / np.maximum(2 * counts, 1))


def paper(visits: IntArray, epochs: int, epsilon: float) -> Dynamics:
    """Empirical rows and Hoeffding boxes (paper, sec. 4.1) from visits [N, S, A, S']."""
    N, S = visits.shape[:2]
    Z = visits.sum(axis=3, keepdims=True)
    # Errata 11: an unvisited pair has a flat row and the width 1.
    mean = np.where(Z > 0, visits / np.maximum(Z, 1), 1 / S)
    width = np.where(Z > 0, hoeffding(Z, N, S, epochs, epsilon), 1.0)
    sd = np.broadcast_to(width, mean.shape)
    return Dynamics(mean, sd, np.clip(mean - width, 0, 1), np.clip(mean + width, 0, 1))


# Standard deviations that a box reaches to either side. Where states are ordered, the prior says
# that help does good: that is reason enough to try it.
OPTIMISM = 1.0


def calibrated(
    visits: IntArray,
    columns: Columns | None = None,
    rng: np.random.Generator | None = None,
    *,
    ordered: bool = False,
) -> Dynamics:
    """Rows averaged over explanations of the moves (moves.py).

    Boxes reach a standard deviation to either side, or are points where states are ordered.
    """
    mean, variance = moves.rows(visits, columns, ordered=ordered, rng=rng)
    sd = np.sqrt(np.maximum(variance, 0))
    half = 0.0 if ordered else OPTIMISM * sd
    seen = visits.sum(axis=(0, 3)) if ordered else None
    return Dynamics(mean, sd, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1), seen)
