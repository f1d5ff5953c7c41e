"""Arms come in kinds that nobody named: rows of moves, pooled over latent classes of arms.

The row p of an arm for one (state, action) is drawn about its class's row m, that about the row m0
of all arms, and m0 from the flat Dirichlet:  p ~ Dir(k m),  m ~ Dir(j m0),  m0 ~ Dir(1, ..., 1).
The strengths k and j and the number of classes are not known: every combination of a grid is
weighed by its marginal likelihood, as Cheeseman and Stutz (1996) approximate it.
"""

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, xlogy

from dopl_core.learning.bandit import FloatArray, IntArray

MOST_CLASSES = 4
# Strengths are in moves: how many moves of its own an arm needs to outweigh its class. At the least
# an arm says nearly nothing of the others; at the most a study hardly tells arms of a class apart.
STRENGTHS = np.array([2.0, 8.0, 32.0, 128.0, 512.0])
CLASS_STRENGTHS = np.array([4.0, 32.0, 256.0])  # the same for classes about the row of all arms
ALONE = 0.5  # the chance that a row has a strength of its own, not the one that rows share
SORTING = 12  # rounds of sorting arms into classes; each is two small matrix products


def rows(visits: IntArray, groups: tuple[str, ...] | None = None) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of every transition row, both [N, S, A, S'], from visits.

    groups: kinds of arms that an owner names [N]; one more starting point, not the last word
    """
    N, S = visits.shape[:2]
    n = visits.reshape(N, -1, S).astype(float)
    fits = [_fit(n, shares) for shares in _sortings(n, groups)]
    evidence = np.array([fit[2] for fit in fits])
    mean, variance = _mix(
        _softmax(evidence), np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits])
    )
    return mean.reshape(visits.shape), variance.reshape(visits.shape)


def _sortings(n: FloatArray, groups: tuple[str, ...] | None) -> list[FloatArray]:
    """Shares [N, C] of the arms in 1, 2, ... classes: a quick start for `_fit`.

    A quick sort by the multinomial likelihood: an arm's moves count for less the more arms of a
    class differ (the Dirichlet-multinomial's variance is that of 1/deflate as many moves).
    Each further class starts at the arm that the classes so far explain worst.
    """
    N, _, S = n.shape
    k = np.median(STRENGTHS)
    deflate = (1 + k) / (k + np.maximum(n.sum(axis=2, keepdims=True), 1))
    counts = (n * deflate).reshape(N, -1)
    pooled = _normalised(counts.sum(axis=0), 1.0, S)
    own = _normalised(counts, S * pooled, S)
    alone = (counts * np.log(own)).sum(axis=1)
    found = [np.ones((N, 1))]
    m = pooled[None]
    for _ in range(2, min(MOST_CLASSES, N) + 1):
        odd = (alone - (counts @ np.log(m).T).max(axis=1)).argmax()
        share, m = _sort(counts, np.concatenate([m, own[[odd]]]), pooled, S)
        found.append(share)
    if groups is not None and len(set(groups)) > 1:
        named = (np.array(groups)[:, None] == np.unique(groups)).astype(float)
        m = _normalised(named.T @ counts, S * pooled, S)
        found.append(_sort(counts, m, pooled, S)[0])
    return found


def _sort(
    counts: FloatArray, m: FloatArray, pooled: FloatArray, S: int
) -> tuple[FloatArray, FloatArray]:
    """Classes by expectation and maximisation, from rows m [C, R * S]: shares and rows."""
    size = np.ones(len(m))
    for _ in range(SORTING):
        share = _softmax(counts @ np.log(m).T + np.log(size))
        m = _normalised(share.T @ counts, S * pooled, S)
        size = share.sum(axis=0) + 1
    return share, m


def _fit(n: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Mean and variance [N, R, S] of the rows and log evidence, from starting shares [N, C].

    Axes: k strengths, n arms, c classes, r rows, s next states.
    """
    N, C = share.shape
    k = STRENGTHS[:, None, None, None]
    Z = n.sum(axis=2)
    # What an arm's moves tell of its class: at first as many moves as their variance is worth.
    tables = n * ((1 + k) / (k + np.maximum(Z, 1)[..., None]))  # [k, n, r, s]
    tables = np.einsum("nc,knrs->kcrs", share, tables)
    pooled = tables.sum(axis=(0, 1)) + 1
    pooled /= pooled.sum(axis=1, keepdims=True)
    S = n.shape[2]
    m = tables + S * pooled
    m /= m.sum(axis=3, keepdims=True)
    a = (k * m)[:, None]
    moves = n[:, None] + a  # [k, n, c, r, s]
    likelihood = (gammaln(moves) - gammaln(a)).sum(axis=4)
    likelihood += (gammaln(k[..., 0]) - gammaln(k[..., 0] + Z))[:, :, None]
    if C > 1:
        w = _softmax(np.einsum("nc,kncr->rk", share, likelihood))
        logits = np.einsum("rk,kncr->nc", w, likelihood) + digamma(share.sum(axis=0) + 1)
        share = _softmax(logits)
    # Then as many as independent draws from the class's row would have been (the expected number
    # of tables of a Chinese restaurant).
    tables = np.einsum("nc,kncrs->kcrs", share, a * (digamma(moves) - digamma(a)))
    class_mean, class_variance, class_evidence = _class_rows(tables)
    row_evidence = (
        np.einsum("nc,kncr->kr", share, likelihood)
        - (tables * np.log(m)).sum(axis=(1, 3))
        + class_evidence
    )
    w, evidence = _row_strengths(row_evidence)
    members = share.sum(axis=0)
    evidence -= xlogy(share, share).sum()
    evidence += gammaln(members + 1).sum() + gammaln(C) - gammaln(N + C) + gammaln(C + 1)
    total = k + Z[..., None]  # [k, n, r, 1]
    weight = (k / total)[:, :, None]
    mu = weight * class_mean[:, None] + (n / total)[:, :, None]
    spread = mu * (1 - mu) / (total[:, :, None] + 1) + weight**2 * class_variance[:, None]
    joint = w[:, None, None, :] * share[:, :, None]  # [k, n, c, r]
    mean = np.einsum("kncr,kncrs->nrs", joint, mu)
    variance = np.einsum("kncr,kncrs->nrs", joint, spread + mu**2) - mean**2
    return mean, variance, float(evidence)


def _row_strengths(log_evidence: FloatArray) -> tuple[FloatArray, float]:
    """How likely each strength is for each row [k, r], and the log evidence of all rows together.

    Rows have a strength in common, but any of them may have one of its own (ALONE).
    """
    K = len(log_evidence)
    top = log_evidence.max(axis=0)
    e = np.exp(log_evidence - top)
    own = ALONE * e.mean(axis=0)
    each = np.log((1 - ALONE) * e + own + 1e-300)  # [common strength, row]
    together = each.sum(axis=1)
    common = _softmax(together)
    # p(k, r) = sum over common g of p(g) [(1-alone) d(k, g) + alone / K] e(k, r) / sum
    per = common[:, None] / np.exp(each)
    w = e * ((1 - ALONE) * per + ALONE / K * per.sum(axis=0))
    return w, float(logsumexp(together) - np.log(K) + top.sum())


def _class_rows(tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of class rows [K, C, R, S] and log evidence [K], for their `tables`.

    tables: how many independent draws from the class's row its arms' moves are worth
    """
    S = tables.shape[-1]
    j = CLASS_STRENGTHS[:, None, None, None, None]
    T = tables[None]
    total = T.sum(axis=-1, keepdims=True)
    top = T.sum(axis=2, keepdims=True)
    for _ in range(2):
        m0 = (1 + top) / (S + top.sum(axis=-1, keepdims=True))
        a = j * m0
        each = a * (digamma(T + a) - digamma(a))
        top = each.sum(axis=2, keepdims=True)
    dirichlet = gammaln(T + a) - gammaln(a)
    evidence = (
        dirichlet.sum(axis=(2, 4))
        + (gammaln(j) - gammaln(j + total)).sum(axis=(2, 4))
        - (top * np.log(m0)).sum(axis=(2, 4))
        + gammaln(1 + top).sum(axis=(2, 4))
        + (gammaln(S) - gammaln(S + top.sum(axis=-1))).sum(axis=2)
    )
    m0 = (1 + top) / (S + top.sum(axis=-1, keepdims=True))
    v0 = m0 * (1 - m0) / (S + top.sum(axis=-1, keepdims=True) + 1)
    weight = j / (j + total)
    mean = (j * m0 + T) / (j + total)
    variance = mean * (1 - mean) / (j + total + 1) + weight**2 * v0
    log_total = logsumexp(evidence, axis=0)
    w = np.exp(evidence - log_total)
    mean_ = np.einsum("jkr,jkcrs->kcrs", w, mean)
    variance = np.einsum("jkr,jkcrs->kcrs", w, variance + (mean - mean_) ** 2)
    return mean_, variance, log_total - np.log(len(CLASS_STRENGTHS))


def _mix(w: FloatArray, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    mixed = np.einsum("g,g...->...", w, mean)
    return mixed, np.einsum("g,g...->...", w, variance + (mean - mixed) ** 2)


def _normalised(counts: FloatArray, prior: FloatArray | float, S: int) -> FloatArray:
    """Rows [..., R * S] of counts plus a prior, each of the R rows summing to 1."""
    split = (counts + prior).reshape(*counts.shape[:-1], -1, S)
    return (split / split.sum(axis=-1, keepdims=True)).reshape(counts.shape)


def _softmax(x: FloatArray) -> FloatArray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))
