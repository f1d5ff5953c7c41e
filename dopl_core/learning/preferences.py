"""What arm-states are worth: from counts of duels to the overestimated reference column."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.counts import Counts, Table, summed
from dopl_core.learning.dynamics import hoeffding

LIPSCHITZ = 1.3  # Lemma 4's L
_ALL = slice(None)
F_LOW, F_HIGH = 1 / (1 + np.e), np.e / (1 + np.e)  # Bradley-Terry with rewards in [0, 1] (Prop. 2)


@dataclass(frozen=True, eq=False)
class Preferences:
    """What is believed of Q_n(s), the strength of an arm-state over the reference; arrays [N, S].

    mean: the estimate Q^;  sd: its uncertainty (paper: how far the overestimate lies above)
    overestimate: Q~, the reward that the plan is made with (the paper's lies in [-1, 1])
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


def most_compared(counts: Counts) -> int | None:
    """The arm-state in most duels, None where there were none (errata 13)."""
    compared = counts.compared()
    return int(compared.argmax()) if compared.any() else None


def empirical(wins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alg. 3, step 2: F^ [M, M], the share of duels that the row won, and the duels C [M, M]."""
    C = wins + wins.T
    return np.divide(wins, C, out=np.full_like(wins, 0.5), where=C > 0), C


def win_chances(strengths: FloatArray, rows: slice = _ALL) -> FloatArray:
    """F [M, M] of strengths [N, S]: the chance that the row's arm-state is preferred (eq. (2))."""
    flat = strengths.ravel()
    return np.asarray(expit(flat[rows, None] - flat))


def counted_chances(wins: FloatArray, belief: Preferences) -> FloatArray:
    """F [M, M] as the paper has it: counted, and inferred against the reference."""
    column = win_chances(belief.mean)[:, belief.reference]
    F = np.clip(empirical(wins)[0], F_LOW, F_HIGH)
    F[:, belief.reference], F[belief.reference] = column, 1 - column
    return F


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


# Spreads (standard deviations) that a part of the strengths may have: none at all, as among arms
# that are all alike, up to people who are never wrong.
SPREADS = np.array([0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0])
USUAL = 2 / 3  # spread of all parts together: the better of two arm-states wins 2 duels in 3
OCTAVES = 1 / 3  # how unusual is common: so many factors of 2 to either side
BEND = 0.5  # how far states may lie from their order's straight line, in units of its own spread
SETTLED = 0.1  # Newton stops when no strength moves by more: well inside any of their sds
OPTIMISM = 1.0  # an overestimate lies as many standard deviations of the strength above its mean


def calibrated(
    counts: Counts,
    n_states: int,
    reference: int | None,
    warm: dict[str, FloatArray] | None = None,
    *,
    ordered: bool = False,
    sureness: FloatArray | None = None,
) -> Preferences:
    """Bradley-Terry strengths with a Gaussian prior, from counts of duels, ties half each.

    strength theta[n, s] = state part + arm part + residual, independent with mean 0; how far each
    part spreads, and so how sure people are, is averaged over a grid by its marginal likelihood
    (Laplace's approximation). No clip: a plan is the same for strengths of any scale.
    ordered: the states are given from worst to best, so the mean of the state part rises
    sureness: [W] k of each person, who prefers i to j with the chance expit(k (theta_i - theta_j));
              None where it is 1 for all
    """
    M = counts.size
    shape = (M // n_states, n_states)
    compared = counts.compared()
    rise, bend = _order(n_states) if ordered else (np.zeros(n_states), 1.0)
    if compared.any():
        start = np.zeros(M) if warm is None else warm["theta"]
        theta, covariance = _settled(counts, start, shape, rise, bend, sureness)
    else:
        theta, covariance = _prior(shape, rise, bend)
    # Duels tell differences only, so all is taken about the average of what was asked about.
    # Against the reference, all others would be credited with how little the reference is known:
    # if it was asked about only in the beginning, its neighbours would never be asked about again.
    asked = compared / compared.sum() if compared.any() else np.full(M, 1 / M)
    level = covariance @ asked
    covariance = covariance - level - level[:, None] + asked @ level
    variance = np.maximum(covariance.diagonal(), 0)
    if reference is None:
        mean, sd = theta - asked @ theta, np.sqrt(variance)
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


def calibrated_strengths(
    winners: IntArray, losers: IntArray, n_arms: int, n_states: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Mean and sd [N, S] of the strengths, about the average of what was asked about.

    winners, losers: arm-state codes (arm * n_states + state), one of each a duel
    """
    counts = Counts(n_arms * n_states)
    counts.add(np.asarray(winners, dtype=np.int64), np.asarray(losers, dtype=np.int64))
    belief = calibrated(counts, n_states, None)
    return belief.mean, belief.sd


def _order(n_states: int) -> tuple[FloatArray, float]:
    """States from worst to best: how their part rises [S], and how far it may bend from that.

    Both are in units of the spread of the state part, which is learnt, so the steepness is too.
    """
    rank = np.arange(n_states) - (n_states - 1) / 2
    return np.asarray(rank / max(float(rank.std()), 1.0 / n_states)), BEND


def _settled(
    counts: Counts,
    theta: FloatArray,
    shape: tuple[int, int],
    rise: FloatArray,
    bend: float,
    sureness: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Mean [M] and covariance [M, M] of the strengths by Newton's method, from theta [M]."""
    wins, table = counts.wins(), counts.table()
    for _ in range(8):
        # The log-likelihood is nearly quadratic: pull' theta - theta' curvature theta / 2.
        if sureness is None:
            weight, gradient = likelihood(wins, theta)
        else:
            weight, gradient = likelihood_of_people(table, theta, sureness)
        curvature = np.diag(weight.sum(axis=1)) - weight
        pull = gradient + curvature @ theta
        before = theta
        theta, covariance = _posterior(curvature, pull, shape, rise, bend)
        if np.abs(theta - before).max() < SETTLED:
            break
    return theta, covariance


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


def _prior(shape: tuple[int, int], rise: FloatArray, bend: float) -> tuple[FloatArray, FloatArray]:
    """What `_posterior` gives without answers (mean [M], covariance [M, M]), and much faster."""
    weight = np.exp(_log_prior(shape[1]))
    weight /= weight.sum()
    residual = weight.sum(axis=(1, 2)) @ SPREADS**2
    arm = weight.sum(axis=(0, 2)) @ SPREADS**2
    steep, square = weight.sum(axis=(0, 1)) @ np.stack([SPREADS[1:], SPREADS[1:] ** 2], axis=1)
    N, S = shape
    state = square * bend**2 * np.eye(S) + (square - steep**2) * np.outer(rise, rise)
    same_arm = np.kron(np.eye(N), np.ones((S, S)))
    covariance = np.tile(state, (N, N)) + arm * same_arm + residual * np.eye(N * S)
    return np.tile(steep * rise, N), covariance


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
    A state part of spread t has the mean t * rise [S] and deviates from it by t * bend.
    """
    rest = without_residuals(curvature, pull, shape)
    arms = given_states(rest)
    states = state_parts(arms, rise, bend)
    log = states.log + _log_prior(shape[1])
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


def state_parts(arms: ArmParts, rise: FloatArray, bend: float) -> StateParts:
    """The state parts, whose prior mean rises by t * rise."""
    S = len(rise)
    variance = (bend * SPREADS[1:, None]) ** 2  # [t, 1]; without states there is nothing to plan
    prior = SPREADS[1:, None] * rise / variance
    precision = arms.of_states[:, :, None] + np.eye(S) / variance[..., None]
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    pull = arms.states[:, :, None] + prior
    mean = (covariance @ pull[..., None])[..., 0]
    evidence = (mean * pull).sum(axis=3) - (prior**2 * variance).sum(axis=1)
    evidence -= np.linalg.slogdet(precision)[1] + S * np.log(variance[:, 0])
    return StateParts(mean, covariance, arms.log[:, :, None] + 0.5 * evidence)


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


def _log_prior(n_states: int) -> FloatArray:
    """Log prior [r, a, t] of the spreads of residual, arm and state part (this one never 0).

    Their total is about what is usual, with Student's heavy tails (2 degrees of freedom): a few
    sure answers overrule it. Which share of the total each part has is flat.
    """
    cell = np.maximum(SPREADS, SPREADS[1] / 2)  # as wide as its spread: a factor of 2 is one cell
    parts = np.array(np.meshgrid(cell, cell, cell[1:], indexing="ij"))
    if n_states == 1:
        parts = parts[:2]  # one state sets nothing apart
    total = np.sqrt((parts**2).sum(axis=0))
    octaves = np.log2(total / USUAL) / OCTAVES
    return np.asarray(np.log(parts / total).sum(axis=0) - 1.5 * np.log1p(octaves**2 / 2))
