"""What a plan is made from: an estimate of every transition row, and its box; and the paper's."""

from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What is believed of the transitions; arrays [N, S, A, S'].

    mean: the estimate P^;  sd: how uncertain each entry is (paper: the half-width of its box)
    low, high: the box that the plan may choose from
    effect: [S, S'] what help changes in everybody's rows;  effect_covariance: [S, S', S']
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    effect: FloatArray | None = None
    effect_covariance: FloatArray | None = None


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
