"""Four simple models of the next state, to compare a learner with.

Each is a function of a trial and a step. It uses the steps before, and the states and the help at
this step, and returns the chances of each person's next state [N, S'].
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, gammaln, log_expit

from dopl_core.experiments.trials.trial import Trial
from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray

Model = Callable[[Trial, int], FloatArray]

SMOOTHING = 0.5  # of a move, added to each next state
WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)  # moves that everybody's row may count for
RIDGE = 1.0  # on slopes: a normal prior with standard deviation 1
RIDGE_STEPS = 0.1  # on the logs of the distances between thresholds
OWN_HISTORY = 2.0  # states that everybody's mean counts for in a person's own


def shares(trial: Trial, step: int) -> FloatArray:
    """The shares of all next states so far, for everybody."""
    counts = trial.seen_before(step).sum(axis=(0, 1, 2)) + SMOOTHING
    return np.tile(counts / counts.sum(), (trial.n_people, 1))


def pooled_chain(trial: Trial, step: int) -> FloatArray:
    """One chain for everybody: the next state depends on the state and on help."""
    return _pooled_rows(trial.seen_before(step))[_now(trial, step)]


def personal_chain(trial: Trial, step: int) -> FloatArray:
    """Each person's own chain, shrunk to the pooled one.

    Rows are Dirichlet around the pooled row p: (n + k p) / (sum n + k). The weight k is the one of
    WEIGHTS under which the moves so far are most probable.
    """
    seen = trial.seen_before(step)
    pooled = _pooled_rows(seen)
    k = max(WEIGHTS, key=lambda weight: _evidence(seen, weight * pooled))
    own = seen[np.arange(trial.n_people), *_now(trial, step)]  # [N, S']
    mixed = own + k * pooled[_now(trial, step)]
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def ordinal_logistic(trial: Trial, step: int) -> FloatArray:
    """Proportional odds of the next state given the state, help, both, and the person's own past.

    P(next <= j) = expit(threshold_j - x slopes), by maximum likelihood with a small ridge.
    """
    past, S = trial.moves.up_to(step), trial.n_states
    if not past.size:
        return np.full((trial.n_people, S), 1 / S)
    at = [_terms(trial, t) for t in range(step + 1)]
    X = np.stack(at[:-1])[past.step, past.person]  # [M, terms]
    thresholds, slopes = _fit(X, past.next_state, S)
    return _chances(thresholds, at[-1] @ slopes)


MODELS: dict[str, Model] = {
    "shares": shares,
    "pooled chain": pooled_chain,
    "personal chain": personal_chain,
    "ordinal logistic": ordinal_logistic,
}


def _now(trial: Trial, step: int) -> tuple[IntArray, IntArray]:
    """Everybody's state [N] and help [N] at a step; state 0 where it is unknown."""
    return np.maximum(trial.states[step], 0), trial.helped[step]


def _pooled_rows(seen: IntArray) -> FloatArray:
    """Smoothed rows [S, 2, S'] of moves [N, S, 2, S']."""
    counts = seen.sum(axis=0) + SMOOTHING
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


def _evidence(seen: IntArray, prior: FloatArray) -> float:
    """The log probability of moves [N, S, 2, S'] with Dirichlet rows of this prior [S, 2, S'].

    ln G(A) - ln G(A + n) + sum_s' ln G(a + n_s') - ln G(a), where A = sum a (Dirichlet-multinomial)
    """
    total, moves = prior.sum(axis=2), seen.sum(axis=3)
    each = gammaln(prior + seen).sum(axis=3) - gammaln(prior).sum(axis=2)
    return float((gammaln(total) - gammaln(total + moves) + each).sum())


def _terms(trial: Trial, step: int) -> FloatArray:
    """The terms of the regression [N, S+2] at a step.

    Each state but the worst; help; help times the state; the mean of the person's own states so far
    less that of all, shrunk.
    """
    state, helped = _now(trial, step)
    S = trial.n_states
    past = trial.states[:step]
    known = past != UNKNOWN
    middle = past[known].mean() if known.any() else 0.0
    own = np.where(known, past - middle, 0).sum(axis=0) / (known.sum(axis=0) + OWN_HISTORY)
    is_state = state[:, None] == np.arange(1, S)
    together = helped * (state / (S - 1) - 0.5)
    return np.column_stack([is_state, helped, together, own]).astype(float)


class _Fitted(NamedTuple):
    thresholds: FloatArray  # [S-1] rising
    slopes: FloatArray  # [terms]


def _fit(X: FloatArray, next_states: IntArray, n_states: int) -> _Fitted:
    """Thresholds and slopes by penalised maximum likelihood.

    The parameters are the first threshold, the logs of the distances to the next ones, the slopes.
    """
    cuts = n_states - 1
    start = np.zeros(cuts + X.shape[1])
    start[0] = -1.0

    def split(z: FloatArray) -> _Fitted:
        return _Fitted(np.cumsum(np.concatenate([z[:1], np.exp(z[1:cuts])])), z[cuts:])

    def loss(z: FloatArray) -> tuple[float, FloatArray]:
        thresholds, slopes = split(z)
        value, by_threshold, by_eta = _log_likelihood(thresholds, X @ slopes, next_states)
        by_first = by_threshold[::-1].cumsum()[::-1]  # of each step, by the chain rule
        by_step = by_first[1:] * np.exp(z[1:cuts])
        gradient = -np.concatenate([by_first[:1], by_step, X.T @ by_eta])
        penalty = np.concatenate(
            [[0.0], np.full(cuts - 1, RIDGE_STEPS), np.full(X.shape[1], RIDGE)]
        )
        return float(-value + 0.5 * (penalty * z**2).sum()), gradient + penalty * z

    return split(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def _log_likelihood(
    thresholds: FloatArray, eta: FloatArray, next_states: IntArray
) -> tuple[float, FloatArray, FloatArray]:
    """sum ln P(next | eta), and its gradients by thresholds [S-1] and eta [M].

    With u, l the thresholds above and below, less eta: P = expit(u) - expit(l), and
    ln P = ln expit(u) + ln expit(-l) + ln(1 - exp(l - u)).
    """
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    upper, lower = edges[next_states + 1] - eta, edges[next_states] - eta
    value = log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(lower - upper))
    apart = 1 / np.expm1(upper - lower)  # exp(l - u) / (1 - exp(l - u))
    by_upper, by_lower = expit(-upper) + apart, -expit(lower) - apart
    by_threshold = np.zeros(len(thresholds) + 2)
    np.add.at(by_threshold, next_states + 1, by_upper)
    np.add.at(by_threshold, next_states, by_lower)
    return float(value.sum()), by_threshold[1:-1], -(by_upper + by_lower)


def _chances(thresholds: FloatArray, eta: FloatArray) -> FloatArray:
    """The chances of the states [N, S] given eta [N]."""
    below = expit(thresholds - eta[:, None])
    edges = np.column_stack([np.zeros(len(eta)), below, np.ones(len(eta))])
    return np.asarray(np.diff(edges, axis=1))
