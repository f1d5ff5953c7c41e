"""Rows of moves that change gradually with the columns of the arms: a ridge logistic regression.

The row of arm n for one (state, action) r is drawn about a centre m[n, r] of its own:
p ~ Dir(k m),  log m[n, r, s] = log m0[r, s] + sum_q Z[s, q] x[n] . b[r, :, q] + constant.
The coefficients b of a column are much alike in all rows, so they share what is learnt of them:
b ~ N(0, t^2 K), with K from `coefficients_covariance`. The last feature is the constant 1, with a
coefficient of its own in each row: help is not given at random, so the rows of all arms m0, which
are what was seen, are not those of an arm with average columns. The concentration k and the spread
t are not known: each of a grid is weighed by its evidence (Laplace's approximation).

Axes: g pairs of a strength and a spread, n arms, d features, r rows, s next states, q scores.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.columns import Column
from dopl_core.learning.log_space import softmax

SPREADS = np.array([0.2, 0.6])  # of the log-odds that one standard deviation of a column makes
SAME_ACTION, SAME_ROW = 0.1, 0.1  # variances of what rows do not share, where the shared has 1
CONSTANT = 0.5  # the prior standard deviation of the constant's coefficients
MOST_FEATURES = 24
MOST_COEFFICIENTS = 300
STEPS = 5  # of Newton's method; the prior keeps coefficients small, so it is close by then


class Regression(NamedTuple):
    """What is known of the coefficients.

    strength: [g] which of the concentrations;  spread: [g] t
    mean: [g, r, d, q];  covariance: [g, r d q, r d q];  centre: [g, r, s];  scores: [s, q]
    gain: log evidence over that of arms all alike [g]
    """

    strength: IntArray
    spread: FloatArray
    mean: FloatArray
    covariance: FloatArray
    centre: FloatArray
    scores: FloatArray
    gain: FloatArray


def features(columns: Sequence[Column], most: int) -> tuple[FloatArray, IntArray]:
    """Columns as numbers [n, d] about 0, 0 where they are missing, and which column each is of.

    The last is the constant 1, of column -1.
    most: how many numbers there may be; the first columns come first
    """
    parts: list[FloatArray] = []
    of: list[int] = []
    for number, column in enumerate(columns):
        part: FloatArray
        if column.kind == "number":
            part = np.nan_to_num(column.values.astype(float))[:, None]
        else:
            part = (column.values[:, None] == np.arange(len(column.labels))).astype(float)
            part = part[:, 1:] if len(column.labels) == 2 else part
            share = part.mean(axis=0)
            part = (part - share) / np.sqrt(np.maximum(share * (1 - share), 0.05))
            part[column.values < 0] = 0
        if parts and len(of) + part.shape[1] > most:
            break
        part = part[:, :most]
        parts.append(part)
        of += [number] * part.shape[1]
    constant = np.ones((len(parts[0]), 1))
    return np.concatenate([*parts, constant], axis=1), np.array([*of, -1])


def scores(n_states: int, ordered: bool) -> FloatArray:
    """How far each next state is up [s, 1] where states are ordered; else contrasts [s, s - 1]."""
    if ordered or n_states == 2 or n_states > 4:
        return np.linspace(-0.5, 0.5, n_states)[:, None]
    contrasts = np.linalg.qr(np.column_stack([np.ones(n_states), np.eye(n_states)[:, 1:]]))[0]
    return np.asarray(contrasts[:, 1:])


def coefficients_covariance(actions: IntArray) -> FloatArray:
    """The prior covariance K [r, r] of a coefficient in all rows, which are of `actions` [r]."""
    alike = actions[:, None] == actions
    return np.asarray(1 + SAME_ACTION * alike + SAME_ROW * np.eye(len(actions)))


def prior_precision(K: FloatArray, D: int, Q: int, spread: FloatArray) -> FloatArray:
    """The precision [g, rdq, rdq] of all coefficients, the last of D features the constant."""
    constant = np.eye(D)[-1]
    columns = np.kron(np.linalg.inv(K), np.kron(np.diag(1 - constant), np.eye(Q)))
    alone = np.kron(np.eye(len(K)), np.kron(np.diag(constant), np.eye(Q))) / CONSTANT**2
    return np.asarray(columns / (spread**2)[:, None, None] + alone)


def centres(x: FloatArray, b: FloatArray, centre: FloatArray, scores: FloatArray) -> FloatArray:
    """The rows m [g, n, r, s] that arms with the features x [n, d] have their own about."""
    tilt = np.einsum("nd,grdq,sq->gnrs", x, b, scores, optimize=True)
    return np.asarray(softmax(np.log(centre)[:, None] + tilt, axis=-1))


def fit(
    n: FloatArray,
    worth: FloatArray,
    x: FloatArray,
    centre: FloatArray,
    k: FloatArray,
    Z: FloatArray,
    actions: IntArray | None = None,
) -> Regression:
    """The coefficients, from moves n [n, r, s] of arms with the features x [n, d].

    worth: [k, n, r, s] draws that the moves are worth, by concentration k;  Z: scores [s, q]
    centre: [k, r, s] rows of all arms;  actions: [r] of which each row is, by default in turns
    """
    actions = np.arange(n.shape[1]) % 2 if actions is None else actions
    strength = np.repeat(np.arange(len(k)), len(SPREADS))
    spread = np.tile(SPREADS, len(k))
    worth, centre = worth[strength], centre[strength]
    R, D, Q = n.shape[1], x.shape[1], Z.shape[1]
    prior = prior_precision(coefficients_covariance(actions), D, Q, spread)
    b = np.zeros((len(strength), R, D, Q))
    for _ in range(STEPS):
        m = centres(x, b, centre, Z)
        uphill, precision = slope(worth, m, x, Z)
        flat = b.reshape(len(b), -1)
        uphill = uphill.reshape(flat.shape) - np.einsum("gij,gj->gi", prior, flat)
        b = b + np.linalg.solve(precision + prior, uphill[..., None]).reshape(b.shape)
    m = centres(x, b, centre, Z)
    precision = slope(worth, m, x, Z)[1] + prior
    flat = b.reshape(len(b), -1)
    own, alike = (likelihood(n, k[strength], rows) for rows in (m, centre[:, None]))
    log_volume = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(prior)[1]
    covariance: FloatArray = np.linalg.inv(precision).astype(np.float64)
    gain = own - alike - 0.5 * (np.einsum("gi,gij,gj->g", flat, prior, flat) + log_volume)
    return Regression(strength, spread, b, covariance, centre, Z, gain)


def slope(
    worth: FloatArray, m: FloatArray, x: FloatArray, Z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient [g, r, d, q] and information [g, rdq, rdq] of the log-likelihood of the draws."""
    total = worth.sum(axis=-1)  # [g, n, r]
    surplus = (worth - total[..., None] * m) @ Z  # [g, n, r, q]
    gradient = np.einsum("nd,gnrq->grdq", x, surplus)
    mean = m @ Z
    spread = np.einsum("gnrs,sq,sp->gnrqp", m, Z, Z, optimize=True)
    spread = total[..., None, None] * (spread - mean[..., None] * mean[..., None, :])
    G, N, R, Q, _ = spread.shape
    D = x.shape[1]
    square = (x[:, :, None] * x[:, None, :]).reshape(N, -1)  # [n, d d]
    blocks = np.einsum("gnw,nv->gwv", spread.reshape(G, N, -1), square, optimize=True)
    blocks = blocks.reshape(G, R, Q, Q, D, D).transpose(0, 1, 4, 2, 5, 3)
    information = np.zeros((G, R, D * Q, R, D * Q))
    rows = np.arange(R)
    information[:, rows, :, rows, :] = blocks.reshape(G, R, D * Q, D * Q).transpose(1, 0, 2, 3)
    return gradient, information.reshape(G, R * D * Q, -1)


def likelihood(n: FloatArray, k: FloatArray, m: FloatArray) -> FloatArray:
    """Log-likelihood [g] of all moves n [n, r, s]: Dirichlet-multinomial with the rows k m."""
    alpha = k[:, None, None, None] * m
    each = (gammaln(n + alpha) - gammaln(alpha)).sum(axis=(1, 2, 3))
    strength = k[:, None, None]
    return np.asarray(each + (gammaln(strength) - gammaln(strength + n.sum(axis=-1))).sum((1, 2)))


def variances(x: FloatArray, found: Regression, m: FloatArray) -> FloatArray:
    """Variance [g, n, r, s] of the centres m of arms with the features x [n, d]."""
    G, R, D, Q = found.mean.shape
    covariance = found.covariance.reshape(G, R, D * Q, R, D * Q)
    rows = np.arange(R)
    own = covariance[:, rows, :, rows, :].transpose(1, 0, 2, 3).reshape(G, R, D, Q, D, Q)
    tilt = np.einsum("nd,grdqep,ne->gnrqp", x, own, x, optimize=True)
    off = found.scores - (m @ found.scores)[..., None, :]  # [g, n, r, s, q]
    return np.asarray(m**2 * np.einsum("gnrsq,gnrqp,gnrsp->gnrs", off, tilt, off, optimize=True))


def only(found: Regression, g: int) -> Regression:
    """One pair of a concentration and a spread."""
    one = slice(g, g + 1)
    return found._replace(
        strength=found.strength[one],
        spread=found.spread[one],
        mean=found.mean[one],
        covariance=found.covariance[one],
        centre=found.centre[one],
        gain=found.gain[one],
    )


def draw(found: Regression, count: int, rng: np.random.Generator) -> FloatArray:
    """Coefficients [D, r, d, q] from the Gaussian of the only pair of `found`."""
    root = np.linalg.cholesky(found.covariance[0])
    noise = rng.standard_normal((count, len(root))) @ root.T
    return np.asarray(found.mean[0] + noise.reshape(count, *found.mean.shape[1:]))


def matters(
    found: Regression, of: NDArray[np.bool_], weight: FloatArray, actions: IntArray
) -> float:
    """The posterior probability that the features `of` [d] have coefficients other than 0.

    Beforehand it is a half. The evidence that they are 0 is the ratio of the posterior density
    there to the prior density (Savage and Dickey).
    """
    G, R, D, Q = found.mean.shape
    at = np.flatnonzero(np.broadcast_to(of[None, :, None], (R, D, Q)).ravel())
    prior = np.kron(coefficients_covariance(actions), np.eye(len(at) // R))
    zero = np.empty(G)
    for g in range(G):
        b, V = found.mean[g].ravel()[at], found.covariance[g][np.ix_(at, at)]
        before = np.linalg.slogdet(prior * found.spread[g] ** 2)[1]
        zero[g] = 0.5 * (before - np.linalg.slogdet(V)[1] - b @ np.linalg.solve(V, b))
    return float(weight @ expit(-zero))
