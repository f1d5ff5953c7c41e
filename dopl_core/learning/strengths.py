"""Strengths of arm-states as a sum of parts, exactly: for some hundred arm-states at most.

strength theta[n, s] = state part + arm part + residual, independent and Gaussian; how far each part
spreads is averaged over a grid by its marginal likelihood (Laplace's approximation).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.counts import Counts, Table, summed

# Spreads (standard deviations) that a part of the strengths may have: none at all, as among arms
# that are all alike, up to people who are never wrong.
SPREADS = np.array([0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0])
USUAL = 2 / 3  # spread of all parts together: the better of two arm-states wins 2 duels in 3
OCTAVES = 1 / 3  # how unusual is common: so many factors of 2 to either side
BEND = 0.5  # how far states may lie from their order's straight line, in units of its own spread
SETTLED = 0.1  # Newton stops when no strength moves by more: well inside any of their sds
_ROUNDS = 100  # of Newton's method: two are usual, and a dozen where hardly anybody ever errs


def order(n_states: int) -> tuple[FloatArray, float]:
    """States from worst to best: how their part rises [S], and how far it may bend from that.

    Both are in units of the spread of the state part, which is learnt, so the steepness is too.
    """
    rank = np.arange(n_states) - (n_states - 1) / 2
    return np.asarray(rank / max(float(rank.std()), 1.0 / n_states)), BEND


def settled(
    counts: Counts,
    theta: FloatArray,
    shape: tuple[int, int],
    rise: FloatArray,
    bend: float,
    sureness: FloatArray | None,
    *,
    careful: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Mean [M] and covariance [M, M] of the strengths by Newton's method, from theta [M].

    careful: steps cannot run away (`onward`); edition 2 took all of them whole
    """
    wins, table = counts.wins(), counts.table()
    for turn in range(_ROUNDS if careful else 8):
        # The log-likelihood is nearly quadratic: pull' theta - theta' curvature theta / 2.
        if sureness is None:
            weight, gradient = likelihood(wins, theta)
        else:
            weight, gradient = likelihood_of_people(table, theta, sureness)
        curvature = np.diag(weight.sum(axis=1)) - weight
        pull = gradient + curvature @ theta
        before = theta
        theta, covariance = posterior(curvature, pull, shape, rise, bend)
        if np.abs(theta - before).max() < SETTLED:
            break
        if careful:
            theta = onward(before, theta, table, sureness, first=turn == 0)
    return theta, covariance


def onward(
    before: FloatArray, theta: FloatArray, table: Table, sureness: FloatArray | None, *, first: bool
) -> FloatArray:
    """Where to go on if Newton's step leads from one to the other [M]: as far as is surely uphill.

    Where strengths are too far apart, answers have next to no curvature: a whole step overshoots,
    lands farther off, and the next one farther still. A start from which the first step is not safe
    is worse than none: it is forgotten.
    """
    share = safe_share(theta - before, table, sureness)
    if share == 1:
        return theta
    if first and before.any():
        return np.zeros_like(theta)
    return before + share * (theta - before)


def safe_share(step: FloatArray, table: Table, sureness: FloatArray | None) -> float:
    """How much of Newton's step [M] makes a fit better, wherever it starts from.

    Let c be the most that the step changes the log odds of any answer. While these change by u, the
    curvature of the likelihood changes by a factor of e^u at most, and that of the prior not at
    all. So for given spreads the share u / c of the step gains at least
        step' precision step (u c - (e^u - 1 - u)) / c^2,
    which is most for u = log(1 + c) (Sun and Tran-Dinh, 2019, on generalized self-concordance), and
    more than 0 for u = min(c, 1.5): so short steps, which nearly all are, stay whole.
    """
    k = 1.0 if sureness is None else sureness[table.who]
    c = float(np.abs(k * (step[table.winner] - step[table.loser])).max())
    return min(1.0, max(1.5, float(np.log1p(c))) / c) if c > 0 else 1.0


def likelihood(wins: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of wins [M, M] at theta [M]: how much each pair tells [M, M], and the gradient [M]."""
    C = wins + wins.T
    F = expit(theta[:, None] - theta)
    return C * F * (1 - F), (wins - C * F).sum(axis=1)


def likelihood_of_people(
    table: Table, theta: FloatArray, sureness: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same where people differ in how sure they are: sureness [W]."""
    (winner, loser, who, times), M = table, len(theta)
    k = sureness[who]
    F = expit(k * (theta[winner] - theta[loser]))
    weight = summed(winner * M + loser, times * k**2 * F * (1 - F), M * M).reshape(M, M)
    pull = times * k * (1 - F)
    gradient = summed(winner, pull, M) - summed(loser, pull, M)
    return weight + weight.T, gradient


def prior(shape: tuple[int, int], rise: FloatArray, bend: float) -> tuple[FloatArray, FloatArray]:
    """What `posterior` gives without answers (mean [M], covariance [M, M]), and much faster."""
    (N, S), (mean, state, arm, residual) = shape, prior_parts(rise, bend)
    same_arm = np.kron(np.eye(N), np.ones((S, S)))
    covariance = np.tile(state, (N, N)) + arm * same_arm + residual * np.eye(N * S)
    return np.tile(mean, N), covariance


def prior_parts(rise: FloatArray, bend: float) -> tuple[FloatArray, FloatArray, float, float]:
    """Mean [S] and covariance [S, S] of the state parts, variances of arm part and residual."""
    S = len(rise)
    weight = np.exp(log_prior(GRID, S))
    weight /= weight.sum()
    residual = weight.sum(axis=(1, 2)) @ SPREADS**2
    arm = weight.sum(axis=(0, 2)) @ SPREADS**2
    steep, square = weight.sum(axis=(0, 1)) @ np.stack([SPREADS[1:], SPREADS[1:] ** 2], axis=1)
    state = square * bend**2 * np.eye(S) + (square - steep**2) * np.outer(rise, rise)
    return steep * rise, state, float(arm), float(residual)


class Rest(NamedTuple):
    """What is known of states and arms once the residuals are integrated out, by their spread r.

    basis: [M, m] the curvature's eigenvectors;  pull: [m] along them;  keep: [r, m] the share of
    a direction that is not the residual's;  by_state, by_arm: [m, S], [m, N] what states and arms
    have in common, along them
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

    basis: [r, N, n];  variance, mean: [r, a, n];  on_states: [r, a, n, S] how the mean changes with
    the state parts;  of_states, states: curvature and pull that are left for these; log: [r, a]
    """

    basis: FloatArray
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


def posterior(
    curvature: FloatArray,
    pull: FloatArray,
    shape: tuple[int, int],
    rise: FloatArray,
    bend: float,
) -> tuple[FloatArray, FloatArray]:
    """Mean [M] and covariance [M, M] of the strengths, averaged over the spreads of their parts.

    The parts of theta = state[s] + arm[n] + residual are integrated out one after the other, the
    largest first, each for all its spreads at once: in the eigenbasis of what is known of it.
    A state part of spread t has the mean t * rise [S] and deviates from it by t * bend.
    """
    rest = without_residuals(curvature, pull, shape)
    arms = given_states(rest)
    states = state_parts(arms.of_states, arms.states, arms.log, rise, bend)
    log = states.log + log_prior(GRID, shape[1])
    weight = np.exp(log - log.max())
    return average(rest, arms, states, weight / weight.sum())


def without_residuals(curvature: FloatArray, pull: FloatArray, shape: tuple[int, int]) -> Rest:
    """Integrate the residuals out of exp(pull' theta - theta' curvature theta / 2)."""
    N, S = shape
    known, basis = np.linalg.eigh(curvature)
    along = pull @ basis
    by_state, by_arm = (basis.reshape(N, S, -1).sum(axis=axis).T for axis in (0, 1))
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
    turned = basis.transpose(0, 2, 1)
    both, pull = turned @ rest.of_both, (turned @ rest.arms[:, :, None])[:, :, 0]
    spread = SPREADS[:, None] ** 2
    told = 1 + spread * np.maximum(known, 0)[:, None]  # [r, a, n]
    variance = spread / told
    mean = variance * pull[:, None]
    on_states = -variance[..., None] * both[:, None]
    return ArmParts(
        basis=basis,
        variance=variance,
        mean=mean,
        on_states=on_states,
        of_states=rest.of_states[:, None] + both.transpose(0, 2, 1)[:, None] @ on_states,
        states=rest.states[:, None] - (mean[:, :, None] @ both[:, None])[:, :, 0],
        log=rest.log[:, None] + 0.5 * (mean * pull[:, None] - np.log(told)).sum(axis=2),
    )


def state_parts(
    of_states: FloatArray, states: FloatArray, log: FloatArray, rise: FloatArray, bend: float
) -> StateParts:
    """The state parts, whose prior mean rises by t * rise; the arrays are those of ArmParts."""
    S = len(rise)
    variance = (bend * SPREADS[1:, None]) ** 2  # [t, 1]; without states there is nothing to plan
    prior = SPREADS[1:, None] * rise / variance
    precision = of_states[:, :, None] + np.eye(S) / variance[..., None]
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    pull = states[:, :, None] + prior
    mean = (covariance @ pull[..., None])[..., 0]
    evidence = (mean * pull).sum(axis=3) - (prior**2 * variance).sum(axis=1)
    evidence -= np.linalg.slogdet(precision)[1] + S * np.log(variance[:, 0])
    return StateParts(mean, covariance, log[:, :, None] + 0.5 * evidence)


def average(
    rest: Rest, arms: ArmParts, states: StateParts, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean [M] and covariance [M, M] of theta, by the weight [r, a, t] of all spreads.

    Given the spreads theta is linear in (state parts, 1), plus what arms and residuals vary.
    """
    M, S = len(rest.basis), states.mean.shape[-1]
    variance = SPREADS**2
    second = np.empty((*weight.shape[:2], S + 1, S + 1))  # moments of (state parts, 1)
    second[..., :S, :S] = np.einsum("rat,ratij->raij", weight, states.covariance)
    second[..., :S, :S] += np.einsum("rat,rati,ratj->raij", weight, states.mean, states.mean)
    second[..., S, :S] = second[..., :S, S] = np.einsum("rat,rati->rai", weight, states.mean)
    second[..., S, S] = weight.sum(axis=2)
    of_arms = rest.by_arm @ arms.basis  # [r, m, n]
    line = np.empty((*weight.shape[:2], M, S + 1))
    line[..., :S] = rest.by_state + of_arms[:, None] @ arms.on_states
    line[..., S] = variance[:, None, None] * rest.pull
    line[..., S] += (of_arms[:, None] @ arms.mean[..., None])[..., 0]
    line *= rest.keep[:, None, :, None]
    half = line @ second
    mean = half[..., S].sum(axis=(0, 1))
    flat = (M, -1)
    moments = half.transpose(2, 0, 1, 3).reshape(flat) @ line.transpose(2, 0, 1, 3).reshape(flat).T
    of_arms = of_arms * rest.keep[:, :, None]
    arm_variance = np.einsum("rat,ran->rn", weight, arms.variance)
    moments += ((of_arms * arm_variance[:, None]) @ of_arms.transpose(0, 2, 1)).sum(axis=0)
    moments += np.diag(weight.sum(axis=(1, 2)) * variance @ rest.keep)
    covariance = moments - np.outer(mean, mean)
    return rest.basis @ mean, rest.basis @ covariance @ rest.basis.T


def log_prior(parts: FloatArray, n_states: int) -> FloatArray:
    """Log prior [...] of the spreads of residual, arm and state part, parts [3, ...].

    Their total is about what is usual, with Student's heavy tails (2 degrees of freedom): a few
    sure answers overrule it. Which share of the total each part has is flat.
    """
    if n_states == 1:
        parts = parts[:2]  # one state sets nothing apart
    total = np.sqrt((parts**2).sum(axis=0))
    octaves = np.log2(total / USUAL) / OCTAVES
    return np.asarray(np.log(parts / total).sum(axis=0) - 1.5 * np.log1p(octaves**2 / 2))


# The spreads [3, r, a, t] of residual, arm and state part (this one never 0) as cells, each as wide
# as its spread: a factor of 2 is one cell.
_CELLS = np.maximum(SPREADS, SPREADS[1] / 2)
GRID = np.array(np.meshgrid(_CELLS, _CELLS, _CELLS[1:], indexing="ij"))
