"""How sure each annotator is, learnt together with the strengths.

Crowd Bradley-Terry: annotator w prefers i to j with probability expit(k_w (theta_i - theta_j)). The
log of the sureness k has a Gaussian prior about 0 (the strengths carry the scale). Its spread among
annotators is learnt. Somebody who clicks at random has a k near 0 and hardly any weight.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_expit

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.counts import Counts, Table, summed
from dopl_core.learning.log_space import logsumexp, softmax
from dopl_core.learning.preferences import OPTIMISM, Preferences

GRID = np.exp(np.linspace(-4.0, 1.5, 23))  # values of k
SPREADS = np.array([0.05, 0.125, 0.25, 0.5, 1.0])  # standard deviations of log k
_PRIOR = np.array([0.5, 0.3, 0.15, 0.04, 0.01])  # of these: annotators differ little, mostly
_AT_RANDOM = 0.05  # prior probability that somebody clicks at random, or nearly: k below 1/4
ROUNDS = 3  # of strengths and sureness in turn: more change little
_MOST_TOLD = 0.9  # share of what is known of a gap that one answer may have told


def weighed(
    counts: Counts, fit: Callable[[FloatArray | None], Preferences]
) -> tuple[Preferences, FloatArray]:
    """The strengths, with answers weighed by their annotators' sureness, and this sureness [W].

    fit: the strengths for a sureness [W], or for None where all are equally sure. One annotator
    alone has nobody to differ from, and all answers weigh the same.
    """
    table = counts.table()
    belief, k = fit(None), np.ones(_how_many(table))
    if len(np.unique(table.who)) > 1:
        for _ in range(ROUNDS):
            k = of_people(table, belief, k)
            belief = fit(k)
    return belief, k


def _how_many(table: Table) -> int:
    return int(table.who.max()) + 1 if len(table.who) else 0


def of_people(table: Table, belief: Preferences, used: FloatArray | None = None) -> FloatArray:
    """The expected k [W] of each annotator, given strengths; 1 for those without answers.

    used: [W] the sureness that the strengths were learnt with, 1 for all where it is None
    """
    known = np.ones(_how_many(table))
    if not len(known):
        return known
    # Only those who answered: somebody without answers changes no bit of the others.
    there, who = np.unique(table.who, return_inverse=True)
    gap, variance = without_the_answer(table, belief, known if used is None else used)
    log = np.empty((len(there), len(GRID)))
    for column, k in enumerate(GRID):
        # While little is known of the strengths, answers say little about their annotators: the
        # variance of a gap flattens the probability of an answer (MacKay, 1992).
        said = table.times * log_expit(k * gap / np.sqrt(1 + np.pi / 8 * k**2 * variance))
        log[:, column] = summed(who, said, len(there))
    k = expected(log)
    # Strengths and sureness share one scale: that of the median annotator.
    known[there] = k / np.median(k)
    return known


def without_the_answer(
    table: Table, belief: Preferences, used: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [E] of the gap between winner and loser, had the answer not been given.

    Strengths follow the answers they were learnt from. Judged by these, everybody seems too sure,
    most of all an annotator whose pairs nobody else compared.
    """
    theta = belief.mean.ravel()
    sd = (belief.overestimate - belief.mean).ravel() / OPTIMISM
    gap, k = theta[table.winner] - theta[table.loser], used[table.who]
    variance = sd[table.winner] ** 2 + sd[table.loser] ** 2
    F = expit(k * gap)
    variance = variance / (1 - np.minimum(variance * k**2 * F * (1 - F), _MOST_TOLD))
    return gap - variance * k * (1 - F), variance


def expected(log: FloatArray) -> FloatArray:
    """The expected k [W] by the log likelihood [W, k], averaged over the spread of log k."""
    prior = -0.5 * (np.log(GRID) / SPREADS[:, None]) ** 2
    random = np.log(_AT_RANDOM * (GRID < 0.25) / (GRID < 0.25).sum() + 1e-300)
    prior = np.logaddexp(np.log1p(-_AT_RANDOM) + prior - logsumexp(prior, axis=1)[:, None], random)
    joint = log + prior[:, None]  # [spread, W, k]
    weight = softmax(np.log(_PRIOR) + logsumexp(joint, axis=2).sum(axis=1))
    return np.asarray(weight @ (softmax(joint, axis=2) @ GRID))
