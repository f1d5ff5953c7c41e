"""Arms come in kinds that nobody named: rows of moves, pooled over latent classes of arms.

The row p of an arm for one (state, action) is drawn about its class's row m, that about the row m0
of all arms, and m0 from the flat Dirichlet:  p ~ Dir(k m),  m ~ Dir(j m0),  m0 ~ Dir(1, ..., 1).
The strengths k and j and the number of classes are not known: every combination of a grid is
weighed by its marginal likelihood, as Cheeseman and Stutz (1996) approximate it.
"""

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from dopl_core.bandit import FloatArray, IntArray

MOST_CLASSES = 4
# Strengths are in moves: how many moves of its own an arm needs to outweigh its class. At the least
# an arm says nearly nothing of the others; at the most a study hardly tells arms of a class apart.
STRENGTHS = np.array([2.0, 8.0, 32.0, 128.0, 512.0])
SORT, ROUNDS = 32.0, 3
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
    k = SORT
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
    """Mean and variance [N, R, S] of the rows and log evidence, from starting shares [N, C]."""
    N, C = share.shape
    k = STRENGTHS[:, None, None, None, None]
    Z = n.sum(axis=2)
    moves = n[None, :, None]
    tables = np.broadcast_to(np.einsum("nc,nrs->crs", share, n), (len(k), C, *n.shape[1:]))
    k_ = STRENGTHS[:, None, None]
    base = gammaln(k_) - gammaln(k_ + Z)
    for round in range(ROUNDS):
        m = _class_rows(tables)[0]
        a = k * m[:, None]
        likelihood = (gammaln(moves + a) - gammaln(a)).sum(axis=4) + base[:, :, None]
        each = a * (digamma(moves + a) - digamma(a))
        tables = np.einsum("nc,kncrs->kcrs", share, each)
        class_mean, class_variance, class_evidence = _class_rows(tables)
        row_evidence = (
            np.einsum("nc,kncr->kr", share, likelihood)
            - (tables * np.log(m)).sum(axis=(1, 3))
            + class_evidence
        )
        w = _softmax(row_evidence.T).T
        members = share.sum(axis=0)
        if round < ROUNDS - 1 and C > 1:
            logits = np.einsum("kr,kncr->nc", w, likelihood) + digamma(members + 1)
            share = _softmax(logits)
            tables = np.einsum("nc,kncrs->kcrs", share, each)
    evidence = (logsumexp(row_evidence, axis=0) - np.log(len(k))).sum() - (
        share * np.log(share + 1e-300)
    ).sum()
    evidence += gammaln(members + 1).sum() + gammaln(C) - gammaln(N + C) + gammaln(C + 1)
    weight = k / (k + Z[None, :, None, :, None])
    mu = weight * class_mean[:, None] + (1 - weight) * (n / np.maximum(Z, 1)[..., None])[:, None]
    spread = mu * (1 - mu) / (k + Z[None, :, None, :, None] + 1)
    spread = spread + weight**2 * class_variance[:, None]
    mean = np.einsum("kr,nc,kncrs->nrs", w, share, mu)
    variance = np.einsum("kr,nc,kncrs->nrs", w, share, spread + (mu - mean[:, None]) ** 2)
    return mean, variance, float(evidence)


def _class_rows(tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of class rows [K, C, R, S] and log evidence [K], for their `tables`.

    tables: how many independent draws from the class's row its arms' moves are worth
    """
    S = tables.shape[-1]
    j = STRENGTHS[:, None, None, None, None]
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
    return mean_, variance, log_total - np.log(len(STRENGTHS))


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
