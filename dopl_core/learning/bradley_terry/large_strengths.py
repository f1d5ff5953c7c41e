"""Strengths of very many arm-states: the model of strengths.py, in time linear in arms and answers.

phi = arm part + residual is what each arm-state has beside its state's part. Given the spreads of
both, its precision is K^-1 + L: that of the prior, in which an arm's states have the arm part in
common, and the Laplacian of the duels, each weighted by how much it tells. Systems with it are
solved by conjugate gradients, with every arm on its own as the preconditioner. The few state parts
are integrated out exactly, as there. The spreads of arm part and residual are those of the greatest
posterior density, found with perturbed solutions, which are draws from the posterior; where there
are this many arm-states, little is gained by averaging.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.bradley_terry.large_systems import (
    Graph,
    System,
    alone,
    graph,
    likelihood,
    make_system,
    perturbed,
    prior_precision,
    solve,
)
from dopl_core.learning.bradley_terry.parts import state_parts
from dopl_core.learning.bradley_terry.spreads import SPREADS, Prior, log_prior, prior_parts, usual
from dopl_core.learning.bradley_terry.strengths import SETTLED, Answers, safe_share
from dopl_core.learning.counts import Table

DRAWS = 32  # for the variances, in which only what duels tell of other arms is left to draws
_PROBES = 4  # draws for the spreads, which are sums over all arm-states
_AT_ONCE = 8  # draws that are solved together
_ROUNDS = 20
_LEAST = 1 / 64  # of a spread: arms that are all alike are told apart by no more
_STEADY = 0.05  # spreads have settled when none changes by this share


class Known(NamedTuple):
    """What is known of the strengths.

    theta, variance: [M];  common: [M, S] what varies with the state parts, of which covariances are
    common @ common.T;  within: [M] the same for what an arm's states have in common
    """

    theta: FloatArray
    variance: FloatArray
    common: FloatArray
    within: FloatArray
    spreads: FloatArray
    system: System

    def covariance(self, columns: FloatArray) -> FloatArray:
        """The covariance of the strengths times columns [M, K]."""
        own = solve(self.system, columns, np.zeros_like(columns))
        return own + self.common @ (self.common.T @ columns)


class StatesKnown(NamedTuple):
    """The state parts, averaged over their spread t: mean [S], covariance [S, S], weight [t]."""

    mean: FloatArray
    covariance: FloatArray
    weight: FloatArray


def states_known(
    system: System,
    pull: FloatArray,
    solutions: FloatArray,
    told: FloatArray,
    prior: Prior,
) -> StatesKnown:
    """Integrate phi out; solutions: [M, 1 + S] of the pull [M] and of told [M, S], L's by state."""
    N, S, _ = system.degree.shape
    mine, moved = solutions[:, 0], solutions[:, 1:]
    of_states = _by_state(told, S) - told.T @ moved
    states = _by_state(pull[:, None], S)[:, 0] - told.T @ mine
    nothing = np.zeros((1, 1))
    parts = state_parts(of_states[None, None], states[None, None], nothing, prior)
    spreads = np.sqrt([system.residual, system.arm])
    log = parts.log[0, 0] + log_prior(_with_states(spreads), (N, S), small=prior.small)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    means = parts.mean[0, 0]
    mean = weight @ means
    away = means - mean
    covariance = np.einsum("t,tij->ij", weight, parts.covariance[0, 0])
    return StatesKnown(mean, covariance + (weight * away.T) @ away, weight)


def _by_state(columns: FloatArray, n_states: int) -> FloatArray:
    """Sums [S, K] over all arms of columns [M, K]."""
    return np.asarray(columns.reshape(-1, n_states, columns.shape[1]).sum(axis=0))


def better_spreads(
    system: System,
    mean: FloatArray,
    varied: FloatArray,
    weight: FloatArray,
    prior: Prior,
    missing: FloatArray,
) -> FloatArray:
    """A step of Newton's method for the log spreads of residual and arm part [2].

    mean: [M] of phi;  varied: columns [M, .], whose sums of squares make up what its variance is
    beside that of each arm alone;  weight: [t] of the spreads of the state part
    missing: [2] what `flattening` adds to the slope of the log evidence
    """
    N, S, _ = system.degree.shape
    spreads = np.sqrt([system.residual, system.arm])
    root = np.linalg.inv(np.linalg.cholesky(system.K))
    # Second moments [S, S] of arms, in units of the prior.
    known, unknown = (root @ _squares(x, S) @ root.T for x in (mean[:, None], varied))
    unknown = unknown + root @ system.own.sum(axis=0) @ root.T
    values, vectors = np.linalg.eigh(N * np.eye(S) - unknown)
    told = (vectors * np.clip(values, 0, N)) @ vectors.T  # how many arms the duels have told
    # How K changes with the log spreads, in the same units.
    by_spread = np.array([2 * system.residual * system.within, np.full((S, S), 2 * system.arm)])
    changes = root @ by_spread @ root.T
    slope = 0.5 * np.einsum("kij,ij->k", changes, known + unknown - N * np.eye(S))
    gradient = slope + _prior_slope(spreads, weight, (N, S), prior) + missing
    curvature = 0.5 / N * np.einsum("kij,jl,mln,ni->km", changes, told, changes, told)
    curvature += _PRIOR_CURVATURE * np.eye(2)
    step = np.clip(np.linalg.solve(curvature, gradient), -np.log(2), np.log(2))
    return np.clip(spreads * np.exp(step), _LEAST, SPREADS[-1])


def flattening(
    answers: Answers,
    system: System,
    theta: FloatArray,
    phi: FloatArray,
    drawn: FloatArray,
    common: FloatArray,
    told: FloatArray,
) -> FloatArray:
    """What the slope [2] of the log evidence in the log spreads has beside that of an expansion.

    Larger spreads move strengths apart, where answers have less curvature (strengths.correction).
    drawn: draws of phi [M, .];  common: [M, S] what varies with the state parts, in units of their
    posterior;  told: [M, S] the curvature by state, in these units
    """
    S = system.degree.shape[1]
    pull = prior_precision(system, phi.reshape(-1, S, 1))
    residuals, arms = system.residual * system.within @ pull, system.arm * np.ones((S, S)) @ pull
    changes = 2 * np.concatenate([residuals, arms], axis=2)
    right = prior_precision(system, changes).reshape(-1, 2)
    moved = solve(system, right, np.zeros_like(right))
    moved = moved - common @ (told.T @ moved)  # d theta / d log spread
    table, sureness = answers.counts.table(), answers.sureness
    k = 1.0 if sureness is None else sureness[table.who]
    variance = ((drawn[table.winner] - drawn[table.loser]) ** 2).mean(axis=1)
    F = expit(k * (theta[table.winner] - theta[table.loser]))
    change = table.times * k**3 * F * (1 - F) * (1 - 2 * F) * variance
    return np.asarray(-0.5 * change @ (moved[table.winner] - moved[table.loser]))


_PRIOR_CURVATURE = 3.0  # of log_prior in the log of a spread; about, for it is not concave


def _prior_slope(
    spreads: FloatArray, weight: FloatArray, shape: tuple[int, int], prior: Prior
) -> FloatArray:
    """The slope [2] of the log prior in the log spreads of residual and arm part."""
    around = spreads * np.exp(0.01 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]))
    log = log_prior(_with_states(around), shape, small=prior.small) @ weight
    return np.array([log[0] - log[1], log[2] - log[3]]) / 0.02


def _with_states(spreads: FloatArray) -> FloatArray:
    """Spreads [3, ..., t] of all parts, from those of residual and arm part [..., 2]."""
    residual, arm = spreads[..., :1], spreads[..., 1:]
    return np.array(np.broadcast_arrays(residual, arm, SPREADS[1:]))


def _squares(columns: FloatArray, n_states: int) -> FloatArray:
    """Sums of products [S, S] of an arm's states, over arms and columns [M, .]."""
    by_arm = columns.reshape(-1, n_states, columns.shape[1])
    return np.asarray(np.einsum("nik,njk->ij", by_arm, by_arm))


def settled(
    answers: Answers,
    shape: tuple[int, int],
    prior: Prior,
    rng: np.random.Generator,
    *,
    theta: FloatArray,
    spreads: FloatArray,
) -> Known:
    """Strengths by Newton's method from theta [M], spreads [2] of residual and arm part with it.

    The same random numbers perturb every round, so only what is known changes.
    """
    (N, S), table, seeds = shape, answers.counts.table(), rng.integers(1 << 62, size=2)
    compared = graph(table, N * S)
    of_state = np.tile(np.eye(S), (N, 1))  # [M, S]
    solutions = np.zeros((N * S, 1 + S + _PROBES))
    for turn in range(_ROUNDS):
        weight, gradient = likelihood(table, compared, theta, answers.sureness)
        system = make_system(compared, weight, shape, spreads, prior.root)
        degree = system.degree.ravel()
        pull = gradient + degree * theta - system.weight @ theta
        told = degree[:, None] * of_state - system.weight @ of_state
        probes = perturbed(system, compared, weight, np.random.default_rng(seeds[0]), _PROBES)
        solutions = solve(system, np.column_stack([pull, told, probes]), solutions)
        states = states_known(system, pull, solutions[:, : 1 + S], told, prior)
        moved, drawn = solutions[:, 1 : 1 + S], solutions[:, 1 + S :]
        root = _root(states.covariance)
        phi = solutions[:, 0] - moved @ states.mean
        others = alone(system, system.weight @ drawn) / np.sqrt(_PROBES)
        varied = np.column_stack([others, moved @ root])
        common = (of_state - moved) @ root
        missing = flattening(answers, system, theta, phi, drawn, common, told @ root)
        before, spreads = (
            spreads,
            better_spreads(system, phi, varied, states.weight, prior, missing),
        )
        step = phi + np.tile(states.mean, N) - theta
        steady = np.abs(np.log(spreads / before)).max() < _STEADY
        if steady and np.abs(step).max() < SETTLED:
            theta = theta + step
            break
        share = safe_share(step, answers)
        # A start from which the first step is not safe is worse than none.
        forget = share < 1 and turn == 0 and theta.any()
        theta = np.zeros_like(theta) if forget else theta + share * step
    rng = np.random.default_rng(seeds[1])
    own = variances(system, compared, weight, rng)
    return Known(theta, own + (common**2).sum(axis=1), common, _within(system), spreads, system)


def _within(system: System) -> FloatArray:
    """What an arm's states have in common [M]: the greatest part of their covariance."""
    values, vectors = np.linalg.eigh(system.own)
    leading = vectors[:, :, -1] * np.sign(vectors[:, :, -1].sum(axis=1, keepdims=True))
    return np.asarray((np.sqrt(values[:, -1:]) * leading).ravel())


def variances(
    system: System, graph: Graph, weight: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The variances of phi [M]: those if all other arms stood still, and what these add.

    Only the second part is left to draws (Papandreou and Yuille, 2011, call it Rao-Blackwell).
    """
    alone_variance = np.diagonal(system.own, axis1=1, axis2=2).ravel()
    added = np.zeros(len(alone_variance))
    for _ in range(DRAWS // _AT_ONCE):
        b = perturbed(system, graph, weight, rng, _AT_ONCE)
        drawn = solve(system, b, alone(system, b))
        added += (alone(system, system.weight @ drawn) ** 2).sum(axis=1)
    return alone_variance + added / DRAWS


def _root(covariance: FloatArray) -> FloatArray:
    """A matrix whose square is the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def known(
    answers: Answers,
    shape: tuple[int, int],
    prior: Prior,
    rng: np.random.Generator,
    warm: dict[str, FloatArray] | None = None,
) -> Known:
    """What is known of the strengths, with answers or without."""
    if len(answers.counts.table().times) == 0:
        return before_answers(shape, prior)
    warm = warm or {}
    theta = warm.get("theta", np.zeros(shape[0] * shape[1]))
    spreads = warm.get("spreads", np.full(2, usual(shape[0]) / np.sqrt(3)))
    return settled(answers, shape, prior, rng, theta=theta, spreads=spreads)


def before_answers(shape: tuple[int, int], prior: Prior) -> Known:
    """The prior, as strengths.before_answers has it."""
    N, S = shape
    mean, state, arm, residual = prior_parts(shape, prior)
    none = np.empty(0, dtype=np.int64)
    nothing = graph(Table(none, none, none, np.empty(0)), N * S)
    spreads = np.sqrt([residual, arm])
    system = make_system(nothing, np.empty(0), shape, spreads, prior.root)
    variance = state.diagonal() + system.K.diagonal()
    spreads = np.full(2, usual(N) / np.sqrt(3))
    common = np.tile(_root(state), (N, 1))
    known = np.tile(mean, N), np.tile(variance, N)
    return Known(*known, common, _within(system), spreads, system)


def about(
    known: Known, average: FloatArray, reference: int | None
) -> tuple[FloatArray, FloatArray]:
    """Variances [M] about a weighted average [M], and covariances with the reference [M]."""
    columns = np.zeros((len(average), 2))
    columns[:, 0] = average
    columns[0 if reference is None else reference, 1] = 1.0
    level, column = known.covariance(columns).T
    middle = average @ level
    variance = np.maximum(known.variance - 2 * level + middle, 0)
    covariance = column - level - column @ average + middle
    if reference is not None:
        covariance[reference] = variance[reference]  # it is known to be as it is
    return variance, covariance
