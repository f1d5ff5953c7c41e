"""What arm-states are worth: from counts of duels to the overestimated reference column."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.dynamics import hoeffding

LIPSCHITZ = 1.3  # Lemma 4's L
F_LOW, F_HIGH = 1 / (1 + np.e), np.e / (1 + np.e)  # Bradley-Terry with rewards in [0, 1] (Prop. 2)


@dataclass(frozen=True, eq=False)
class Preferences:
    """What is believed of Q_n(s), the strength of an arm-state over the reference; arrays [N, S].

    mean: the estimate Q^;  sd: its uncertainty (paper: how far the overestimate lies above)
    overestimate: Q~, in [-1, 1], the reward that the plan is made with
    reference: code (arm * S + state) all are measured against, None while there are no answers
    covariance: [M, M] of the strengths about their average, for choosing duels; None if not needed
    warm: small arrays that a next estimate may start from
    """

    mean: FloatArray
    sd: FloatArray
    overestimate: FloatArray
    reference: int | None
    covariance: FloatArray | None = None
    warm: dict[str, FloatArray] = field(default_factory=dict)


def most_compared(wins: FloatArray) -> int | None:
    """The arm-state in most duels, None where there were none (errata 13)."""
    compared = wins.sum(axis=0) + wins.sum(axis=1)
    return int(compared.argmax()) if compared.any() else None


def empirical(wins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alg. 3, step 2: F^ [M, M], the share of duels that the row won, and the duels C [M, M]."""
    C = wins + wins.T
    return np.divide(wins, C, out=np.full_like(wins, 0.5), where=C > 0), C


def win_chances(strengths: FloatArray) -> FloatArray:
    """F [M, M] of strengths [N, S]: the chance that the row's arm-state is preferred (eq. (2))."""
    flat = strengths.ravel()
    return np.asarray(expit(flat[:, None] - flat))


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


# Spreads (standard deviations) that a part of the strengths may have. Rewards lie in [0, 1], where
# none exceeds 1/2; larger ones are for annotators who are surer than Bradley-Terry with rewards.
SPREADS = np.array([0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0])
TOTAL, OCTAVES, SHARE = 1.0, 0.7, 1.0
VGA = 0
BEND = 0.5
ITER = []
SETTLED = 0.1  # Newton stops when no strength moves by more: well inside any of their sds
OPTIMISM = 1.0  # an overestimate lies as many standard deviations of the strength above its mean


def calibrated(
    wins: FloatArray,
    n_states: int,
    reference: int | None,
    warm: dict[str, FloatArray] | None = None,
    *,
    ordered: bool = False,
) -> Preferences:
    """Bradley-Terry strengths with a Gaussian prior, from wins [M, M], ties half each.

    strength theta[n, s] = state part + arm part + residual, independent with mean 0; how far each
    part spreads is averaged over a grid by its marginal likelihood (Laplace's approximation).
    """
    M = len(wins)
    shape = (M // n_states, n_states)
    C = wins + wins.T
    rise, bend = _order(n_states) if ordered else (np.zeros(n_states), 1.0)
    if C.any():
        theta = np.zeros(M) if warm is None else warm["theta"]
        covariance = np.zeros((M, M))
    else:
        theta, covariance = _prior(shape, rise, bend)
    for _ in range(8 if C.any() else 0):
        # The log-likelihood is nearly quadratic: pull' theta - theta' curvature theta / 2.
        own = covariance.diagonal()
        kappa = 1 / np.sqrt(1 + VGA * np.pi / 8 * (own + own[:, None] - 2 * covariance))
        F = 1 / (1 + np.exp(kappa * (theta - theta[:, None])))
        weight = C * kappa * F * (1 - F)
        curvature = np.diag(weight.sum(axis=1)) - weight
        pull = (wins - C * F).sum(axis=1) + curvature @ theta
        before = theta
        theta, covariance = _posterior(curvature, pull, shape, rise, bend)
        ITER.append(1)
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
    over = mean + OPTIMISM * np.sqrt(variance)
    return Preferences(
        mean.reshape(shape),
        sd.reshape(shape),
        over.reshape(shape),
        reference,
        covariance,
        {"theta": theta},
    )


def _order(n_states: int) -> tuple[FloatArray, float]:
    """States from worst to best: how their part rises [S], and how far it may bend from that.

    Both are in units of the spread of the state part, which is learnt, so the steepness is too.
    """
    rank = np.arange(n_states) - (n_states - 1) / 2
    return rank / max(rank.std(), 1e-12), BEND


def _prior(shape: tuple[int, int], rise: FloatArray, bend: float) -> tuple[FloatArray, FloatArray]:
    """What `_posterior` gives without answers, and much faster for large studies."""
    weight = np.exp(_log_prior())
    weight /= weight.sum()
    residual = weight.sum(axis=(1, 2)) @ SPREADS**2
    arm = weight.sum(axis=(0, 2)) @ SPREADS**2
    steep, square = weight.sum(axis=(0, 1)) @ np.stack([SPREADS[1:], SPREADS[1:] ** 2], axis=1)
    N, S = shape
    state = square * bend**2 * np.eye(S) + (square - steep**2) * np.outer(rise, rise)
    same_arm = np.kron(np.eye(N), np.ones((S, S)))
    covariance = np.tile(state, (N, N)) + arm * same_arm + residual * np.eye(N * S)
    return np.tile(steep * rise, N), covariance


def _posterior(
    curvature: FloatArray,
    pull: FloatArray,
    shape: tuple[int, int],
    rise: FloatArray,
    bend: float,
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

    v = bend**2 * variance[1:, None]  # [t, 1]
    prior = SPREADS[1:, None] * rise / v  # [t, S]
    precision = H_state[:, :, None] + np.eye(S) / v[..., None]  # [r, a, t, S, S]
    state_cov = np.linalg.inv(precision)
    h_state = h_state[:, :, None] + prior
    state = (state_cov @ h_state[..., None])[..., 0]
    log = log[:, :, None] + 0.5 * (
        (state * h_state).sum(axis=3) - np.linalg.slogdet(precision)[1] - S * np.log(v[:, 0])
    )
    log -= 0.5 * (prior**2 * v).sum(axis=1)
    log += _log_prior()
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


def _log_prior() -> FloatArray:
    """Log prior [r, a, t] of the spreads of residual, arm and state part (the last never 0).

    The total is log-normal; which share of it a part has is flat.
    """
    cell = np.maximum(SPREADS, SPREADS[1] / 2)  # a factor of 2 is one cell: as wide as its spread
    r, a, t = cell[:, None, None], cell[:, None], cell[1:]
    total = np.sqrt(r**2 + a**2 + t**2)
    return np.asarray(
        SHARE * np.log(r * a * t / total**3) - (np.log2(total / TOTAL) / OCTAVES) ** 2 / 2
    )
