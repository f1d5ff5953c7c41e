"""What may be true: moves and strengths drawn from what is believed of them.

A mean and a width say how sure a single number is. Whether a list is worth more than chance, or
somebody belongs on it, depends on all of them at once: so whole truths are drawn, and counted.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax

from dopl_core.learning import latent_classes as classes
from dopl_core.learning.bandit import ACT, FloatArray, IntArray
from dopl_core.learning.latent_classes import STRENGTHS, Classes
from dopl_core.learning.preferences import Preferences

PATTERNS = 8  # of states that help makes no difference in; with three states, all there are


def moves(
    visits: IntArray,
    groups: tuple[str, ...] | None,
    count: int,
    rng: np.random.Generator,
    idle: float = 0.0,
) -> FloatArray:
    """Transitions [D, N, S, A, S'] drawn from the posterior that `latent_classes.rows` sums up.

    idle: how likely it seems beforehand of each state that help makes no difference in it. The more
    likely, the less do moves that came by luck pass for what help does.
    """
    drawn = []
    for still, some in _patterns(visits, groups, count, rng, idle):
        of = _row_of(still)
        n = _merged(visits, of)
        found, shares, evidence = classes.fits(n, groups)
        of_each = rng.multinomial(some, softmax(evidence))
        for kind, share, few in zip(found, shares, of_each.tolist(), strict=True):
            if few:
                every = share if len(share) == len(n) else classes.shares_of(n.astype(float), kind)
                drawn.append(_rows(n, kind, every, few, rng)[:, :, of])
    return rng.permutation(np.concatenate(drawn)).reshape(count, *visits.shape)


def _patterns(
    visits: IntArray,
    groups: tuple[str, ...] | None,
    count: int,
    rng: np.random.Generator,
    idle: float,
) -> list[tuple[NDArray[np.bool_], int]]:
    """Which states [S] help makes no difference in, and how many of the draws are of this kind.

    Of each state by itself, as likely as the moves make it; of many patterns the most common ones.
    """
    S = visits.shape[1]
    if not idle:
        return [(np.zeros(S, dtype=bool), count)]
    each = np.concatenate([np.zeros((1, S), dtype=bool), np.eye(S, dtype=bool)])
    evidence = [
        logsumexp(classes.fits(_merged(visits, _row_of(still)), groups)[2]) for still in each
    ]
    chance = expit(np.array(evidence[1:]) - evidence[0] + logit(idle))
    drawn, often = np.unique(rng.random((count, S)) < chance, axis=0, return_counts=True)
    most = np.argsort(-often, kind="stable")[:PATTERNS]
    share = rng.multinomial(count, often[most] / often[most].sum())
    return [(drawn[at], int(some)) for at, some in zip(most, share, strict=True) if some]


def _row_of(still: NDArray[np.bool_]) -> IntArray:
    """The row of each state and action [S * A], where a state that help leaves as it is has one."""
    own = np.ones((len(still), 2), dtype=np.int64)
    own[still, ACT] = 0
    return np.asarray(own.ravel().cumsum() - 1)


def _merged(visits: IntArray, of: IntArray) -> IntArray:
    """Moves [n, r, s] by row, those of rows that are one taken together."""
    N, S = visits.shape[:2]
    n = np.zeros((of[-1] + 1, N, S), dtype=visits.dtype)
    np.add.at(n, of, visits.reshape(N, -1, S).transpose(1, 0, 2))
    return np.ascontiguousarray(n.transpose(1, 0, 2))


def _rows(
    n: IntArray, kind: Classes, share: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Rows [D, n, r, s] of all arms: first those of their classes, then their own about them."""
    k = _pick(kind.strengths.T, count, rng)  # [D, r]
    rows = np.arange(k.shape[1])
    mean, variance = (part[k, :, rows].transpose(2, 0, 1, 3) for part in (kind.mean, kind.variance))
    # The Dirichlet of the same mean and the same variance in all.
    total = (mean * (1 - mean)).sum(axis=-1) / np.maximum(variance.sum(axis=-1), 1e-12) - 1
    of_class = dirichlet(mean * np.maximum(total, 1e-3)[..., None], rng)  # [c, D, r, s]
    c = _pick(share, count, rng)  # [D, n]
    mine = of_class[c, np.arange(count)[:, None]]  # [D, n, r, s]
    return dirichlet(STRENGTHS[k][:, None, :, None] * mine + n, rng)


def _pick(chances: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Numbers [count, ...] drawn with chances [..., K] that sum to 1."""
    up_to = chances.cumsum(axis=-1)[..., :-1]
    return np.asarray((rng.random((count, *chances.shape[:-1], 1)) >= up_to).sum(axis=-1))


def dirichlet(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows [..., s] drawn from Dirichlet distributions with parameters of the same shape."""
    gamma = rng.standard_gamma(alpha) + 1e-300  # parameters near 0 may give nothing but zeros
    return gamma / gamma.sum(axis=-1, keepdims=True)


def strengths(belief: Preferences, count: int, rng: np.random.Generator) -> FloatArray:
    """Strengths [D, N, S] drawn from the Gaussian that `belief` is; each by itself, where it has no
    covariance.
    """
    V = belief.covariance
    if V is None:
        return belief.mean + belief.sd * rng.standard_normal((count, *belief.mean.shape))
    known, basis = np.linalg.eigh(V)
    noise = rng.standard_normal((count, len(V))) * np.sqrt(np.maximum(known, 0))
    return belief.mean + (noise @ basis.T).reshape(count, *belief.mean.shape)
