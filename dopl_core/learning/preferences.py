"""Strengths of arm-states from counts of duels, by the paper's Algorithm 3 or calibrated."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.bradley_terry import large_strengths, spreads, strengths
from dopl_core.learning.bradley_terry.reliability import (
    scale_separation as scale_separation,  # fixed name
)
from dopl_core.learning.counts import Counts
from dopl_core.learning.moves.dynamics import hoeffding
from dopl_core.learning.streams import Stream, generator

LIPSCHITZ = 1.3  # Lemma 4's L
_ALL = slice(None)
F_LOW, F_HIGH = 1 / (1 + np.e), np.e / (1 + np.e)  # Bradley-Terry with rewards in [0, 1] (Prop. 2)


@dataclass(frozen=True, eq=False)
class Preferences:
    """The posterior of Q_n(s), the strength of an arm-state over the reference; arrays [N, S].

    mean: the estimate Q^;  sd: its uncertainty (paper: how far the overestimate lies above)
    overestimate: Q~, the optimistic reward of a plan (the paper's lies in [-1, 1])
    reference: code (arm * S + state) of the reference, None while there are no answers
    covariance: [M, M] of the strengths about their average, for choosing duels; None if not needed
    warm: small arrays, the start of the next estimate
    common: [M, S + 1] in place of the covariance where M is large: see many_pairs.py
    """

    mean: FloatArray
    sd: FloatArray
    overestimate: FloatArray
    reference: int | None
    covariance: FloatArray | None = None
    warm: dict[str, FloatArray] = field(default_factory=dict)
    common: FloatArray | None = None


def most_compared(counts: Counts) -> int | None:
    """The arm-state with the most duels, None without duels (errata 13)."""
    compared = counts.compared()
    return int(compared.argmax()) if compared.any() else None


def empirical(wins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alg. 3, step 2: F^ [M, M], the share of duels that the row won, and the duels C [M, M]."""
    C = wins + wins.T
    return np.divide(wins, C, out=np.full_like(wins, 0.5), where=C > 0), C


def win_chances(strengths: FloatArray, rows: slice = _ALL) -> FloatArray:
    """F [M, M] of strengths [N, S]: the probability that the row is preferred (eq. (2))."""
    flat = strengths.ravel()
    return np.asarray(expit(flat[rows, None] - flat))


def counted_chances(wins: FloatArray, belief: Preferences) -> FloatArray:
    """The paper's F [M, M]: counted, and inferred against the reference."""
    column = win_chances(belief.mean)[:, belief.reference]
    F = np.clip(empirical(wins)[0], F_LOW, F_HIGH)
    F[:, belief.reference], F[belief.reference] = column, 1 - column
    return F


def infer(F1: FloatArray, F2: FloatArray) -> FloatArray:
    """Lemma 4: F(j1, j2) from F1 = F(hub, j1) and F2 = F(hub, j2)."""
    a, b = (1 - F1) * F2, (1 - F2) * F1
    return a / (a + b)


def logit(F: FloatArray) -> FloatArray:
    """Q = ln F / (1 - F) (Prop. 1).

    Not scipy's, whose last bits differ: plans are compared to the bit when they are replayed.
    """
    return np.log(F / (1 - F))


def paper(
    wins: FloatArray, n_states: int, reference: int | None, epochs: int, epsilon: float
) -> Preferences:
    """Alg. 3 from wins [M, M]: how often each arm-state beat each other, ties half each."""
    M = len(wins)
    shape = (M // n_states, n_states)
    if reference is None:
        one = np.ones(shape)
        return Preferences(np.zeros(shape), one, one, None)
    F, C = empirical(wins)
    width = hoeffding(C, shape[0], n_states, epochs, epsilon)
    # Step 3, errata 5: each arm-state x takes the hub with the least L (d(hub, x) + d(hub, ref)).
    by_hub = LIPSCHITZ * (width + width[:, [reference]])
    np.fill_diagonal(by_hub, np.inf)
    by_hub[reference] = np.inf
    hub = by_hub.argmin(axis=0)
    x = np.arange(M)
    F_domain = np.clip(F, F_LOW, F_HIGH)  # Lemma 4 holds where rewards lie in [0, 1]
    inferred = infer(F_domain[hub, x], F_domain[hub, reference])
    direct = width[:, reference] <= by_hub[hub, x]
    estimate = np.where(direct, F[:, reference], inferred)
    delta = np.where(direct, width[:, reference], by_hub[hub, x])
    # Step 4, errata 4: overestimated, but inside the domain; the reference is 0.5 to itself.
    over = np.clip(estimate + delta, F_LOW, F_HIGH)
    estimate = np.clip(estimate, F_LOW, F_HIGH)
    estimate[reference] = over[reference] = 0.5
    mean, overestimate = logit(estimate).reshape(shape), logit(over).reshape(shape)
    return Preferences(mean, overestimate - mean, overestimate, reference)


MOST_EXACT = 400  # arm-states: up to here the exact method takes a fraction of a second
OPTIMISM = 1.0  # standard deviations of the strength between mean and overestimate


def calibrated(
    counts: Counts,
    n_states: int,
    reference: int | None,
    warm: dict[str, FloatArray] | None = None,
    *,
    ordered: bool = False,
    sureness: FloatArray | None = None,
    rng: np.random.Generator | None = None,
) -> Preferences:
    """Bradley-Terry strengths with a Gaussian prior, from counts of duels, ties half each.

    strength theta[n, s] = state part + arm part + residual. Their spreads are averaged over a grid
    by marginal likelihood (strengths.py). A plan is the same for strengths of any scale.
    ordered: the states are given from worst to best (spreads.order)
    sureness: [W] of each annotator (annotators.py), None if it is 1 for all
    rng: for draws if arm-states are many (large_strengths.py)
    """
    M = counts.size
    shape = (M // n_states, n_states)
    prior = (spreads.order if ordered else spreads.unordered)(n_states)
    compared, answers = counts.compared(), strengths.Answers(counts, sureness)
    # Duels tell differences only, so variances are about the average of the compared arm-states.
    # About the reference, they would all contain the variance of the reference itself.
    asked = compared / compared.sum() if compared.any() else np.full(M, 1 / M)
    if M > MOST_EXACT:
        rng = rng or generator(Stream.STRENGTHS, 0)
        found = _approximate(answers, shape, prior, asked, reference, warm, rng)
    else:
        found = _exact(answers, shape, prior, asked, reference, warm)
    theta, variance = found.theta, found.variance
    if reference is None:
        mean, sd = theta - asked @ theta, np.sqrt(variance)
    else:
        mean = theta - theta[reference]
        sd = np.sqrt(np.maximum(variance + variance[reference] - 2 * found.to_reference, 0))
    over = mean + OPTIMISM * np.sqrt(variance)
    mean, sd, over = (part.reshape(shape) for part in (mean, sd, over))
    return Preferences(mean, sd, over, reference, found.covariance, found.warm, found.common)


class _Posterior(NamedTuple):
    """Strengths about the average of the compared arm-states; all [M].

    to_reference: covariances with the reference;  covariance: [M, M], None where M is large
    common: [M, S + 1] a factor of what arm-states share, where M is large
    """

    theta: FloatArray
    variance: FloatArray
    to_reference: FloatArray
    warm: dict[str, FloatArray]
    covariance: FloatArray | None = None
    common: FloatArray | None = None


def _exact(
    answers: strengths.Answers,
    shape: tuple[int, int],
    prior: spreads.Prior,
    asked: FloatArray,
    reference: int | None,
    warm: dict[str, FloatArray] | None,
) -> _Posterior:
    """By the covariance of all arm-states: for up to MOST_EXACT of them."""
    if len(answers.counts.table().times):
        start = np.zeros(len(asked)) if warm is None else warm["theta"]
        theta, covariance = strengths.settled(answers, start, shape, prior)
    else:
        theta, covariance = strengths.before_answers(shape, prior)
    level = covariance @ asked
    covariance = covariance - level - level[:, None] + asked @ level
    variance = np.maximum(covariance.diagonal(), 0)
    to_reference = variance if reference is None else covariance[reference]
    return _Posterior(theta, variance, to_reference, {"theta": theta}, covariance)


def _approximate(
    answers: strengths.Answers,
    shape: tuple[int, int],
    prior: spreads.Prior,
    asked: FloatArray,
    reference: int | None,
    warm: dict[str, FloatArray] | None,
    rng: np.random.Generator,
) -> _Posterior:
    """By conjugate gradients and draws: for many arm-states."""
    known = large_strengths.known(answers, shape, prior, rng, warm)
    variance, to_reference = large_strengths.about(known, asked, reference)
    common = np.column_stack([known.common - asked @ known.common, known.within])
    next_warm = {"theta": known.theta, "spreads": known.spreads}
    return _Posterior(known.theta, variance, to_reference, next_warm, common=common)


def calibrated_strengths(
    winners: IntArray, losers: IntArray, n_arms: int, n_states: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Mean and sd [N, S] of the strengths, about the average of the compared arm-states.

    winners, losers: arm-state codes (arm * n_states + state), one of each a duel
    """
    counts = Counts(n_arms * n_states)
    counts.add(np.asarray(winners, dtype=np.int64), np.asarray(losers, dtype=np.int64))
    belief = calibrated(counts, n_states, None)
    return belief.mean, belief.sd


def draw(belief: Preferences, count: int, rng: np.random.Generator) -> FloatArray:
    """Strengths [D, N, S] drawn from the Gaussian that `belief` is; each by itself, where it has no
    covariance.
    """
    V = belief.covariance
    if V is None:
        return belief.mean + belief.sd * rng.standard_normal((count, *belief.mean.shape))
    known, basis = np.linalg.eigh(V)
    noise = rng.standard_normal((count, len(V))) * np.sqrt(np.maximum(known, 0))
    return belief.mean + (noise @ basis.T).reshape(count, *belief.mean.shape)
