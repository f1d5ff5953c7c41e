"""Strengths from answers alone, for researchers who have comparisons and no study.

With columns, theta[n, s] = state part + arm part + residual + column part. The scale of the first
three and the spread of the last are averaged over a grid by Laplace's approximation.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dopl_core.learning import annotators as people
from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.bradley_terry.spreads import OCTAVES, SPREADS, order, unordered
from dopl_core.learning.bradley_terry.strengths import (
    Answers,
    before_answers,
    curvature_and_gradient,
    log_likelihood,
    safe_share,
)
from dopl_core.learning.columns import MISSING, Columns, of_bandit
from dopl_core.learning.counts import MOST_PEOPLE, Counts
from dopl_core.learning.log_space import softmax
from dopl_core.learning.preferences import MOST_EXACT, OPTIMISM, Preferences, calibrated

_SCALES = 2.0 ** np.arange(-3, 3)  # of the other parts, in units of their usual spread
_STEP = 1e-6  # Newton's method stops when no strength moves by more
_ROUNDS = 100


def strengths(
    winners: ArrayLike,
    losers: ArrayLike,
    n_arms: int,
    n_states: int = 1,
    *,
    annotators: Sequence[Any] | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
    ordered: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Bradley-Terry strengths from answers to "which of these two?", with a calibrated posterior.

    Parameters
    ----------
    winners, losers : array_like of int, shape (D,)
        Arm-state codes, ``arm * n_states + state``, one of each for a duel.
    n_arms, n_states : int
        N and S; with one state the codes are the numbers of the arms.
    annotators : sequence, shape (D,), optional
        Who gave each answer, by any names. Answers are then weighted by how sure each annotator is.
    columns : mapping of str to sequence of shape (N,), optional
        What else is known of the arms, such as age or ward: texts or numbers. Arms that have them
        in common are then believed to be alike, as far as the answers say so. At most 400
        arm-states, N * S; without columns there is no such limit.
    ordered : bool, default False
        Whether states go from worst to best.

    Returns
    -------
    mean, sd : ndarray of float, shape (N, S)
        About the average of the compared arm-states.

    Examples
    --------
    >>> mean, sd = strengths(winners=[0, 0, 1], losers=[1, 2, 2], n_arms=3)
    >>> mean.ravel().argsort()  # the weakest first
    array([2, 1, 0])
    """
    counts = _count(winners, losers, n_arms * n_states, annotators)
    shape = (n_arms, n_states)
    known = None if columns is None else _read(columns, *shape)

    def fit(sureness: FloatArray | None) -> Preferences:
        if known is None:
            return calibrated(counts, n_states, None, ordered=ordered, sureness=sureness)
        return _with_columns(Answers(counts, sureness), shape, known, ordered)

    belief = fit(None) if annotators is None else people.weighed(counts, fit)[0]
    return belief.mean, belief.sd


def _count(
    winners: ArrayLike, losers: ArrayLike, size: int, annotators: Sequence[Any] | None
) -> Counts:
    won, lost = (np.asarray(codes, dtype=np.int64) for codes in (winners, losers))
    if won.ndim != 1 or won.shape != lost.shape:
        raise ValueError(f"winners {won.shape} and losers {lost.shape}: one of each for a duel")
    for name, codes in (("winners", won), ("losers", lost)):
        if codes.size and not 0 <= codes.min() <= codes.max() < size:
            raise ValueError(f"{name}: codes must be from 0 to {size - 1}")
    who = np.zeros(len(won), dtype=np.int64)
    if annotators is not None:
        if len(annotators) != len(won):
            raise ValueError(f"annotators: {len(annotators)} given, one for each of {len(won)}")
        names = {name: number for number, name in enumerate(dict.fromkeys(annotators))}
        if len(names) > MOST_PEOPLE:
            raise ValueError(f"annotators: {len(names)} exceed the limit of {MOST_PEOPLE}")
        who = np.array([names[name] for name in annotators], dtype=np.int64)
    counts = Counts(size)
    counts.add(won, lost, who=who)
    return counts


def _read(columns: Mapping[str, Sequence[Any]], n_arms: int, n_states: int) -> Columns:
    if n_arms * n_states > MOST_EXACT:
        raise ValueError(
            f"columns: {n_arms * n_states} arm-states ({n_arms} arms, {n_states} states) exceed "
            f"the limit of {MOST_EXACT}: leave out the columns, or arms that nobody compared"
        )
    texts = {str(name): tuple(map(str, values)) for name, values in columns.items()}
    for name, values in texts.items():
        if len(values) != n_arms:
            raise ValueError(f'column "{name}": {len(values)} given, one for each of {n_arms} arms')
    return of_bandit(texts, n_arms)


def features(columns: Columns) -> FloatArray:
    """Numbers [N, D] of the columns: standardised, or 0 and 1 for each category; 0 if missing."""
    parts: list[FloatArray] = [np.empty((columns.n_arms, 0))]
    for column in columns.each:
        if column.kind == "number":
            parts.append(np.nan_to_num(column.values[:, None]))
        else:
            there = column.values[:, None] != MISSING
            parts.append((column.values[:, None] == np.arange(len(column.labels))) & there)
    return np.concatenate(parts, axis=1).astype(float)


def _with_columns(
    answers: Answers, shape: tuple[int, int], columns: Columns, ordered: bool
) -> Preferences:
    """The strengths with a column part: a mixture over the scale of the rest and its spread."""
    mean, own = before_answers(shape, (order if ordered else unordered)(shape[1]))
    X = np.repeat(features(columns), shape[1], axis=0)
    shared = X @ X.T
    log, means, seconds = [], [], []
    for scale in _SCALES:
        for spread in SPREADS if X.size else SPREADS[:1]:
            prior = scale**2 * own + spread**2 * shared
            evidence, theta, covariance = _laplace(answers, scale * mean, prior)
            octaves = np.log2(scale) / OCTAVES  # Student's t with 2 degrees of freedom, as spreads
            chance = 0.5 if spread == 0 else 0.5 / (len(SPREADS) - 1)
            log.append(evidence - 1.5 * np.log1p(octaves**2 / 2) + np.log(chance))
            means.append(theta)
            seconds.append(covariance + np.outer(theta, theta))
    weight = softmax(np.array(log))
    theta = weight @ np.array(means)
    covariance = np.tensordot(weight, np.array(seconds), axes=1) - np.outer(theta, theta)
    return _about_the_compared(answers.counts, theta, covariance, shape)


def _laplace(
    answers: Answers, mean: FloatArray, prior: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Log evidence, mode [M] and covariance [M, M] under a Gaussian prior, by Newton's method.

    A prior [M, M] need not be invertible: steps are taken in posterior = prior (1 + H prior)^-1.
    """
    theta, one = mean, np.eye(len(mean))
    for _ in range(_ROUNDS):
        H, gradient = curvature_and_gradient(answers, theta)
        # The mode of the expansion: mean + posterior (gradient + H (theta - mean)).
        towards = np.linalg.solve(one + H @ prior, gradient + H @ (theta - mean))
        step = mean + prior @ towards - theta
        theta = theta + safe_share(step, answers) * step
        if np.abs(step).max() < _STEP:
            break
    H, gradient = curvature_and_gradient(answers, theta)
    # At the mode, prior^-1 (theta - mean) is the gradient.
    fit = log_likelihood(answers, theta) - 0.5 * gradient @ (theta - mean)
    evidence = fit - 0.5 * np.linalg.slogdet(one + H @ prior)[1]
    posterior = np.linalg.solve((one + H @ prior).T, prior.T).T
    return float(evidence), theta, (posterior + posterior.T) / 2


def _about_the_compared(
    counts: Counts, theta: FloatArray, covariance: FloatArray, shape: tuple[int, int]
) -> Preferences:
    """Strengths about the average of the compared arm-states, as `preferences.calibrated`."""
    compared = counts.compared()
    M = counts.size
    asked = compared / compared.sum() if compared.any() else np.full(M, 1 / M)
    level = covariance @ asked
    variance = covariance.diagonal() - 2 * level + asked @ level
    mean, sd = theta - asked @ theta, np.sqrt(np.maximum(variance, 0))
    mean, sd = mean.reshape(shape), sd.reshape(shape)
    return Preferences(mean, sd, mean + OPTIMISM * sd, None)
