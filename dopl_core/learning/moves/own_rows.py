"""Each person's own rows, drawn in to what other people's moves say, as far as people are alike.

The row p of a person is drawn about the expected one m: p ~ Dir(k m). How alike people are, the
concentration k, is averaged by evidence, for rows with help and without. Everybody alike is one of
the explanations.

Axes: k concentrations, n people, r rows (row 2 s + a), t next states.
"""

import numpy as np
from scipy.special import gammaln

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.log_space import softmax

CONCENTRATIONS = np.array([2.0, 5.0, 10.0, 20.0, 50.0, 200.0, 2000.0])
ALIKE = 3.0  # how much likelier than the others the last one, everybody alike, is beforehand


def drawn_in(
    counts: FloatArray, expected: FloatArray, variance: FloatArray, alike: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, t] of the rows of people with the moves `counts` [n, r, t].

    expected, variance: [n, r, t] of the rows that theirs are drawn about;  alike: [k, a]
    """
    of_row = np.tile(alike, (1, expected.shape[1] // 2))[:, None, :, None]  # [k, 1, r, 1]
    total = counts.sum(axis=2, keepdims=True)
    mean, square = np.zeros(expected.shape), np.zeros(expected.shape)
    for k, likely in zip(CONCENTRATIONS, of_row, strict=True):
        rows = (counts + k * expected) / (total + k)
        own = rows * (1 - rows) / (total + k + 1) + (k / (total + k)) ** 2 * variance
        mean += likely * rows
        square += likely * (own + rows**2)
    return mean, np.maximum(square - mean**2, 0.0)


def concentrations(counts: FloatArray, expected: FloatArray) -> FloatArray:
    """The posterior probability of each concentration [k, a], by the Dirichlet-multinomial."""
    k = CONCENTRATIONS[:, None, None]
    total, at = counts.sum(axis=2), np.nonzero(counts)
    prior = CONCENTRATIONS[:, None] * np.maximum(expected[at], 1e-4)
    each = gammaln(counts[at] + prior) - gammaln(prior)  # [k, moves]
    whole = gammaln(k) - gammaln(k + total)  # [k, n, r]
    log = np.stack(
        [
            each[:, at[1] % 2 == a].sum(axis=1) + whole[:, :, a::2].sum(axis=(1, 2))
            for a in range(2)
        ],
        axis=1,
    )
    log[-1] += np.log(ALIKE)
    return softmax(log, axis=0)
