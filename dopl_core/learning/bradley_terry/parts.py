"""The Gaussian parts of strengths, integrated out for all their standard deviations at once.

theta[n, s] = state part + arm part + residual. The likelihood is exp(pull' theta - theta' curvature
theta / 2). The largest part comes first, each in the eigenbasis of what is known of it.
"""

from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.bradley_terry.spreads import SPREADS, Prior

_NEGLIGIBLE = 1e-6  # share of the weight below which spreads are left out of an average


class Rest(NamedTuple):
    """What is known of states and arms once the residuals are integrated out, by their spread r.

    basis: [M, m] directions in which residuals are independent;  pull: [m] along them
    keep: [r, m] the share of a direction that is not the residual's
    by_state, by_arm: [m, S], [m, N] what states and arms have in common, along them
    of_states, of_arms, of_both: curvatures [r, S, S], [r, N, N], [r, N, S]
    states, arms: their pulls [r, S], [r, N];  log: [r] evidence
    """

    basis: FloatArray
    pull: FloatArray
    keep: FloatArray
    by_state: FloatArray
    by_arm: FloatArray
    of_states: FloatArray
    of_arms: FloatArray
    of_both: FloatArray
    states: FloatArray
    arms: FloatArray
    log: FloatArray


class ArmParts(NamedTuple):
    """The arm parts given the states, by the spreads r and a, in a basis of their own.

    basis: [r, N, n];  known: [r, n] curvature;  variance, mean: [r, a, n]
    on_states: [r, a, n, S] how the mean changes with the state parts
    of_states, states: curvature and pull that are left for these;  log: [r, a]
    """

    basis: FloatArray
    known: FloatArray
    variance: FloatArray
    mean: FloatArray
    on_states: FloatArray
    of_states: FloatArray
    states: FloatArray
    log: FloatArray


class StateParts(NamedTuple):
    """The state parts by all three spreads: mean [r, a, t, S], covariance, and log evidence."""

    mean: FloatArray
    covariance: FloatArray
    log: FloatArray


def integrate(
    curvature: FloatArray,
    pull: FloatArray,
    shape: tuple[int, int],
    prior: Prior,
) -> tuple[Rest, ArmParts, StateParts]:
    """Integrate the parts of theta = state[s] + arm[n] + residual out, one after the other.

    The largest comes first, each for all its spreads at once: in the eigenbasis of what is known of
    it. A state part of spread t has the mean t * rise [S] and deviates from it by t * bend.
    """
    rest = without_residuals(curvature, pull, shape, prior.root)
    arms = given_states(rest)
    return rest, arms, state_parts(arms.of_states, arms.states, arms.log, prior)


def without_residuals(
    curvature: FloatArray, pull: FloatArray, shape: tuple[int, int], root: FloatArray
) -> Rest:
    """Integrate the residuals out of exp(pull' theta - theta' curvature theta / 2).

    Divided by the root [S, S] of their covariance within an arm, residuals are independent.
    """
    N, S = shape
    blocks = root.T @ curvature.reshape(N, S, N, S).transpose(0, 2, 1, 3) @ root
    known, basis = np.linalg.eigh(blocks.transpose(0, 2, 1, 3).reshape(N * S, N * S))
    inverse, by_arms = np.linalg.inv(root), basis.reshape(N, S, -1)
    by_state = (inverse.T @ by_arms.sum(axis=0)).T
    by_arm = (inverse.sum(axis=1) @ by_arms).T
    basis = (root @ by_arms).reshape(N * S, -1)
    along = pull @ basis
    variance = SPREADS[:, None] ** 2
    keep = 1 / (1 + variance * np.maximum(known, 0))
    left = (known * keep)[:, :, None]
    return Rest(
        basis=basis,
        pull=along,
        keep=keep,
        by_state=by_state,
        by_arm=by_arm,
        of_states=by_state.T @ (left * by_state),
        of_arms=by_arm.T @ (left * by_arm),
        of_both=by_arm.T @ (left * by_state),
        states=(keep * along) @ by_state,
        arms=(keep * along) @ by_arm,
        log=0.5 * (np.log(keep) + variance * keep * along**2).sum(axis=1),
    )


def given_states(rest: Rest) -> ArmParts:
    """Integrate the arm parts out, given the state parts."""
    known, basis = np.linalg.eigh(rest.of_arms)  # [r, n], [r, N, n]
    known = np.maximum(known, 0)
    turned = basis.transpose(0, 2, 1)
    both, pull = turned @ rest.of_both, (turned @ rest.arms[:, :, None])[:, :, 0]
    spread = SPREADS[:, None] ** 2
    told = 1 + spread * known[:, None]  # [r, a, n]
    variance = spread / told
    mean = variance * pull[:, None]
    on_states = -variance[..., None] * both[:, None]
    return ArmParts(
        basis=basis,
        known=known,
        variance=variance,
        mean=mean,
        on_states=on_states,
        of_states=rest.of_states[:, None] + both.transpose(0, 2, 1)[:, None] @ on_states,
        states=rest.states[:, None] - (mean[:, :, None] @ both[:, None])[:, :, 0],
        log=rest.log[:, None] + 0.5 * (mean * pull[:, None] - np.log(told)).sum(axis=2),
    )


def state_parts(
    of_states: FloatArray, states: FloatArray, log: FloatArray, prior: Prior
) -> StateParts:
    """The state parts, whose prior mean rises by t * rise; the arrays are those of ArmParts."""
    (rise, bend, *_), S = prior, len(prior.rise)
    variance = (bend * SPREADS[1:, None]) ** 2  # [t, 1]; without states there is nothing to plan
    towards = SPREADS[1:, None] * rise / variance
    precision = of_states[:, :, None] + np.eye(S) / variance[..., None]
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    pull = states[:, :, None] + towards
    mean = (covariance @ pull[..., None])[..., 0]
    evidence = (mean * pull).sum(axis=3) - (towards**2 * variance).sum(axis=1)
    evidence -= np.linalg.slogdet(precision)[1] + S * np.log(variance[:, 0])
    return StateParts(mean, covariance, log[:, :, None] + 0.5 * evidence)


class Lines(NamedTuple):
    """Given the spreads theta is linear in (state parts, 1), plus what arms and residuals vary.

    r, a: [p] the pairs of spreads that have weight;  line: [p, m, S + 1] along the basis of `Rest`
    there: [q] those of the spreads r;  of_arms: [q, m, n] what varies with the arm parts
    """

    r: IntArray
    a: IntArray
    line: FloatArray
    there: IntArray
    of_arms: FloatArray


def lines(rest: Rest, arms: ArmParts, weight: FloatArray) -> Lines:
    by_pair = weight.sum(axis=2)
    r, a = np.nonzero(by_pair > _NEGLIGIBLE * by_pair.sum())
    there, place = np.unique(r, return_inverse=True)
    of_arms = rest.keep[there, :, None] * (rest.by_arm @ arms.basis[there])
    keep, S = rest.keep[r], rest.by_state.shape[1]
    line = np.empty((len(r), len(rest.pull), S + 1))
    line[..., :S] = keep[:, :, None] * rest.by_state + of_arms[place] @ arms.on_states[r, a]
    line[..., S] = keep * SPREADS[r, None] ** 2 * rest.pull
    line[..., S] += (of_arms[place] @ arms.mean[r, a][..., None])[..., 0]
    return Lines(r, a, line, there, of_arms)


def means_of(rest: Rest, arms: ArmParts, states: StateParts, weights: FloatArray) -> FloatArray:
    """The means of theta [k, M] by several weights [k, r, a, t] of all spreads."""
    some = lines(rest, arms, weights.sum(axis=0))
    weights, S = weights[:, some.r, some.a], rest.by_state.shape[1]
    first = np.empty((*weights.shape[:2], S + 1))  # [k, p, S + 1]
    first[..., :S] = np.einsum("kpt,pts->kps", weights, states.mean[some.r, some.a])
    first[..., S] = weights.sum(axis=2)
    along = np.tensordot(first, some.line, axes=([1, 2], [0, 2]))  # [k, m]
    return np.asarray(along @ rest.basis.T)


def moments(
    rest: Rest, arms: ArmParts, parts: StateParts, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The means of theta [M] and of theta theta' [M, M], times the sum of weights [r, a, t]."""
    r, a, line, there, of_arms = lines(rest, arms, weight)
    by_arm = np.einsum("qat,qan->qn", weight[there], arms.variance[there])
    weight, mean = weight[r, a], parts.mean[r, a]
    M, S = len(rest.basis), mean.shape[-1]
    second = np.empty((len(r), S + 1, S + 1))  # moments of (state parts, 1)
    second[:, :S, :S] = np.einsum("pt,ptij->pij", weight, parts.covariance[r, a])
    second[:, :S, :S] += np.einsum("pt,pti,ptj->pij", weight, mean, mean)
    second[:, S, :S] = second[:, :S, S] = np.einsum("pt,pti->pi", weight, mean)
    second[:, S, S] = by_pair = weight.sum(axis=1)
    half = line @ second
    first, flat = half[..., S].sum(axis=0), (M, -1)
    moments = half.transpose(1, 0, 2).reshape(flat) @ line.transpose(1, 0, 2).reshape(flat).T
    moments += ((of_arms * by_arm[:, None]) @ of_arms.transpose(0, 2, 1)).sum(axis=0)
    moments += np.diag((by_pair * SPREADS[r] ** 2) @ rest.keep[r])
    return rest.basis @ first, rest.basis @ moments @ rest.basis.T
