"""Rows of classes about the row of all arms, and what is believed of that before any data.

The row m of a class is drawn about the row m0 of all arms: m ~ Dir(j m0), with a concentration j
that is averaged over a grid. The row of all arms has a Dirichlet prior: flat, or, where states are
ordered from worst to best, the belief that people mostly stay where they are and that help is an
effect on how they move anyway (`waiting_prior`, `acting_prior`).

Axes: j concentrations of classes, k of arms, c classes, r rows, s next states.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from dopl_core.learning.bandit import ACT, WAIT, FloatArray
from dopl_core.learning.log_space import logsumexp, softmax

CLASS_CONCENTRATIONS = np.array([4.0, 32.0, 256.0])  # of classes about the row of all arms
STAY = 0.6  # beforehand, the share of people who stay where they are; the others go anywhere
EFFECT = 0.5  # beforehand, the share of those helped who reach the best state because of it
WEIGHT = 40.0  # how many moves in each row outweigh these beliefs
PERSISTENCE = 10.0  # how many moves with help outweigh STAY, if people who are helped stay more


class ClassRows(NamedTuple):
    """Mean and variance of the rows of classes [k, c, r, s], and their log evidence [k, r]."""

    mean: FloatArray
    variance: FloatArray
    evidence: FloatArray


def flat_prior(n_rows: int, n_states: int) -> FloatArray:
    """The prior of the row of all arms [r, s] of which nothing is known."""
    return np.ones((n_rows, n_states))


def waiting_prior(helped: FloatArray) -> FloatArray:
    """The prior of the rows [..., s, s'] without help: people mostly stay where they are.

    helped: [..., s, s'] moves with help. Those that help did not cause are moves that people make
    anyway; of those to the best state, a share is (an expectation, found in a few rounds). If
    people who are helped stay more than was believed, in one state or in all, people are expected
    to stay there without help.
    """
    S = helped.shape[-1]
    here, anyway = np.eye(S), np.zeros(helped.shape)
    for _ in range(3):
        stayed, moves = (anyway * here).sum(axis=-1, keepdims=True), anyway.sum(-1, keepdims=True)
        stay = np.maximum(STAY, _share(stayed, moves))
        stay = np.maximum(stay, _share(*(x.sum(axis=-2, keepdims=True) for x in (stayed, moves))))
        row = stay * here + (1 - stay) / S
        anyway = helped.copy()
        anyway[..., -1] *= (1 - EFFECT) * row[..., -1] / ((1 - EFFECT) * row[..., -1] + EFFECT)
    return np.asarray(WEIGHT * row)


def _share(stayed: FloatArray, moves: FloatArray) -> FloatArray:
    """The share of people who stay, from the share of observed moves that changed nothing."""
    return (PERSISTENCE * STAY + stayed) / (PERSISTENCE + moves)


def acting_prior(waiting: FloatArray) -> FloatArray:
    """The prior of the rows [s, s'] with help, where those without are `waiting` [s, s'].

    Help moves a share of the arms to the best state, the last; the others move as they would.
    """
    best = np.eye(waiting.shape[-1])[-1]
    return WEIGHT * ((1 - EFFECT) * waiting + EFFECT * best)


def of_help(tables: FloatArray, moves: FloatArray) -> ClassRows:
    """The rows of classes where help is an effect on how arms move anyway.

    How they move anyway is the mean of the classes' rows, not the row of all arms: that one keeps
    to the belief that people stay, after the classes have been seen to move. About it, people who
    fall from the best state without help would seem to stay there because of help.

    tables: [k, c, r, s] draws from the rows of classes; row 2 s + a is of state s and action a
    moves: [k, r] log evidence of the moves, given the tables
    """
    wait, act = slice(WAIT, None, 2), slice(ACT, None, 2)
    helped = tables[:, :, act].sum(axis=1, keepdims=True)
    waiting = about_all(tables[:, :, wait], waiting_prior(helped))
    likely = softmax(waiting.evidence + moves[:, wait], axis=0)
    drawn = tables[:, :, wait].sum(axis=3) + 1e-9  # where there are none, classes weigh the same
    share = drawn / drawn.sum(axis=1, keepdims=True)
    expected = np.einsum("kr,kcr,kcrs->rs", likely, share, waiting.mean)
    acting = about_all(tables[:, :, act], acting_prior(expected))
    return ClassRows(*(_interleaved(*parts) for parts in zip(waiting, acting, strict=True)))


def _interleaved(waiting: FloatArray, acting: FloatArray) -> FloatArray:
    """Rows [k, .., r, ..] of all states and actions; r is the last axis but one, or the last."""
    axis = waiting.ndim - 2 if waiting.ndim > 2 else 1
    both = np.stack([waiting, acting], axis=axis + 1)
    shape = list(waiting.shape)
    shape[axis] *= 2
    return both.reshape(shape)


def about_all(tables: FloatArray, prior: FloatArray) -> ClassRows:
    """The rows of classes, from their tables and the prior of the row of all arms.

    prior: [r, s], or [k, 1, r, s]
    tables: [k, c, r, s] how many independent draws from the class's row its arms' moves are worth
    """
    m0, draws = row_of_all(tables, prior)
    evidence = class_evidence(tables, m0, draws, prior)
    means, variances = class_rows_by_concentration(tables, draws, prior)
    log_total = logsumexp(evidence, axis=0)
    w = np.exp(evidence - log_total)
    mean = np.einsum("jkr,jkcrs->kcrs", w, means)
    variance = np.einsum("jkr,jkcrs->kcrs", w, variances + (means - mean) ** 2)
    return ClassRows(mean, variance, log_total - np.log(len(CLASS_CONCENTRATIONS)))


def row_of_all(tables: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The row m0 of all arms and the draws from it that tables [k, c, r, s] are worth.

    Both [j, k, 1, r, s]. Again the expected number of tables of a Chinese restaurant, whose
    guests are the tables of the arms; it depends on m0 and m0 on it, so it is found in two rounds.
    """
    j = CLASS_CONCENTRATIONS[:, None, None, None, None]
    draws = tables[None].sum(axis=2, keepdims=True)
    for _ in range(2):
        m0 = _posterior_mean(draws, prior)
        alpha = j * m0
        draws = (alpha * (digamma(tables + alpha) - digamma(alpha))).sum(axis=2, keepdims=True)
    return m0, draws


def class_evidence(
    tables: FloatArray, m0: FloatArray, draws: FloatArray, prior: FloatArray
) -> FloatArray:
    """Log evidence [j, k, r] of tables [k, c, r, s], as Cheeseman and Stutz approximate it.

    The evidence of the draws [j, k, 1, r, s] under the prior, corrected by how much more
    likely than the draws the tables are, both at the row m0 [j, k, 1, r, s].
    """
    j = CLASS_CONCENTRATIONS[:, None, None, None, None]
    alpha = j * m0
    total = tables[None].sum(axis=-1, keepdims=True)
    before = prior.sum(axis=-1)
    return np.asarray(
        (gammaln(tables + alpha) - gammaln(alpha)).sum(axis=(2, 4))
        + (gammaln(j) - gammaln(j + total)).sum(axis=(2, 4))
        - (draws * np.log(m0)).sum(axis=(2, 4))
        + (gammaln(prior + draws) - gammaln(prior)).sum(axis=(2, 4))
        + (gammaln(before) - gammaln(before + draws.sum(axis=-1))).sum(axis=2)
    )


def class_rows_by_concentration(
    tables: FloatArray, draws: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [j, k, c, r, s] of class rows about that of all arms.

    tables: [k, c, r, s] draws from the class's row; draws: [j, k, 1, r, s] from the row of all
    """
    j = CLASS_CONCENTRATIONS[:, None, None, None, None]
    m0 = _posterior_mean(draws, prior)
    v0 = m0 * (1 - m0) / ((prior + draws).sum(axis=-1, keepdims=True) + 1)
    total = j + tables[None].sum(axis=-1, keepdims=True)
    mean = (j * m0 + tables) / total
    return mean, mean * (1 - mean) / (total + 1) + (j / total) ** 2 * v0


def _posterior_mean(draws: FloatArray, prior: FloatArray) -> FloatArray:
    """The mean [..., r, s] of the posterior Dir(prior + draws)."""
    alpha = prior + draws
    return alpha / alpha.sum(axis=-1, keepdims=True)
