"""Strengths of arm-states as a sum of parts, exactly: for at most some hundred arm-states.

strength theta[n, s] = state part + arm part + residual, independent and Gaussian. The spreads of
the parts are averaged over a grid by their marginal likelihood (Laplace's approximation). Where
annotators are very sure, the likelihood is far from quadratic, and one expansion does not serve all
spreads: each factor of 2 of the total spread that matters has its own.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.bradley_terry.parts import (
    ArmParts,
    Rest,
    StateParts,
    integrate,
    means_of,
    moments,
)
from dopl_core.learning.bradley_terry.spreads import (
    GRID,
    SPREADS,
    Prior,
    bands,
    log_prior,
    log_sizes,
    prior_parts,
)
from dopl_core.learning.counts import Counts, Table, summed
from dopl_core.learning.log_space import softmax

SETTLED = 0.1  # Newton's method stops when no strength moves by more: well inside their sds
_FAR = 0.3  # from an expansion: nearer to it, the next step of Newton's method is exact enough
_ROUNDS = 100  # of Newton's method: two are usual, a dozen where annotators hardly ever err
_MATTERS = 0.02  # posterior probability of a band of spreads below which any expansion serves it
_UNDERRATED = 0.02  # nats an arm-state: by how much an expansion may underrate bands above its own


class Expansion(NamedTuple):
    """The log likelihood about theta [M], constant + pull' x - x' curvature x / 2 at strengths x.

    rest, arms, states: the same integrated over the parts of the strengths
    log: [r, a, t] log posterior of the spreads, up to a constant that all expansions share
    means: [b, M] of the strengths, by the band of spreads
    """

    theta: FloatArray
    curvature: FloatArray
    pull: FloatArray
    constant: float
    rest: Rest
    arms: ArmParts
    states: StateParts
    log: FloatArray
    means: FloatArray


class Answers(NamedTuple):
    """Answers, and the sureness [W] of their annotators; None where all are equally sure."""

    counts: Counts
    sureness: FloatArray | None


def settled(
    answers: Answers, theta: FloatArray, shape: tuple[int, int], prior: Prior
) -> tuple[FloatArray, FloatArray]:
    """Mean [M] and covariance [M, M] of the strengths, by Newton's method from theta [M].

    Spreads use the expansion of the nearest band that has one (`bands`). A band gets its own where
    that would move the mean over all spreads: where it is probable and its mean is elsewhere.
    """
    model, band = (shape, prior), bands()
    here = expand(answers, theta, *model)
    now = int(_by_band(softmax(here.log)).argmax())
    if theta.any() and safe_share(here.means[now] - theta, answers) < 1:
        here = expand(answers, np.zeros_like(theta), *model)  # such a start is worse than none
        now = int(_by_band(softmax(here.log)).argmax())
    found = {now: _for_band(answers, here, now, *model)}
    while True:
        nearest, weight = _weights(found)
        likely, far = _at_most(_by_band(weight), list(found), len(theta)), np.zeros(len(here.means))
        for b in np.flatnonzero(likely > _MATTERS):
            here = found[int(nearest[band == b][0])]
            error = np.abs(here.means[b] - here.theta).max()
            far[b] = 0.0 if b in found or error < _FAR else error
        now = int((likely * far).argmax())
        if likely[now] * far[now] < SETTLED:
            break
        here = found[int(nearest[band == now][0])]
        found[now] = _for_band(answers, here, now, *model)
    shares = [(one, np.where(nearest == place, weight, 0.0)) for place, one in found.items()]
    parts = [moments(one.rest, one.arms, one.states, share) for one, share in shares if share.any()]
    mean, second = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
    return mean, second - np.outer(mean, mean)


def _for_band(
    answers: Answers,
    here: Expansion,
    now: int,
    shape: tuple[int, int],
    prior: Prior,
) -> Expansion:
    """The expansion at the mean of a band of spreads, by Newton's method, corrected."""
    for _ in range(_ROUNDS):
        step = here.means[now] - here.theta
        if np.abs(step).max() < _FAR:
            break
        theta = here.theta + safe_share(step, answers) * step
        here = expand(answers, theta, shape, prior)
    return here._replace(log=here.log + correction(answers, here, now, shape, prior.root))


def _by_band(weight: FloatArray) -> FloatArray:
    """The weight of each band, from that of all spreads [r, a, t]."""
    return summed(bands().ravel(), weight.ravel(), int(bands().max()) + 1)


def _at_most(weight: FloatArray, found: list[int], size: int) -> FloatArray:
    """How probable bands [b] may be, given their weight and the bands that have an expansion.

    With larger spreads than those of its own band an expansion has too little evidence, the less
    the more arm-states there are. So the band above may be more probable than it seems.
    """
    places = np.arange(len(weight))
    nearest = np.array(found)[np.abs(places[:, None] - found).argmin(axis=1)]
    more = np.exp(_UNDERRATED * size * (places > nearest))
    return np.asarray(weight * more / (1 - weight + weight * more))


def _weights(found: dict[int, Expansion]) -> tuple[IntArray, FloatArray]:
    """The nearest band with an expansion, and the weight, of all spreads [r, a, t]."""
    places, band = np.array(list(found)), bands()
    nearest = places[np.abs(band[..., None] - places).argmin(axis=-1)]
    log = np.empty(band.shape)
    for place, one in found.items():
        log[nearest == place] = one.log[nearest == place]
    return nearest, softmax(log)


def correction(
    answers: Answers, one: Expansion, now: int, shape: tuple[int, int], root: FloatArray
) -> FloatArray:
    """What to add to the log evidence [r, a, 1] of an expansion made for a band of spreads.

    With larger spreads strengths lie farther apart and answers have less curvature. So the evidence
    is greater than the expansion says, by several nats a factor of 2 where arm-states are many.
    Laplace's approximation at the most probable spreads of the band and at others near them gives a
    parabola in the log standard deviations of the prior: of an arm's mean, and within an arm.
    """
    S = shape[1]
    weight, sizes = softmax(one.log, axis=2), log_sizes(S)
    within = np.where(bands() == now, one.log, -np.inf).max(axis=2)
    r, a = divmod(int(within.argmax()), len(SPREADS))
    away = sizes - sizes[:, r, a, None, None]
    larger, smaller = np.flatnonzero(away[0, r] >= 0.5), np.flatnonzero(away[0, r] <= -0.5)
    near = [(r, a), (r - 1, a), (r + 1, a), *((r, int(j)) for j in (*larger[:1], *smaller[-1:]))]
    near = [(i, j) for i, j in near if 0 <= i < len(SPREADS)]
    weights = np.zeros((len(near), *one.log.shape))
    for alone, at in zip(weights, near, strict=True):
        alone[at] = weight[at]
    means = means_of(one.rest, one.arms, one.states, weights)
    missing = [_missing(answers, one, *both, shape, root) for both in zip(near, means, strict=True)]
    away = np.clip(away[: min(S, 2)], -2, 2)
    terms = np.concatenate([np.ones((1, *within.shape)), away, away**2])
    at_near = np.array([terms[:, i, j] for i, j in near])
    line = np.linalg.lstsq(at_near, np.array(missing), rcond=1e-3)[0]
    return np.asarray(np.tensordot(line, terms, axes=1)[..., None])


def _missing(
    answers: Answers,
    one: Expansion,
    at: tuple[int, int],
    mean: FloatArray,
    shape: tuple[int, int],
    root: FloatArray,
) -> float:
    """By how much Laplace's approximation at the mean [M] exceeds the expansion's evidence."""
    (r, a), (N, S) = at, shape
    value = one.constant + one.pull @ mean - 0.5 * mean @ one.curvature @ mean
    told = 1 + SPREADS[a] ** 2 * one.arms.known[r]
    before = np.log(told).sum() - np.log(one.rest.keep[r]).sum()
    curvature, _ = curvature_and_gradient(answers, mean)
    own = SPREADS[r] ** 2 * root @ root.T + SPREADS[a] ** 2
    blurred = (curvature.reshape(N * S, N, S) @ own).reshape(N * S, N * S)
    after = np.linalg.slogdet(np.eye(N * S) + blurred)[1]
    return float(log_likelihood(answers, mean) - value - 0.5 * (after - before))


def safe_share(step: FloatArray, answers: Answers) -> float:
    """The share of Newton's step [M] that surely improves a fit, wherever it starts from.

    Where strengths are too far apart, answers have next to no curvature: a whole step overshoots,
    and the next one goes farther still. Let c be the most that the step changes the log odds of an
    answer. While these change by u, the curvature of the likelihood changes by a factor of e^u at
    most, and that of the prior not at all. So for given spreads the share u / c gains at least
        step' precision step (u c - (e^u - 1 - u)) / c^2,
    which is most for u = log(1 + c) (Sun and Tran-Dinh, 2019, on generalized self-concordance), and
    more than 0 for u = min(c, 1.5): so short steps, which nearly all are, stay whole.
    """
    table = answers.counts.table()
    k = 1.0 if answers.sureness is None else answers.sureness[table.who]
    c = float(np.abs(k * (step[table.winner] - step[table.loser])).max(initial=0.0))
    return min(1.0, max(1.5, float(np.log1p(c))) / c) if c > 0 else 1.0


def likelihood(wins: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of wins [M, M] at theta [M]: how much each pair tells [M, M], and the gradient [M]."""
    C = wins + wins.T
    F = expit(theta[:, None] - theta)
    return C * F * (1 - F), (wins - C * F).sum(axis=1)


def likelihood_of_people(
    table: Table, theta: FloatArray, sureness: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same where annotators differ in sureness [W]."""
    (winner, loser, who, times), M = table, len(theta)
    k = sureness[who]
    F = expit(k * (theta[winner] - theta[loser]))
    weight = summed(winner * M + loser, times * k**2 * F * (1 - F), M * M).reshape(M, M)
    pull = times * k * (1 - F)
    gradient = summed(winner, pull, M) - summed(loser, pull, M)
    return weight + weight.T, gradient


def curvature_and_gradient(answers: Answers, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the log likelihood at theta [M]: curvature [M, M] and gradient [M]."""
    if answers.sureness is None:
        weight, gradient = likelihood(answers.counts.wins(), theta)
    else:
        weight, gradient = likelihood_of_people(answers.counts.table(), theta, answers.sureness)
    return np.diag(weight.sum(axis=1)) - weight, gradient


def log_likelihood(answers: Answers, theta: FloatArray) -> float:
    """The log probability of all answers at theta [M]."""
    winner, loser, who, times = answers.counts.table()
    k = 1.0 if answers.sureness is None else answers.sureness[who]
    return float(times @ log_expit(k * (theta[winner] - theta[loser])))


def before_answers(shape: tuple[int, int], prior: Prior) -> tuple[FloatArray, FloatArray]:
    """What `settled` gives without answers (mean [M], covariance [M, M]), and much faster."""
    (N, S), (mean, state, arm, residual) = shape, prior_parts(shape, prior)
    own = arm * np.ones((S, S)) + residual * prior.root @ prior.root.T
    covariance = np.tile(state, (N, N)) + np.kron(np.eye(N), own)
    return np.tile(mean, N), covariance


def expand(answers: Answers, theta: FloatArray, shape: tuple[int, int], prior: Prior) -> Expansion:
    """Expand the log likelihood about theta [M], and integrate it over all parts."""
    curvature, gradient = curvature_and_gradient(answers, theta)
    bent = curvature @ theta
    constant = float(log_likelihood(answers, theta) - gradient @ theta - 0.5 * theta @ bent)
    rest, arms, states = integrate(curvature, gradient + bent, shape, prior)
    log, band = states.log + log_prior(GRID, shape, small=prior.small) + constant, bands()
    weights = np.array([np.where(band == b, log, -np.inf) for b in range(band.max() + 1)])
    means = means_of(rest, arms, states, softmax(weights, axis=(1, 2, 3)))
    return Expansion(theta, curvature, gradient + bent, constant, rest, arms, states, log, means)
