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
from scipy.sparse import csr_array
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.counts import Table, summed
from dopl_core.learning.strengths import (
    SETTLED,
    SPREADS,
    USUAL,
    log_prior,
    onward,
    prior_parts,
    state_parts,
)

DRAWS = 32  # for the variances, in which only what duels tell of other arms is left to draws
_PROBES = 4  # draws for the spreads, which are sums over all arm-states
_AT_ONCE = 8  # columns that are solved together
_ROUNDS = 20
_LEAST = 1 / 64  # of a spread: arms that are all alike are told apart by no more
_STEADY = 0.05  # spreads have settled when none changes by this share
_CLOSE = 1e-3  # of a solution, relative
_STEPS = 200
_NONE = 1e-300


class Graph(NamedTuple):
    """The P pairs that were compared, and where their weights stand in a sparse matrix [M, M].

    first, second: [P] codes;  pair: [E] that of each line of the table
    starts, columns: of the matrix;  order: [2P] which of the pairs, each there twice, is where
    """

    first: IntArray
    second: IntArray
    pair: IntArray
    starts: IntArray
    columns: IntArray
    order: IntArray


class System(NamedTuple):
    """K^-1 + L for N arms with S states.

    weight: L = degree - weight, sparse [M, M];  degree: [N, S, 1]
    residual, arm: variances in the prior K
    own: [N, S, 1] the share of an arm-state's pull that its residual leaves;  shared: [N, 1] the
    variance of an arm's part if it were all that is not known
    """

    weight: csr_array
    degree: FloatArray
    residual: float
    arm: float
    own: FloatArray
    shared: FloatArray


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


def graph(table: Table, size: int) -> Graph:
    """Which of `size` arm-states were compared."""
    first, second = np.minimum(table.winner, table.loser), np.maximum(table.winner, table.loser)
    codes, pair = np.unique(first * size + second, return_inverse=True)
    first, second = np.divmod(codes, size)
    rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((columns, rows))
    starts = np.concatenate([[0], np.bincount(rows, minlength=size).cumsum()])
    return Graph(first, second, pair, starts, columns[order], order % len(codes))


def likelihood(
    table: Table, graph: Graph, theta: FloatArray, sureness: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """At theta [M]: how much each pair tells [P], and the gradient [M]; as in strengths.py."""
    winner, loser, who, times = table
    k = 1.0 if sureness is None else sureness[who]
    F = expit(k * (theta[winner] - theta[loser]))
    weight = summed(graph.pair, times * k**2 * F * (1 - F), len(graph.first))
    pull = times * k * (1 - F)
    return weight, summed(winner, pull, len(theta)) - summed(loser, pull, len(theta))


def make_system(
    graph: Graph, weight: FloatArray, shape: tuple[int, int], residual: float, arm: float
) -> System:
    """The system of pairs with weights [P]; residual, arm: variances."""
    M = shape[0] * shape[1]
    sparse = csr_array((weight[graph.order], graph.columns, graph.starts), shape=(M, M))
    degree = summed(graph.first, weight, M) + summed(graph.second, weight, M)
    degree = degree.reshape(*shape, 1)
    own = 1 / (1 + residual * degree)
    shared = arm / (1 + arm * (degree * own).sum(axis=1))
    return System(sparse, degree, residual, arm, own, shared)


def multiply(system: System, x: FloatArray) -> FloatArray:
    """(K^-1 + L) x of columns [M, K]."""
    by_arm = x.reshape(*system.degree.shape[:2], -1)
    told = system.degree * by_arm + prior_precision(system, by_arm)
    return told.reshape(x.shape) - system.weight @ x


def prior_precision(system: System, by_arm: FloatArray) -> FloatArray:
    """K^-1 x of columns [N, S, K]: of two variances, that of an arm's mean is S arm + residual."""
    share = system.arm / (system.residual + by_arm.shape[1] * system.arm)
    return (by_arm - share * by_arm.sum(axis=1, keepdims=True)) / system.residual


def alone(system: System, b: FloatArray) -> FloatArray:
    """The solution for columns b [M, K] if all other arms stood still, each arm on its own."""
    by_arm = b.reshape(*system.degree.shape[:2], -1)
    arm = system.shared * (system.own * by_arm).sum(axis=1)
    return (system.own * (arm[:, None] + system.residual * by_arm)).reshape(b.shape)


def solve(system: System, b: FloatArray, x: FloatArray) -> FloatArray:
    """(K^-1 + L)^-1 b of columns [M, K], from x, by preconditioned conjugate gradients."""
    parts = range(0, b.shape[1], _AT_ONCE)
    at = [slice(start, start + _AT_ONCE) for start in parts]
    return np.concatenate([_solve(system, b[:, part], x[:, part]) for part in at], axis=1)


def _solve(system: System, b: FloatArray, x: FloatArray) -> FloatArray:
    b = np.ascontiguousarray(b)
    left = b - multiply(system, x)
    nearer = alone(system, left)
    enough = _CLOSE**2 * _products(b, alone(system, b))
    size, x, towards = _products(left, nearer), x.copy(), nearer
    for _ in range(_STEPS):
        if (size <= enough).all():
            break
        moved = multiply(system, towards)
        step = size / np.maximum(_products(towards, moved), _NONE)
        x += step * towards
        left -= step * moved
        nearer = alone(system, left)
        before, size = size, _products(left, nearer)
        towards = nearer + size / np.maximum(before, _NONE) * towards
    return x


def _products(x: FloatArray, y: FloatArray) -> FloatArray:
    """Inner products [K] of columns."""
    return np.asarray(np.einsum("mk,mk->k", x, y))


def perturbed(
    system: System, graph: Graph, weight: FloatArray, rng: np.random.Generator, count: int
) -> FloatArray:
    """Right-hand sides [M, count] whose solutions are draws of phi from N(0, (K^-1 + L)^-1)."""
    N, S, _ = system.degree.shape
    columns = []
    for _ in range(count):
        drawn = np.sqrt(system.arm) * rng.standard_normal((N, 1, 1))
        drawn = drawn + np.sqrt(system.residual) * rng.standard_normal((N, S, 1))
        told = np.sqrt(weight) * rng.standard_normal(len(weight))
        column = prior_precision(system, drawn).ravel()
        columns.append(
            column + summed(graph.first, told, N * S) - summed(graph.second, told, N * S)
        )
    return np.stack(columns, axis=1)


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
    rise: FloatArray,
    bend: float,
) -> StatesKnown:
    """Integrate phi out; solutions: [M, 1 + S] of the pull [M] and of told [M, S], L's by state."""
    S = len(rise)
    mine, moved = solutions[:, 0], solutions[:, 1:]
    of_states = _by_state(told, S) - told.T @ moved
    states = _by_state(pull[:, None], S)[:, 0] - told.T @ mine
    nothing = np.zeros((1, 1))
    parts = state_parts(of_states[None, None], states[None, None], nothing, rise, bend)
    spreads = np.sqrt([system.residual, system.arm])
    log = parts.log[0, 0] + log_prior(_with_states(spreads), S)
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
    system: System, mean: FloatArray, varied: FloatArray, weight: FloatArray
) -> FloatArray:
    """A step of Newton's method for the log spreads of residual and arm part [2].

    mean: [M] of phi;  varied: columns [M, .], whose sums of squares make up what its variance is
    beside that of each arm alone;  weight: [t] of the spreads of the state part

    K has two variances: that of an arm's mean (times sqrt S), and that of what is left.
    """
    N, S, _ = system.degree.shape
    spreads = np.sqrt([system.residual, system.arm])
    sizes = np.array([N, N * (S - 1)], dtype=float)
    variance = np.array([system.residual + S * system.arm, system.residual])
    known = _squares(mean[:, None], S) / variance
    unknown = (_squares(varied, S) + _squares_alone(system)) / variance
    slope = 0.5 * (known + unknown - sizes)
    told = np.clip(sizes - unknown, 0, sizes)  # how many of them the duels have told
    # How the log variances change with the log spreads.
    change = 2 * np.array([[system.residual, S * system.arm], [system.residual, 0.0]])
    change /= variance[:, None]
    information = 0.5 * told**2 / np.maximum(sizes, 1)
    gradient = change.T @ slope + _prior_slope(spreads, weight, S)
    curvature = change.T @ (information[:, None] * change) + _PRIOR_CURVATURE * np.eye(2)
    step = np.clip(np.linalg.solve(curvature, gradient), -np.log(2), np.log(2))
    return np.clip(spreads * np.exp(step), _LEAST, SPREADS[-1])


_PRIOR_CURVATURE = 3.0  # of log_prior in the log of a spread; about, for it is not concave


def _prior_slope(spreads: FloatArray, weight: FloatArray, n_states: int) -> FloatArray:
    """The slope [2] of the log prior in the log spreads of residual and arm part."""
    around = spreads * np.exp(0.01 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]))
    log = log_prior(_with_states(around), n_states) @ weight
    return np.array([log[0] - log[1], log[2] - log[3]]) / 0.02


def _with_states(spreads: FloatArray) -> FloatArray:
    """Spreads [3, ..., t] of all parts, from those of residual and arm part [..., 2]."""
    residual, arm = spreads[..., :1], spreads[..., 1:]
    return np.array(np.broadcast_arrays(residual, arm, SPREADS[1:]))


def _squares(columns: FloatArray, n_states: int) -> FloatArray:
    """Sums of squares [2]: of arms' means, times sqrt S, and of what is left."""
    by_arm = columns.reshape(-1, n_states, columns.shape[1])
    means = float((by_arm.sum(axis=1) ** 2).sum()) / n_states
    return np.array([means, float((columns**2).sum()) - means])


def _squares_alone(system: System) -> FloatArray:
    """Expected sums of squares [2] of phi if all other arms stood still, about its mean."""
    own, shared, S = system.own[:, :, 0], system.shared[:, 0], system.own.shape[1]
    residuals = system.residual * float(own.sum())
    means = (residuals + float((shared * own.sum(axis=1) ** 2).sum())) / S
    total = residuals + float((shared[:, None] * own**2).sum())
    return np.array([means, total - means])


def settled(
    table: Table,
    shape: tuple[int, int],
    rise: FloatArray,
    bend: float,
    rng: np.random.Generator,
    *,
    theta: FloatArray,
    spreads: FloatArray,
    sureness: FloatArray | None = None,
    careful: bool = True,
) -> Known:
    """Strengths by Newton's method from theta [M], spreads [2] of residual and arm part with it.

    The same random numbers perturb every round, so that all that changes is what is known.
    careful: as in strengths.py
    """
    (N, S), seeds = shape, rng.integers(1 << 62, size=2)
    compared = graph(table, N * S)
    of_state = np.tile(np.eye(S), (N, 1))  # [M, S]
    solutions = np.zeros((N * S, 1 + S + _PROBES))
    for turn in range(_ROUNDS):
        weight, gradient = likelihood(table, compared, theta, sureness)
        system = make_system(compared, weight, shape, *spreads**2)
        degree = system.degree.ravel()
        pull = gradient + degree * theta - system.weight @ theta
        told = degree[:, None] * of_state - system.weight @ of_state
        probes = perturbed(system, compared, weight, np.random.default_rng(seeds[0]), _PROBES)
        solutions = solve(system, np.column_stack([pull, told, probes]), solutions)
        states = states_known(system, pull, solutions[:, : 1 + S], told, rise, bend)
        moved, drawn = solutions[:, 1 : 1 + S], solutions[:, 1 + S :]
        root = _root(states.covariance)
        phi = solutions[:, 0] - moved @ states.mean
        others = alone(system, system.weight @ drawn) / np.sqrt(_PROBES)
        varied = np.column_stack([others, moved @ root])
        before, spreads = spreads, better_spreads(system, phi, varied, states.weight)
        change = phi + np.tile(states.mean, N) - theta
        start, theta = theta, theta + change
        steady = np.abs(np.log(spreads / before)).max() < _STEADY
        if steady and np.abs(change).max() < SETTLED:
            break
        if careful:
            theta = onward(start, theta, table, sureness, first=turn == 0)
    common = (of_state - moved) @ root
    rng = np.random.default_rng(seeds[1])
    own = variances(system, compared, weight, rng)
    within = (np.sqrt(system.shared)[:, None] * system.own).ravel()
    return Known(theta, own + (common**2).sum(axis=1), common, within, spreads, system)


def variances(
    system: System, graph: Graph, weight: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The variances of phi [M]: those if all other arms stood still, and what these add.

    Only the second part is left to draws (Papandreou and Yuille, 2011, call it Rao-Blackwell).
    """
    shared = system.shared[:, None] * system.own**2
    alone_variance = (system.residual * system.own + shared).ravel()
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
    table: Table,
    shape: tuple[int, int],
    rise: FloatArray,
    bend: float,
    rng: np.random.Generator,
    warm: dict[str, FloatArray] | None = None,
    sureness: FloatArray | None = None,
    *,
    careful: bool = True,
) -> Known:
    """What is known of the strengths from the duels in a table, be there any or none."""
    if len(table.times) == 0:
        return before_answers(shape, rise, bend)
    warm = warm or {}
    theta = warm.get("theta", np.zeros(shape[0] * shape[1]))
    spreads = warm.get("spreads", np.full(2, USUAL / np.sqrt(3)))
    return settled(
        table,
        shape,
        rise,
        bend,
        rng,
        theta=theta,
        spreads=spreads,
        sureness=sureness,
        careful=careful,
    )


def before_answers(shape: tuple[int, int], rise: FloatArray, bend: float) -> Known:
    """The prior, as strengths.prior has it."""
    N, S = shape
    mean, state, arm, residual = prior_parts(rise, bend)
    none = np.empty(0, dtype=np.int64)
    nothing = graph(Table(none, none, none, np.empty(0)), N * S)
    system = make_system(nothing, np.empty(0), shape, residual, arm)
    variance = state.diagonal() + arm + residual
    within = np.full(N * S, np.sqrt(arm))
    spreads = np.full(2, USUAL / np.sqrt(3))
    common = np.tile(_root(state), (N, 1))
    return Known(np.tile(mean, N), np.tile(variance, N), common, within, spreads, system)


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
