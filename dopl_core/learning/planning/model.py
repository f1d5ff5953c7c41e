"""The extended LP of the paper's appendix C.1 as one sparse matrix, shared by the LP engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dopl_core.learning.planning.problem import Floats, Problem


@dataclass(frozen=True)
class Model:
    """Maximise gain @ x with x >= 0 and rows @ x = limit (the first n_equal rows) or <= limit.

    The first N*S*A variables are the occupancy mu(n, s, a). The last row is the budget, and
    flow [N, S] the rows that say a state is left as often as it is entered; -1 where this
    follows from the other rows.
    """

    gain: Floats
    rows: csr_array
    limit: Floats
    n_equal: int
    flow: NDArray[np.int64]

    def bias(self, duals: Floats) -> Floats:
        """[S, N] from the duals of the equations."""
        return np.where(self.flow < 0, 0.0, duals[self.flow]).T


def elp(problem: Problem) -> Model:
    """Write the extended LP of a problem, without the variables and rows it can do without.

    With w(s, a, y) = low(s, a, y) mu(s, a) + fill(s, a, y), errata 10 becomes fill >= 0, the
    fills of (s, a) sum to room(s, a) mu(s, a), and fill(s, a, y) <= width(s, a, y) mu(s, a).
    Where the last cannot bind for any y, the fill may go anywhere: such pairs (s, a) of an arm
    need no fills of their own but share a pool of one for each state.
    """
    n_arms, n_states, _ = problem.room.shape
    pairs = problem.room.size
    arm, state, action = (x.ravel() for x in np.indices(problem.room.shape))
    low, width = problem.low.reshape(pairs, n_states), problem.width.reshape(pairs, n_states)
    room = problem.room.ravel()
    roams = (room > 0) & (width >= room[:, None]).all(axis=1)
    bounded = (room > 0) & ~roams

    # Variables: mu, then fill as a share of room, then pool.
    pair, target = np.nonzero((width > 0) & bounded[:, None])
    fill = pairs + np.arange(pair.size)
    pooled = np.unique(arm[roams])
    pool_arm, pool_state = np.repeat(pooled, n_states), np.tile(np.arange(n_states), pooled.size)
    pool = pairs + pair.size + np.arange(pool_arm.size)
    share = width[pair, target] / room[pair]
    capped = np.flatnonzero(share < 1)

    # Rows: normalisation, flow, sum of fills, cap of fills, budget. The flows of an arm sum to 0
    # and one of them is left out, unless it makes sure that the pool sums to what goes in.
    flows = np.ones((n_arms, n_states), dtype=bool)
    flows[:, -1] = False
    flows[pooled, -1] = True
    flow = np.full((n_arms, n_states), -1)
    flow[flows] = n_arms + np.arange(np.count_nonzero(flows))
    sums = np.full(pairs, -1)
    sums[bounded] = n_arms + np.count_nonzero(flows) + np.arange(np.count_nonzero(bounded))
    n_equal = n_arms + np.count_nonzero(flows) + np.count_nonzero(bounded)
    cap = n_equal + np.arange(capped.size)
    budget = n_equal + capped.size

    stay = np.eye(n_states)[state] - low  # outflow less inflow of each state
    mu, to = np.nonzero(stay)
    acting = np.flatnonzero(action)
    held = np.flatnonzero(bounded)
    terms = (
        (arm, np.arange(pairs), np.ones(pairs)),
        (flow[arm[mu], to], mu, stay[mu, to]),
        (flow[arm[pair], target], fill, -room[pair]),
        (flow[pool_arm, pool_state], pool, -np.ones(pool.size)),
        (sums[held], held, -np.ones(held.size)),
        (sums[pair], fill, np.ones(fill.size)),
        (cap, fill[capped], np.ones(capped.size)),
        (cap, pair[capped], -share[capped]),
        (np.full(acting.size, budget), acting, np.ones(acting.size)),
    )
    row, column, value = (np.concatenate(part) for part in zip(*terms, strict=True))
    written = row >= 0
    rows = csr_array(
        (value[written], (row[written], column[written])),
        shape=(budget + 1, pairs + fill.size + pool.size),
    )
    gain = np.zeros(rows.shape[1])
    gain[:pairs] = problem.pay.ravel()
    limit = np.zeros(budget + 1)
    limit[:n_arms] = 1.0
    limit[budget] = problem.budget
    return Model(gain, rows, limit, n_equal, flow)
