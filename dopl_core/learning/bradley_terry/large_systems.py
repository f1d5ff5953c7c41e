"""Linear systems of very many strengths: the precision of arm parts and residuals.

phi = arm part + residual has the precision K^-1 + L: that of the prior, in which an arm's states
have the arm part in common, and the Laplacian of the duels, each weighted by how much it tells.
Conjugate gradients solve them, with every arm on its own as the preconditioner.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from dopl_core.learning.bandit import FloatArray, IntArray
from dopl_core.learning.counts import Table, summed

_AT_ONCE = 8  # columns that are solved together
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
    residual, arm: variances in the prior K [S, S] of an arm;  within: [S, S] of its residuals
    own: [N, S, S] the covariance of an arm's phi if all other arms stood still
    """

    weight: csr_array
    degree: FloatArray
    residual: float
    arm: float
    K: FloatArray
    within: FloatArray
    own: FloatArray


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
    graph: Graph, weight: FloatArray, shape: tuple[int, int], spreads: FloatArray, root: FloatArray
) -> System:
    """The system of pairs with weights [P]; spreads: [2] of residual and arm part."""
    M = shape[0] * shape[1]
    sparse = csr_array((weight[graph.order], graph.columns, graph.starts), shape=(M, M))
    degree = summed(graph.first, weight, M) + summed(graph.second, weight, M)
    degree = degree.reshape(*shape, 1)
    (residual, arm), within = spreads**2, root @ root.T
    K = residual * within + arm
    own = np.asarray(np.linalg.inv(np.linalg.inv(K) + degree * np.eye(shape[1])), dtype=float)
    return System(sparse, degree, residual, arm, K, within, own)


def multiply(system: System, x: FloatArray) -> FloatArray:
    """(K^-1 + L) x of columns [M, K]."""
    by_arm = x.reshape(*system.degree.shape[:2], -1)
    told = system.degree * by_arm + prior_precision(system, by_arm)
    return told.reshape(x.shape) - system.weight @ x


def prior_precision(system: System, by_arm: FloatArray) -> FloatArray:
    """K^-1 x of columns [N, S, K]."""
    return np.asarray(np.linalg.inv(system.K) @ by_arm)


def alone(system: System, b: FloatArray) -> FloatArray:
    """The solution for columns b [M, K] if all other arms stood still, each arm on its own."""
    by_arm = b.reshape(*system.degree.shape[:2], -1)
    return np.asarray((system.own @ by_arm).reshape(b.shape))


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
    columns, root = [], np.linalg.cholesky(system.K)
    for _ in range(count):
        drawn = root @ rng.standard_normal((N, S, 1))
        told = np.sqrt(weight) * rng.standard_normal(len(weight))
        column = prior_precision(system, drawn).ravel()
        columns.append(
            column + summed(graph.first, told, N * S) - summed(graph.second, told, N * S)
        )
    return np.stack(columns, axis=1)
