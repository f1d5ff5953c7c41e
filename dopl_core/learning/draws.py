"""What may be true: moves and strengths drawn from what is believed of them.

A mean and a width say how sure a single number is. Whether a list is worth more than chance, or
somebody belongs on it, depends on all of them at once: so whole truths are drawn, and counted.
"""

import numpy as np

from dopl_core.learning import latent_classes as classes
from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.latent_classes import STRENGTHS, Classes
from dopl_core.learning.preferences import Preferences


def moves(
    visits: IntArray, groups: tuple[str, ...] | None, count: int, rng: np.random.Generator
) -> FloatArray:
    """Transitions [D, N, S, A, S'] drawn from the posterior that `latent_classes.rows` sums up."""
    N, S = visits.shape[:2]
    n = visits.reshape(N, -1, S)
    found, shares, weight = classes.fits(n, groups)
    of_each = np.bincount(rng.choice(len(found), count, p=weight), minlength=len(found))
    drawn = []
    for kind, share, some in zip(found, shares, of_each.tolist(), strict=True):
        if some:
            every = share if len(share) == N else classes.shares_of(n.astype(float), kind)
            drawn.append(_rows(n, kind, every, some, rng))
    return rng.permutation(np.concatenate(drawn)).reshape(count, *visits.shape)


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
