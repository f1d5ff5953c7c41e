"""What arm-states are worth: from counts of duels to the overestimated reference column."""

from dataclasses import dataclass, field

import numpy as np

from dopl_core.bandit import FloatArray
from dopl_core.dynamics import hoeffding

LIPSCHITZ = 1.3  # Lemma 4's L
F_LOW, F_HIGH = 1 / (1 + np.e), np.e / (1 + np.e)  # Bradley-Terry with rewards in [0, 1] (Prop. 2)


@dataclass(frozen=True, eq=False)
class Preferences:
    """What is believed of Q_n(s), the strength of an arm-state over the reference; arrays [N, S].

    mean: the estimate Q^;  sd: its uncertainty (paper: how far the overestimate lies above)
    overestimate: Q~, in [-1, 1], the reward that the plan is made with
    reference: code (arm * S + state) all are measured against, None while there are no answers
    warm: small arrays that a next estimate may start from
    """

    mean: FloatArray
    sd: FloatArray
    overestimate: FloatArray
    reference: int | None
    warm: dict[str, FloatArray] = field(default_factory=dict)


def most_compared(wins: FloatArray) -> int | None:
    """The arm-state in most duels, None where there were none (errata 13)."""
    compared = wins.sum(axis=0) + wins.sum(axis=1)
    return int(compared.argmax()) if compared.any() else None


def empirical(wins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alg. 3, step 2: F^ [M, M], the share of duels that the row won, and the duels C [M, M]."""
    C = wins + wins.T
    return np.divide(wins, C, out=np.full_like(wins, 0.5), where=C > 0), C


def infer(F1: FloatArray, F2: FloatArray) -> FloatArray:
    """Lemma 4: F(j1, j2) from F1 = F(hub, j1) and F2 = F(hub, j2)."""
    a, b = (1 - F1) * F2, (1 - F2) * F1
    return a / (a + b)


def logit(F: FloatArray) -> FloatArray:
    """Q = ln F / (1 - F) (Prop. 1)."""
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


# Spreads (standard deviations) that a part of the strength may have. Rewards lie in [0, 1], and
# nothing in [0, 1] has a standard deviation over 1/2.
SPREADS = np.array([0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2])
Z = 0.5


def calibrated(
    wins: FloatArray,
    n_states: int,
    reference: int | None,
    warm: dict[str, FloatArray] | None = None,
) -> Preferences:
    """Bradley-Terry strengths with a Gaussian prior, from wins [M, M], ties half each.

    strength theta[n, s] = state part + arm part + residual, independent with mean 0; how far each
    part spreads is averaged over a grid by its marginal likelihood (Laplace).
    """
    M = len(wins)
    shape = (M // n_states, n_states)
    roots, prior = _roots(shape)
    C = wins + wins.T
    won = wins.sum(axis=1)
    theta = np.zeros(M) if warm is None else warm["theta"]
    for _ in range(2):
        gap = theta[:, None] - theta
        F = 1 / (1 + np.exp(-gap))
        weight = C * F * (1 - F)
        curvature = np.diag(weight.sum(axis=1)) - weight
        # The log-likelihood is nearly quadratic where gaps are below 1: pull' theta - curvature/2.
        pull = won - (C * F).sum(axis=1) + curvature @ theta
        means, log_evidence, factors = _posteriors(curvature, pull, roots, shape)
        log_weight = log_evidence + np.log(prior)
        w = np.exp(log_weight - log_weight.max())
        w /= w.sum()
        theta = w @ means
    keep = w > 0.001
    w = w[keep] / w[keep].sum()
    means, roots, factors = means[keep], roots[keep], factors[keep]
    half = np.linalg.solve(factors, _apply(roots, np.broadcast_to(np.eye(M), factors.shape), shape))
    covariance = np.einsum("g,gki,gkj->ij", w, half, half, optimize=True)
    off = means - theta
    covariance += np.einsum("g,gi,gj->ij", w, off, off)
    if reference is None:
        mean, var = theta, covariance.diagonal()
    else:
        mean = theta - theta[reference]
        var = covariance.diagonal() + covariance[reference, reference] - 2 * covariance[reference]
    sd = np.sqrt(np.maximum(var, 0))
    over = np.clip(mean + Z * sd, -1, 1)
    return Preferences(
        mean.reshape(shape), sd.reshape(shape), over.reshape(shape), reference, {"theta": theta}
    )


def _roots(shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """The square root of each prior covariance as [G, 4] numbers for `_apply`, and its weight [G].

    The covariance has four eigenspaces: constant, by state, by arm, and the rest.
    """
    N, S = shape
    state, arm, rest = (g.ravel() ** 2 for g in np.meshgrid(SPREADS[1:], SPREADS, SPREADS))
    both = np.sqrt(N * state + S * arm + rest)
    states, arms, rests = np.sqrt(N * state + rest), np.sqrt(S * arm + rest), np.sqrt(rest)
    roots = np.stack([rests, states - rests, arms - rests, both - states - arms + rests], axis=1)
    return roots, np.ones(len(roots))


def _apply(roots: FloatArray, x: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Prior roots [G, 4] times the columns of x [G, M, K]."""
    split = x.reshape(len(x), *shape, -1)
    by_state = split.mean(axis=1, keepdims=True)
    by_arm = split.mean(axis=2, keepdims=True)
    c = roots.T[:, :, None, None, None]
    out = c[0] * split + c[1] * by_state + c[2] * by_arm + c[3] * by_state.mean(2, keepdims=True)
    return out.reshape(len(roots), x.shape[1], -1)


def _posteriors(
    curvature: FloatArray, pull: FloatArray, roots: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior means [G, M], log evidences [G] and factors of the whitened precisions [G, M, M]."""
    M = len(pull)
    first = _apply(roots, curvature[None], shape)
    A = np.eye(M) + _apply(roots, first.transpose(0, 2, 1), shape)
    factors = np.linalg.cholesky((A + A.transpose(0, 2, 1)) / 2)
    b = _apply(roots, pull[None, :, None], shape)
    half = np.linalg.solve(factors, b)
    x = np.linalg.solve(factors.transpose(0, 2, 1), half)
    log_det = np.log(factors.diagonal(axis1=1, axis2=2)).sum(axis=1)
    evidence = 0.5 * (half[..., 0] ** 2).sum(axis=1) - log_det
    return _apply(roots, x, shape)[..., 0], evidence, factors
