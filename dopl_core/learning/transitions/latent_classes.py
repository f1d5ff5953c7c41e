"""Latent classes: transition rows, pooled over arms that move alike.

The row p of an arm for one (state, action) is drawn about its class's row m, and that about the row
m0 of all arms (class_rows.py):  p ~ Dir(k m),  m ~ Dir(j m0).
The concentrations k and j and the number of classes are not known: every combination of a grid is
weighed by its marginal likelihood, as Cheeseman and Stutz (1996) approximate it.

Axes: k concentrations of arms, n arms, c classes, r rows (one for each state and action, row
2 s + a), s next states. C is the number of classes, and so on.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, entr, gammaln

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.log_space import logsumexp, softmax
from dopl_core.learning.transitions import class_rows
from dopl_core.learning.transitions.class_rows import ClassRows

MOST_CLASSES = 4
# Dirichlet, in moves: how many moves of its own an arm needs to outweigh its class. At the least
# an arm says nearly nothing of the others; at the most a study hardly tells arms of a class apart.
CONCENTRATIONS = np.array([2.0, 8.0, 32.0, 128.0, 512.0])
ALONE = 0.5  # the chance that a row has a strength of its own, not the one that rows share
SORTING = 12  # rounds of sorting arms into classes; each is two small matrix products
MEDIAN = len(CONCENTRATIONS) // 2  # where the median strength stands


class Classes(NamedTuple):
    """What one number of classes is found to be, so that any arm's rows follow from its moves.

    alpha: [k, c, r, s] from which rows an arm's are drawn;  sorting: [r, k], size: [c] what sorts
    arms into classes;  mean, variance: of the rows of classes, [k, c, r, s]
    strengths: [k, r] how likely each concentration is;  by_row: [k, r] log evidence
    """

    alpha: FloatArray
    sorting: FloatArray
    size: FloatArray
    mean: FloatArray
    variance: FloatArray
    strengths: FloatArray
    by_row: FloatArray


def mix(w: FloatArray, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [...] of a mixture with weights w [G] of parts [G, ...]."""
    mixed = np.einsum("g,g...->...", w, mean)
    return mixed, np.einsum("g,g...->...", w, variance + (mean - mixed) ** 2)


def independent_worth(n: FloatArray) -> FloatArray:
    """How many draws from its class's row an arm's moves n [n, r, s] are worth, [k, n, r, s].

    An arm's moves tell the less of its class the more the arms of a class differ: the variance of
    the shares of Z moves (a Dirichlet-multinomial) is that of Z (1 + k) / (k + Z) draws.
    """
    k = CONCENTRATIONS[:, None, None, None]
    Z = n.sum(axis=2, keepdims=True)
    return n * ((1 + k) / (k + np.maximum(Z, 1)))


# Where the classes start: a quick sort of the arms by the multinomial likelihood of their moves.


def sortings(counts: FloatArray) -> list[FloatArray]:
    """Shares [n, c] of the arms in 1, 2, ... classes, from counts [n, r, s]: where `fit` starts.

    Each further class starts at the arm that the classes so far explain worst.
    """
    N, _, S = counts.shape
    pooled = _normalised(counts.sum(axis=0) + 1.0)
    prior = S * pooled
    own = _normalised(counts + prior)
    flat = counts.reshape(N, -1)
    alone = (flat * np.log(own).reshape(N, -1)).sum(axis=1)
    found = [np.ones((N, 1))]
    m = pooled[None]
    for _ in range(2, min(MOST_CLASSES, N) + 1):
        odd = (alone - multinomial(flat, m).max(axis=1)).argmax()
        share, m = sort(flat, np.concatenate([m, own[[odd]]]), prior)
        found.append(share)
    return found


def sort(flat: FloatArray, m: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Classes by expectation and maximisation, from rows m [c, r, s]: shares [n, c] and rows.

    flat: [n, r * s] counts; prior: [r, s] what every class has been seen doing beforehand
    """
    size = np.ones(len(m))
    for _ in range(SORTING):
        share = softmax(multinomial(flat, m) + np.log(size), axis=-1)
        m = rows_of_classes(flat, share, prior)
        size = share.sum(axis=0) + 1
    return share, m


def multinomial(flat: FloatArray, m: FloatArray) -> FloatArray:
    """Log-likelihood [n, c] of each arm's counts [n, r * s] under the rows m [c, r, s]."""
    return flat @ np.log(m).reshape(len(m), -1).T


def rows_of_classes(flat: FloatArray, share: FloatArray, prior: FloatArray) -> FloatArray:
    """Rows [c, r, s] of classes whose arms have the counts [n, r * s], with a prior [r, s]."""
    return _normalised((share.T @ flat).reshape(-1, *prior.shape) + prior)


# One number of classes: the posterior of all rows, and its evidence.


def fit(
    n: FloatArray, worth: FloatArray, share: FloatArray, tied: bool = False
) -> tuple[Classes, FloatArray, float]:
    """The classes, their shares [n, c] and their log evidence, from starting shares.

    n: [n, r, s] moves; worth: [k, n, r, s] what they are worth (`independent_worth`)
    tied: rows with help are tied to those without (`class_rows.of_help`); else priors are flat
    """
    m = starting_rows(worth, share)
    alpha = CONCENTRATIONS[:, None, None, None] * m  # an arm's row is drawn from Dir(alpha)
    likelihood = log_likelihood(n, alpha)
    sorts = sorting(share, likelihood)
    if share.shape[1] > 1:
        share = resorted(likelihood, *sorts)
    moves = np.einsum("nc,kncr->kr", share, likelihood)
    tables = expected_tables(n, alpha, share)
    rows, by_row = rows_about_all(moves, m, tables, tied)
    strengths, evidence = row_strengths(by_row)
    evidence = evidence + entr(share).sum() + sorting_evidence(share)
    found = Classes(alpha, *sorts, rows.mean, rows.variance, strengths, by_row)
    return found, share, float(evidence)


def fit_labels(
    n: FloatArray, worth: FloatArray, labels: IntArray, tied: bool = False
) -> tuple[Classes, float]:
    """Classes that are known, labels [n] from 0, and their log evidence: nothing is sorted."""
    C = labels.max() + 1
    m = starting_rows(worth, np.eye(C)[labels])
    alpha = CONCENTRATIONS[:, None, None, None] * m
    moves = np.zeros((len(alpha), n.shape[1]))
    tables = np.empty_like(alpha)
    for c in range(C):
        own, one = n[labels == c], alpha[:, c : c + 1]
        moves += log_likelihood(own, one).sum(axis=(1, 2))
        tables[:, c : c + 1] = expected_tables(own, one, np.ones((len(own), 1)))
    rows, by_row = rows_about_all(moves, m, tables, tied)
    strengths, evidence = row_strengths(by_row)
    nothing = np.empty(0)
    return Classes(alpha, nothing, nothing, rows.mean, rows.variance, strengths, by_row), evidence


def rows_about_all(
    moves: FloatArray, m: FloatArray, tables: FloatArray, tied: bool
) -> tuple[ClassRows, FloatArray]:
    """The rows of classes, and the log evidence [k, r] of all moves in each row.

    moves: [k, r] log-likelihood of the moves, at the rows m [k, c, r, s] of classes
    """
    given = given_tables(moves, m, tables)
    if tied:
        rows = class_rows.of_help(tables, given)
    else:
        rows = class_rows.about_all(tables, class_rows.flat_prior(*tables.shape[2:]))
    return rows, given + rows.evidence


def starting_rows(worth: FloatArray, share: FloatArray) -> FloatArray:
    """Rows m [k, c, r, s] of classes, where arms' moves are worth [k, n, r, s] draws from them."""
    draws = np.einsum("nc,knrs->kcrs", share, worth)
    pooled = _normalised(draws.sum(axis=(0, 1)) + 1)
    return _normalised(draws + pooled.shape[1] * pooled)


def log_likelihood(n: FloatArray, alpha: FloatArray) -> FloatArray:
    """Log-likelihood [k, n, c, r] of each arm's moves n [n, r, s] if it were of each class.

    The Dirichlet-multinomial with the parameters alpha = k m [k, c, r, s], one sequence of moves.
    """
    k = CONCENTRATIONS[:, None, None]
    prior = alpha[:, None]
    by_next_state = gammaln(n[:, None] + prior)  # [k, n, c, r, s]
    by_next_state -= gammaln(prior)
    likelihood = by_next_state.sum(axis=4)
    likelihood += (gammaln(k) - gammaln(k + n.sum(axis=2)))[:, :, None]
    return likelihood


def sorting(share: FloatArray, likelihood: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What shares [n, c] so far tell of the strengths [r, k], and of the classes' sizes [c]."""
    strengths = softmax(np.einsum("nc,kncr->rk", share, likelihood), axis=-1)
    return strengths, digamma(share.sum(axis=0) + 1)


def resorted(likelihood: FloatArray, strengths: FloatArray, size: FloatArray) -> FloatArray:
    """Shares [n, c] anew, from a likelihood [k, n, c, r] and what `sorting` tells."""
    return softmax(np.einsum("rk,kncr->nc", strengths, likelihood) + size, axis=-1)


def expected_tables(n: FloatArray, alpha: FloatArray, share: FloatArray) -> FloatArray:
    """How many draws from their class's row the moves n [n, r, s] of its arms are, [k, c, r, s].

    Where `independent_worth` goes by the variance, this is exact at given alpha [k, c, r, s]: the
    expected number of tables of a Chinese restaurant. Each move is a guest, who sits down with
    others or opens a table; only the opening of a table is a draw from the class's row.
    """
    prior = alpha[:, None]
    tables = digamma(n[:, None] + prior)  # [k, n, c, r, s]
    tables -= digamma(prior)
    tables *= prior
    return np.einsum("nc,kncrs->kcrs", share, tables)


def given_tables(moves: FloatArray, m: FloatArray, tables: FloatArray) -> FloatArray:
    """Log evidence [k, r] of the moves, beyond that of the tables, as Cheeseman and Stutz say.

    It is how much more likely than the tables [k, c, r, s] the moves are (log-likelihood
    moves [k, r]), both at the rows m [k, c, r, s]. That of the tables is that of independent draws.
    """
    return np.asarray(moves - (tables * np.log(m)).sum(axis=(1, 3)))


def sorting_evidence(share: FloatArray) -> float:
    """Log-probability of the arms' classes, for shares [n, c], if all class sizes are as likely.

    The C! ways to number the same classes count as one sorting.
    """
    N, C = share.shape
    members = share.sum(axis=0)
    return float(gammaln(members + 1).sum() + gammaln(C) - gammaln(N + C) + gammaln(C + 1))


def row_strengths(log_evidence: FloatArray) -> tuple[FloatArray, float]:
    """How likely each strength is for each row [k, r], and the log evidence of all rows together.

    Rows have a strength in common, but any of them may have one of its own (ALONE).
    """
    n_strengths = len(log_evidence)
    top = log_evidence.max(axis=0)
    e = np.exp(log_evidence - top)
    own = ALONE * e.mean(axis=0)
    each = np.log((1 - ALONE) * e + own + 1e-300)  # [common strength, row]
    together = each.sum(axis=1)
    common = softmax(together)
    # p(k, r) = sum over common g of p(g) [(1-ALONE) [k = g] + ALONE / K] e(k, r) / exp(each(g, r))
    per = common[:, None] / np.exp(each)
    w = e * ((1 - ALONE) * per + ALONE / n_strengths * per.sum(axis=0))
    return w, float(logsumexp(together) - np.log(n_strengths) + top.sum())


def arm_rows(
    n: FloatArray,
    strengths: FloatArray,
    share: FloatArray,
    class_mean: FloatArray,
    class_variance: FloatArray,
    concentrations: FloatArray = CONCENTRATIONS,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance [n, r, s] of the rows of arms, over their concentrations and classes.

    n: [n, r, s] moves; strengths: [k, r] and share: [n, c] how likely each is
    class_mean, class_variance: [k, n, c, r, s]; n is 1 where these are the same for all arms
    """
    k = concentrations[:, None, None, None]
    total = k + n.sum(axis=2)[..., None]  # [k, n, r, 1]
    weight = (k / total)[:, :, None]
    mu = weight * class_mean  # [k, n, c, r, s]
    mu += (n / total)[:, :, None]
    square = mu * (1 - mu)  # variance of p, and in the end the mean of p^2
    square /= total[:, :, None] + 1
    square += weight**2 * class_variance
    square += mu**2
    joint = np.broadcast_to(strengths[:, None, None, :] * share[:, :, None], mu.shape[:-1])
    mean = np.einsum("kncr,kncrs->nrs", joint, mu)
    return mean, np.einsum("kncr,kncrs->nrs", joint, square) - mean**2


def _normalised(x: FloatArray) -> FloatArray:
    """Rows [..., s] that sum to 1."""
    return x / x.sum(axis=-1, keepdims=True)
