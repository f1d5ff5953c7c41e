"""The standard deviations of the parts of strengths: a grid, and its prior from real answers.

A strength is state part + arm part + residual. The prior of their total spread comes from 30
published comparative-judgement sessions. The more items a session has, the more they differ: the
spread is about 0.6 for 6 items, 1 for 20, and 1.6 for 100, which is the most that was looked at.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray

# Standard deviations that a part may have: 0 for arms that are all alike, 4 for annotators who are
# nearly never wrong.
SPREADS = np.array([0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0])
OCTAVES = 1 / 3  # scale of the prior of the total spread, in factors of 2
GAIN = 0.8  # share of a residual's variance, in ordered states, that grows with the state
BEND = 0.25  # how far states may lie from their order's straight line, in units of its own spread

# The spreads [3, r, a, t] of residual, arm part and state part (never 0). Each is a cell as wide as
# its spread: a factor of 2 is one cell.
_CELLS = np.maximum(SPREADS, SPREADS[1] / 2)
GRID = np.array(np.meshgrid(_CELLS, _CELLS, _CELLS[1:], indexing="ij"))


class Prior(NamedTuple):
    """The prior of the parts of strengths, each in units of its spread, which is learnt.

    rise: [S] mean of the state part;  bend: its standard deviation about that
    root: [S, S] of the covariance of the residuals of one arm, root @ root.T
    small: whether residuals may as well be small: the log of their spread is uniform
    """

    rise: FloatArray
    bend: float
    root: FloatArray
    small: bool


def unordered(n_states: int) -> Prior:
    """Nothing is known of the states."""
    return Prior(np.zeros(n_states), 1.0, np.eye(n_states), small=False)


def order(n_states: int) -> Prior:
    """States from worst to best: the state part rises evenly, and arms differ in what they gain.

    Residuals of an arm have a part in common that grows evenly from 0 in the worst state: arms that
    gain more between their states gain more in all of them. Where people of one state are worth the
    same, the order says everything: so no residuals are as probable as large ones.
    """
    rank = np.arange(n_states) - (n_states - 1) / 2
    rise = rank / max(float(rank.std()), 1.0 / n_states)
    gain = np.arange(n_states) / max(float(np.sqrt(np.mean(np.arange(n_states) ** 2))), 1.0)
    root = np.linalg.cholesky(GAIN * np.outer(gain, gain) + (1 - GAIN) * np.eye(n_states))
    one = n_states == 1
    return Prior(np.asarray(rise), BEND, np.eye(1) if one else np.asarray(root), small=not one)


def usual(n_arms: int) -> float:
    """The median of the prior of the total spread."""
    return float(0.36 * min(n_arms, 100) ** (1 / 3))


def log_prior(parts: FloatArray, shape: tuple[int, int], *, small: bool) -> FloatArray:
    """Log prior [...] of the spreads of residual, arm part and state part, parts [3, ...].

    The log of their total has Student's t distribution with 2 degrees of freedom: a few answers
    overrule it. Each part's share of the total is uniform; if residuals may be small, the log of
    their share is.
    """
    n_arms, n_states = shape
    total = _total(parts, n_states)
    shared = parts[:2] if n_states == 1 else parts[1 if small else 0 :]
    octaves = np.log2(total / usual(n_arms)) / OCTAVES
    return np.asarray(np.log(shared / total).sum(axis=0) - 1.5 * np.log1p(octaves**2 / 2))


@cache
def bands() -> IntArray:
    """The band of each cell of the grid [r, a, t]: a factor of sqrt 2 of arm part and residual."""
    octaves = np.log2(np.hypot(GRID[0], GRID[1]))
    return np.asarray(np.round(2 * np.clip(octaves, -2, 2.5)) + 4, dtype=np.int64)


@cache
def log_sizes(n_states: int) -> FloatArray:
    """Log2 of the prior's standard deviation [2, r, a] of an arm's mean, and within an arm."""
    residual, arm = GRID[0, :, :, 0] ** 2, GRID[1, :, :, 0] ** 2
    return np.asarray(np.log2([arm + residual / n_states, residual]) / 2)


def _total(parts: FloatArray, n_states: int) -> FloatArray:
    """The total spread; a single state has no state part, it distinguishes nothing."""
    return np.asarray(np.sqrt((parts[: 2 if n_states == 1 else 3] ** 2).sum(axis=0)))


def prior_parts(
    shape: tuple[int, int], prior: Prior
) -> tuple[FloatArray, FloatArray, float, float]:
    """Mean [S] and covariance [S, S] of the state parts, variances of arm part and residual."""
    (rise, bend, _, small), S = prior, shape[1]
    weight = np.exp(log_prior(GRID, shape, small=small))
    weight /= weight.sum()
    residual = weight.sum(axis=(1, 2)) @ SPREADS**2
    arm = weight.sum(axis=(0, 2)) @ SPREADS**2
    steep, square = weight.sum(axis=(0, 1)) @ np.stack([SPREADS[1:], SPREADS[1:] ** 2], axis=1)
    state = square * bend**2 * np.eye(S) + (square - steep**2) * np.outer(rise, rise)
    return steep * rise, state, float(arm), float(residual)
