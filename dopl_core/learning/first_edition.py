"""Strengths and pairs as studies of edition 1 have them: kept to the last bit, so that they replay.

Nothing here is improved; what is better is in preferences.py and pair_designs.py.
"""

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.preferences import Preferences

# Spreads (standard deviations) that a part of the strengths may have. Rewards lie in [0, 1], where
# none exceeds 1/2; larger ones are for annotators who are surer than Bradley-Terry with rewards.
SPREADS = np.array([0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0])
SETTLED = 0.1  # Newton stops when no strength moves by more: well inside any of their sds
OPTIMISM = 1.0  # an overestimate lies as many standard deviations of the strength above its mean


def calibrated(
    wins: FloatArray,
    n_states: int,
    reference: int | None,
    warm: dict[str, FloatArray] | None = None,
) -> Preferences:
    """Bradley-Terry strengths with a Gaussian prior, from wins [M, M], ties half each.

    strength theta[n, s] = state part + arm part + residual, independent with mean 0; how far each
    part spreads is averaged over a grid by its marginal likelihood (Laplace's approximation).
    """
    M = len(wins)
    shape = (M // n_states, n_states)
    C = wins + wins.T
    theta = warm["theta"] if warm is not None and C.any() else np.zeros(M)
    covariance = _prior_covariance(shape)
    for _ in range(8 if C.any() else 0):
        # The log-likelihood is nearly quadratic: pull' theta - theta' curvature theta / 2.
        F = 1 / (1 + np.exp(theta - theta[:, None]))
        weight = C * F * (1 - F)
        curvature = np.diag(weight.sum(axis=1)) - weight
        pull = (wins - C * F).sum(axis=1) + curvature @ theta
        before = theta
        theta, covariance = _posterior(curvature, pull, shape)
        if np.abs(theta - before).max() < SETTLED:
            break
    # Duels tell differences only, so all is taken about the average of what was asked about.
    # Against the reference, all others would be credited with how little the reference is known:
    # if it was asked about only in the beginning, its neighbours would never be asked about again.
    asked = C.sum(axis=1) / C.sum() if C.any() else np.full(M, 1 / M)
    level = covariance @ asked
    covariance = covariance - level - level[:, None] + asked @ level
    variance = np.maximum(covariance.diagonal(), 0)
    if reference is None:
        mean, sd = theta, np.sqrt(variance)
    else:
        mean = theta - theta[reference]
        sd = np.sqrt(np.maximum(variance + variance[reference] - 2 * covariance[reference], 0))
    over = np.clip(mean + OPTIMISM * np.sqrt(variance), -1, 1)
    return Preferences(
        mean.reshape(shape),
        sd.reshape(shape),
        over.reshape(shape),
        reference,
        covariance,
        {"theta": theta},
    )


def _prior_covariance(shape: tuple[int, int]) -> FloatArray:
    """What `_posterior` gives without answers [M, M], and much faster for large studies."""
    weight = np.exp(_log_prior(SPREADS))
    own = weight @ SPREADS**2 / weight.sum()
    state = weight[1:] @ SPREADS[1:] ** 2 / weight[1:].sum()
    N, S = shape
    same_state, same_arm = np.tile(np.eye(S), (N, N)), np.kron(np.eye(N), np.ones((S, S)))
    return np.asarray(state * same_state + own * same_arm + own * np.eye(N * S))


def _posterior(
    curvature: FloatArray, pull: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Mean [M] and covariance [M, M] of the strengths, averaged over the spreads of their parts.

    The parts of theta = state[s] + arm[n] + residual are integrated out one after the other, the
    largest first, each for all its spreads at once: in the eigenbasis of what is known of it.
    Axes: r, a, t the spreads of residual, arm and state part; m arm-states in their eigenbasis.
    """
    N, S = shape
    M = N * S
    variance = SPREADS**2
    values, Q = np.linalg.eigh(curvature)
    h = pull @ Q
    by_state, by_arm = (Q.reshape(N, S, M).sum(axis=axis).T for axis in (0, 1))  # [M, S], [M, N]

    v = variance[:, None]
    keep = 1 / (1 + v * np.maximum(values, 0))  # [r, m]
    log = 0.5 * (np.log(keep) + v * keep * h**2).sum(axis=1)
    known = (values * keep)[:, :, None]
    H_state = by_state.T @ (known * by_state)
    H_arm = by_arm.T @ (known * by_arm)
    H_both = by_arm.T @ (known * by_state)
    h_state, h_arm = (keep * h) @ by_state, (keep * h) @ by_arm

    values, E = np.linalg.eigh(H_arm)
    turned = E.transpose(0, 2, 1)
    G, g = turned @ H_both, (turned @ h_arm[:, :, None])[:, :, 0]
    v = variance[:, None]
    scale = v / (1 + v * np.maximum(values, 0)[:, None])  # [r, a, N]
    log = log[:, None] + 0.5 * (
        scale * g[:, None] ** 2 - np.log1p(v * np.maximum(values, 0)[:, None])
    ).sum(axis=2)
    arm_on_state = -scale[..., None] * G[:, None]  # [r, a, N, S]: what arms take on, per state
    H_state = H_state[:, None] + G.transpose(0, 2, 1)[:, None] @ arm_on_state
    h_state = h_state[:, None] - ((scale * g[:, None])[:, :, None] @ G[:, None])[:, :, 0]

    v = variance[1:, None, None]
    precision = H_state[:, :, None] + np.eye(S) / v  # [r, a, t, S, S]
    state_cov = np.linalg.inv(precision)
    state = (state_cov @ h_state[:, :, None, :, None])[..., 0]
    log = log[:, :, None] + 0.5 * (
        (state * h_state[:, :, None]).sum(axis=3)
        - np.linalg.slogdet(precision)[1]
        - S * np.log(variance[1:])
    )
    prior = _log_prior(SPREADS)
    log += prior[:, None, None] + prior[:, None] + prior[1:]
    w = np.exp(log - log.max())
    w /= w.sum()

    # Back again: theta is linear in (state, 1), whose second moments are these.
    second = np.empty((*w.shape[:2], S + 1, S + 1))
    second[..., :S, :S] = np.einsum("rat,ratij->raij", w, state_cov)
    second[..., :S, :S] += np.einsum("rat,rati,ratj->raij", w, state, state)
    second[..., S, :S] = second[..., :S, S] = np.einsum("rat,rati->rai", w, state)
    second[..., S, S] = w.sum(axis=2)
    arms = by_arm @ E  # [r, M, N]
    line = np.empty((*w.shape[:2], M, S + 1))
    line[..., :S] = by_state + arms[:, None] @ arm_on_state
    line[..., S] = variance[:, None, None] * h
    line[..., S] += (arms[:, None] @ (scale * g[:, None])[..., None])[..., 0]
    line *= keep[:, None, :, None]
    half = line @ second
    mean = half[..., S].sum(axis=(0, 1))
    flat = (M, -1)
    moments = half.transpose(2, 0, 1, 3).reshape(flat) @ line.transpose(2, 0, 1, 3).reshape(flat).T
    arms *= keep[:, :, None]
    arm_variance = np.einsum("rat,ran->rn", w, scale)
    moments += ((arms * arm_variance[:, None]) @ arms.transpose(0, 2, 1)).sum(axis=0)
    moments += np.diag(w.sum(axis=(1, 2)) * variance @ keep)
    covariance = moments - np.outer(mean, mean)
    return Q @ mean, Q @ covariance @ Q.T


def _log_prior(spread: FloatArray | float) -> FloatArray:
    """Half-normal of scale 1/4, times the width of a grid cell (a factor of 2 is one cell)."""
    spread = np.maximum(spread, 1 / 32)
    return np.asarray(np.log(spread) - 8 * spread**2)


def informative(
    towards: FloatArray, covariance: FloatArray, strengths: FloatArray, keys: FloatArray
) -> IntArray:
    """The tree of one epoch whose answers tell most, built pair by pair; positions [B-1, 2].

    towards: [M, B] covariances of what the plan depends on with the B activated arm-states, each
    row scaled by how much the plan depends on it;  covariance: [B, B] of the activated ones;
    strengths: [B] their means;  keys: [2B], which of equal pairs comes first

    An answer about i and j is worth c = F (1 - F) observations of theta_i - theta_j, and lowers the
    variance of x by c cov(x, i - j)^2 / (1 + c var(i - j)). Each pair joins two parts of the tree.
    """
    B = len(strengths)
    order = keys[:B].argsort()
    towards, covariance = towards[:, order], covariance[np.ix_(order, order)]
    # Not scipy's expit, whose last bits differ: what was asked is compared when it is replayed.
    F = 1 / (1 + np.exp(strengths[order] - strengths[order][:, None]))
    c = F * (1 - F)
    part = np.arange(B)
    pairs = []
    for _ in range(B - 1):
        variance = _of_differences(covariance)
        worth = c / (1 + c * variance)
        gain = np.where(part[:, None] == part, -1.0, worth * _of_differences(towards.T @ towards))
        i, j = divmod(int(gain.argmax()), B)
        pairs.append((order[i], order[j]))
        told = covariance[:, i] - covariance[:, j]
        towards = towards - worth[i, j] * np.outer(towards[:, i] - towards[:, j], told)
        covariance = covariance - worth[i, j] * np.outer(told, told)
        part[part == part[j]] = part[i]
    return np.array(pairs)


def _of_differences(inner: FloatArray) -> FloatArray:
    """Squared lengths [B, B] of all differences of vectors with these inner products [B, B]."""
    own = inner.diagonal()
    return own[:, None] + own - 2 * inner
