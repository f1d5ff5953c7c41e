"""How arms move: from counts of visits to an estimate of every transition row, and its box."""

from dataclasses import dataclass, field

import numpy as np

from dopl_core.bandit import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What is believed of the transitions; all arrays [N, S, A, S'].

    mean: the estimate P^;  sd: how uncertain each entry is (paper: the half-width of its box)
    low, high: the box that the plan may choose from
    warm: small arrays that a next estimate may start from
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    warm: dict[str, FloatArray] = field(default_factory=dict)


def hoeffding(
    counts: FloatArray | IntArray, n_arms: int, n_states: int, epochs: int, epsilon: float
) -> FloatArray:
    """The paper's confidence width (sec. 4.1), for dynamics and preferences alike.

    epochs: (k-1) H, those before this plan; at least 1, or the first plan has no width (errata 3)
    """
    log = np.log(4 * n_states * 2 * n_arms * max(1, epochs) / epsilon)
    return np.sqrt(log / np.maximum(2 * counts, 1))


def paper(visits: IntArray, epochs: int, epsilon: float) -> Dynamics:
    """Empirical rows and Hoeffding boxes (paper, sec. 4.1) from visits [N, S, A, S']."""
    N, S = visits.shape[:2]
    Z = visits.sum(axis=3, keepdims=True)
    # Errata 11: an unvisited pair has a flat row and the width 1.
    mean = np.where(Z > 0, visits / np.maximum(Z, 1), 1 / S)
    width = np.where(Z > 0, hoeffding(Z, N, S, epochs, epsilon), 1.0)
    sd = np.broadcast_to(width, mean.shape)
    return Dynamics(mean, sd, np.clip(mean - width, 0, 1), np.clip(mean + width, 0, 1))


CLASSES = 4
Z = 0.5


def calibrated(
    visits: IntArray,
    groups: tuple[str, ...] | None = None,
    warm: dict[str, FloatArray] | None = None,
) -> Dynamics:
    """Dirichlet rows shrunk towards their arm's latent class, and that towards all arms."""
    N, S = visits.shape[:2]
    n = visits.reshape(N, 2 * S, S).astype(float)
    pooled = n.sum(axis=0)
    pooled = (pooled + 1) / (pooled.sum(axis=1, keepdims=True) + S)
    results = []
    for C in range(1, CLASSES + 1):
        for k in (3.0, 10.0, 30.0, 100.0, 1000.0):
            results.append(_mixture(n, pooled, C, k))
    log = np.array([r[0] for r in results])
    w = np.exp(log - log.max())
    w /= w.sum()
    mean = np.einsum("g,g...->...", w, np.array([r[1] for r in results]))
    var = sum(w_ * (r[2] + (r[1] - mean) ** 2) for w_, r in zip(w, results, strict=True))
    mean, sd = mean.reshape(visits.shape), np.sqrt(var).reshape(visits.shape)
    return Dynamics(mean, sd, np.clip(mean - Z * sd, 0, 1), np.clip(mean + Z * sd, 0, 1))


def _mixture(
    n: FloatArray, pooled: FloatArray, C: int, k: float, prior: float = 2.0, steps: int = 10
) -> tuple[float, FloatArray, FloatArray]:
    from scipy.special import digamma, gammaln

    N, R, S = n.shape
    # start: sort arms by first principal component
    score = (n - n.sum(2, keepdims=True) * pooled) / np.sqrt(n.sum(2, keepdims=True) + 10)
    X = score.reshape(N, -1)
    U, s_, _ = np.linalg.svd(X - X.mean(0), full_matrices=False)
    rank = U[:, 0].argsort().argsort()
    q = np.eye(C)[(rank * C) // N]
    q = 0.8 * q + 0.2 / C
    m = np.broadcast_to(pooled, (C, R, S))
    pi = np.full(C, 1 / C)
    Z = n.sum(2)
    for _ in range(steps):
        a = k * m
        t = a * (digamma(n[:, None] + a) - digamma(a))
        T = np.einsum("nc,ncrs->crs", q, t)
        m = prior * pooled + T
        m = m / m.sum(-1, keepdims=True)
        pi = (q.sum(0) + 1) / (N + C)
        a = k * m
        ll = (gammaln(n[:, None] + a) - gammaln(a)).sum((2, 3))
        ll += (gammaln(k) - gammaln(k + Z)).sum(1)[:, None]
        ll = ll + np.log(pi)
        top = ll.max(1, keepdims=True)
        q = np.exp(ll - top)
        tot = q.sum(1, keepdims=True)
        q /= tot
    t = a * (digamma(n[:, None] + a) - digamma(a))
    T = np.einsum("nc,ncrs->crs", q, t)
    loglik = (np.log(tot) + top).sum()
    p0 = prior * pooled
    ev = loglik - (T * np.log(m)).sum()
    ev += (gammaln(p0 + T) - gammaln(p0)).sum() + (gammaln(prior) - gammaln(prior + T.sum(2))).sum()
    nc = q.sum(0)
    ev += -(nc * np.log(pi)).sum() + gammaln(C) - gammaln(N + C) + gammaln(nc + 1).sum()
    ev += gammaln(C + 1)
    mt = (p0 + T) / (prior + T.sum(2, keepdims=True))
    mv = mt * (1 - mt) / (prior + T.sum(2, keepdims=True) + 1)
    tot = k + Z[:, None, :, None]
    mu = (k * mt + n[:, None]) / tot
    v = mu * (1 - mu) / (tot + 1) + (k / tot) ** 2 * mv
    mean = np.einsum("nc,ncrs->nrs", q, mu)
    var = np.einsum("nc,ncrs->nrs", q, v + (mu - mean[:, None]) ** 2)
    return ev, mean, var
