"""Whom to trust: how sure each annotator is, learnt together with the strengths.

Crowd Bradley-Terry: a person w prefers i to j with the chance expit(k_w (theta_i - theta_j)). Most
people are about equally sure, so log k has a Gaussian prior about 0 (the strengths have the scale);
somebody who clicks at random has a k near 0, and their answers weigh next to nothing.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import log_expit, softmax

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.counts import Counts, Table, summed
from dopl_core.learning.preferences import Preferences

GRID = np.exp(np.linspace(-4.0, 1.5, 23))  # values that k may have
SPREAD = 0.5  # standard deviation of log k among people
ROUNDS = 3  # of strengths and sureness in turn: more change little


def weighed(
    counts: Counts, fit: Callable[[FloatArray | None], Preferences]
) -> tuple[Preferences, FloatArray]:
    """The strengths, with everybody's answers weighed by their sureness, and this sureness [W].

    fit: the strengths for a sureness [W], or for None where all are equally sure. Where one person
    has answered there is nobody to differ from: the strengths are those that all answers give.
    """
    table = counts.table()
    belief, k = fit(None), np.ones(_how_many(table))
    if len(np.unique(table.who)) > 1:
        for _ in range(ROUNDS):
            k = of_people(table, belief)
            belief = fit(k)
    return belief, k


def _how_many(table: Table) -> int:
    return int(table.who.max()) + 1 if len(table.who) else 0


def of_people(table: Table, belief: Preferences) -> FloatArray:
    """The expected k [W] of each person, for strengths as they are believed.

    Little is known of strengths at first, and then little can be held against anybody: a gap's
    variance v flattens what is expected of an answer by 1 / sqrt(1 + pi k^2 v / 8). 1 for those who
    have no answers.
    """
    known = np.ones(_how_many(table))
    if not len(known):
        return known
    # Only those who answered: somebody without answers leaves no trace, not even a last bit.
    there, who = np.unique(table.who, return_inverse=True)
    theta, variance = belief.mean.ravel(), belief.sd.ravel() ** 2
    gap = theta[table.winner] - theta[table.loser]
    v = variance[table.winner] + variance[table.loser]
    log = np.empty((len(there), len(GRID)))
    for column, k in enumerate(GRID):
        said = table.times * log_expit(k * gap / np.sqrt(1 + np.pi / 8 * k**2 * v))
        log[:, column] = summed(who, said, len(there))
    prior = -0.5 * (np.log(GRID) / SPREAD) ** 2
    k = softmax(log + prior, axis=1) @ GRID
    # Strengths and sureness have one scale between them: that of the person in the middle.
    known[there] = k / np.median(k)
    return known
