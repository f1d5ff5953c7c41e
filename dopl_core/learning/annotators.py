"""How sure each annotator is, learnt together with the strengths.

Crowd Bradley-Terry: annotator w prefers i to j with probability expit(k_w (theta_i - theta_j)). The
log of the sureness k has a Gaussian prior about 0 (the strengths carry the scale). Its spread among
annotators is learnt. Somebody who clicks at random has a k near 0 and hardly any weight.

Two habits are evidence beside the answers that teach strengths. Answers to own duels that were
asked again are further answers of the same k, which strengths have not followed. Answers too fast
to have looked at both cards raise the prior probability of clicking at random.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.counts import Counts, Table, summed
from dopl_core.learning.log_space import logsumexp, softmax
from dopl_core.learning.preferences import OPTIMISM, Preferences

GRID = np.exp(np.linspace(-4.0, 1.5, 23))  # values of k
SPREADS = np.array([0.05, 0.125, 0.25, 0.5, 1.0])  # standard deviations of log k
_PRIOR = np.array([0.5, 0.3, 0.15, 0.04, 0.01])  # of these: annotators differ little, mostly
_AT_RANDOM = 0.05  # prior probability that somebody clicks at random, or nearly: k below 1/4
_AT_RANDOM_FAST = 0.5  # the same of somebody whose answers are all fast
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
            k = of_people(counts, belief, k)
            belief = fit(k)
    return belief, k


def _how_many(table: Table) -> int:
    return int(table.who.max()) + 1 if len(table.who) else 0


def of_people(counts: Counts, belief: Preferences, used: FloatArray | None = None) -> FloatArray:
    """The expected k [W] of each annotator, given strengths; 1 for those without answers.

    used: [W] the sureness that the strengths were learnt with, 1 for all where it is None
    """
    table = counts.table()
    known = np.ones(_how_many(table))
    if not len(known):
        return known
    # Only those who answered: somebody without answers changes no bit of the others.
    there, who = np.unique(table.who, return_inverse=True)
    log = _log_likelihood(
        who,
        len(there),
        table.times,
        *without_the_answer(table, belief, known if used is None else used),
    )
    again, fast = (_of(counts.habits[habit].table(), there) for habit in ("repeats", "fast"))
    log += _log_likelihood(
        np.searchsorted(there, again.who), len(there), again.times, *_gaps(again, belief)
    )
    given = summed(who, table.times, len(there))
    share = summed(np.searchsorted(there, fast.who), fast.times, len(there)) / given
    k = expected(log, _AT_RANDOM + (_AT_RANDOM_FAST - _AT_RANDOM) * share**2)
    # Strengths and sureness share one scale: that of the median annotator.
    known[there] = k / np.median(k)
    return known


def _of(table: Table, people: IntArray) -> Table:
    """The answers of these people."""
    kept = np.isin(table.who, people)
    winner, loser, who, times = table
    return Table(winner[kept], loser[kept], who[kept], times[kept])


def _log_likelihood(
    who: IntArray, people: int, times: FloatArray, gap: FloatArray, variance: FloatArray
) -> FloatArray:
    """The log likelihood [people, k] of answers [E] by gaps between winners and losers.

    While little is known of the strengths, answers say little about their annotators: the variance
    of a gap flattens the probability of an answer (MacKay, 1992).
    """
    log = np.empty((people, len(GRID)))
    for column, k in enumerate(GRID):
        said = times * log_expit(k * gap / np.sqrt(1 + np.pi / 8 * k**2 * variance))
        log[:, column] = summed(who, said, people)
    return log


def _gaps(table: Table, belief: Preferences) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [E] of the gap between winner and loser."""
    theta = belief.mean.ravel()
    sd = (belief.overestimate - belief.mean).ravel() / OPTIMISM
    gap = theta[table.winner] - theta[table.loser]
    return gap, sd[table.winner] ** 2 + sd[table.loser] ** 2


def without_the_answer(
    table: Table, belief: Preferences, used: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [E] of the gap between winner and loser, had the answer not been given.

    Strengths follow the answers they were learnt from. Judged by these, everybody seems too sure,
    most of all an annotator whose pairs nobody else compared.
    """
    (gap, variance), k = _gaps(table, belief), used[table.who]
    F = expit(k * gap)
    variance = variance / (1 - np.minimum(variance * k**2 * F * (1 - F), _MOST_TOLD))
    return gap - variance * k * (1 - F), variance


def expected(log: FloatArray, at_random: FloatArray | float = _AT_RANDOM) -> FloatArray:
    """The expected k [W] by the log likelihood [W, k], averaged over the spread of log k.

    at_random: [W] or one for all: the prior probability that somebody clicks at random
    """
    prior = -0.5 * (np.log(GRID) / SPREADS[:, None]) ** 2
    prior = (prior - logsumexp(prior, axis=1)[:, None])[:, None]  # [spread, 1, k]
    low, share = GRID < 0.25, np.reshape(at_random, (-1, 1))
    random = np.log(share * low / low.sum() + 1e-300)
    joint = log + np.logaddexp(np.log1p(-share) + prior, random)  # [spread, W, k]
    weight = softmax(np.log(_PRIOR) + logsumexp(joint, axis=2).sum(axis=1))
    return np.asarray(weight @ (softmax(joint, axis=2) @ GRID))
