"""The extended LP of the paper's appendix C.1 as one sparse matrix, shared by the LP engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dopl_core.planning.problem import Floats, Problem

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Model:
    """Maximise gain @ x with x >= 0 and rows @ x = limit (the first n_equal rows) or <= limit.

    The first N*S*A variables are the occupancy mu(n, s, a); the rest are the fill of each row,
    as a share of its room: w(s, a, y) = low(s, a, y) mu(s, a) + room(s, a) fill(s, a, y), which
    is errata 10 with the lower bounds substituted away. The budget is the last row.
    """

    gain: Floats
    rows: csr_array
    limit: Floats
    n_equal: int
    filled: Ints  # flat [N, S, A, S] place of each fill variable


def elp(problem: Problem) -> Model:
    """Write the extended LP of a problem, without the rows that cannot bind."""
    n_arms, n_states, _, _ = problem.low.shape
    pairs = problem.room.size
    mu = np.arange(pairs)
    arm, state, action = (x.ravel() for x in np.indices(problem.room.shape))
    flat_width = problem.width.ravel()

    # A fill variable for each entry that is free; a row for each that can reach its upper bound.
    filled = np.flatnonzero(flat_width)
    pair, target = filled // n_states, filled % n_states
    fill = pairs + np.arange(filled.size)
    room = problem.room.ravel()[pair]
    bounded = np.flatnonzero(flat_width[filled] < room)

    # Numbers of the rows: normalisation, flow of all states but the last, split, bound, budget.
    flow = n_arms + np.arange(n_arms * (n_states - 1)).reshape(n_arms, n_states - 1)
    free = np.flatnonzero(problem.room)
    split = np.zeros(pairs, dtype=np.int64)
    split[free] = n_arms * n_states + np.arange(free.size)
    n_equal = n_arms * n_states + free.size
    bound = n_equal + np.arange(bounded.size)
    budget = n_equal + bounded.size

    stays = np.eye(n_states)[state] - problem.low.reshape(pairs, n_states)
    inflow = np.flatnonzero(target < n_states - 1)
    blocks: list[tuple[Ints, Ints, Floats]] = [
        (arm, mu, np.ones(pairs)),
        (flow[arm].ravel(), np.repeat(mu, n_states - 1), stays[:, :-1].ravel()),
        (flow[arm[pair[inflow]], target[inflow]], fill[inflow], -room[inflow]),
        (split[free], mu[free], -np.ones(free.size)),
        (split[pair], fill, np.ones(fill.size)),
        (bound, fill[bounded], np.ones(bounded.size)),
        (bound, pair[bounded], -flat_width[filled[bounded]] / room[bounded]),
        (np.full(pairs // 2, budget), mu[action == 1], np.ones(pairs // 2)),
    ]
    row, column, value = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    rows = csr_array((value, (row, column)), shape=(budget + 1, pairs + fill.size))
    rows.eliminate_zeros()

    gain = np.concatenate([problem.pay.ravel(), np.zeros(fill.size)])
    limit = np.zeros(budget + 1)
    limit[:n_arms] = 1.0
    limit[budget] = problem.budget
    return Model(gain, rows, limit, n_equal, filled)
