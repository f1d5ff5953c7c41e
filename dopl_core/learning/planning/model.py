"""The extended LP of the paper's appendix C.1 as one sparse matrix, shared by the LP engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dopl_core.learning.planning.problem import Floats, Numbers, Problem


@dataclass(frozen=True)
class Model:
    """Maximise gain @ x with x >= 0 and rows @ x = limit (the first n_equal rows) or <= limit.

    The first N*S*A variables are the occupancy mu(n, s, a). The last row is the budget.
    flow: [N, S] the rows of flow conservation, -1 where it follows from the other rows
    floor, cap: [N] the rows of the floor of an arm's group and of its cap, -1 where there is none
    """

    gain: Floats
    rows: csr_array
    limit: Floats
    n_equal: int
    flow: Numbers
    floor: Numbers
    cap: Numbers

    def prices(self, duals: Floats) -> tuple[float, Floats]:
        """The multiplier, and what an action of each arm costs [N]: floors lower it, caps raise it.

        duals: of the inequalities, not negative
        """
        paid = np.append(np.maximum(duals, 0.0), 0.0)  # the last is that of row -1
        multiplier = max(0.0, float(duals[-1]))
        floor, cap = (np.where(row < 0, -1, row - self.n_equal) for row in (self.floor, self.cap))
        return multiplier, multiplier - paid[floor] + paid[cap]

    def bias(self, duals: Floats) -> Floats:
        """[S, N] from the duals of the equations."""
        return np.where(self.flow < 0, 0.0, duals[self.flow]).T


@dataclass(frozen=True)
class Variables:
    """The numbers of the variables of an extended LP, and what each belongs to.

    The pairs (n, s, a) are numbered as in [N, S, A]; mu of a pair has the pair's number.
    pair, target: of each fill; share: what a fill may be at most, as a share of the pair's room
    pool_arm, pool_state: of each pool
    bounded: [N*S*A] pairs that have fills of their own; pooled: arms that have a pool
    """

    bounded: NDArray[np.bool_]
    pair: Numbers
    target: Numbers
    share: Floats
    fill: Numbers
    pooled: Numbers
    pool_arm: Numbers
    pool_state: Numbers
    pool: Numbers


@dataclass(frozen=True)
class Rows:
    """The numbers of the rows of an extended LP; -1 where there is none.

    The first N are the normalisations of the arms.
    flow: [N, S]; fills: [N*S*A] that the fills of a pair sum to its room
    capped: the fills that have a cap, cap: its row; budget: the last row
    floors: [G] the rows of groups that have a floor; most: [N] the rows of arms with a cap
    """

    flow: Numbers
    fills: Numbers
    capped: Numbers
    cap: Numbers
    n_equal: int
    budget: int
    floors: Numbers
    most: Numbers


def elp(problem: Problem) -> Model:
    """The extended LP of a problem, without redundant variables and rows.

    With w(s, a, y) = low(s, a, y) mu(s, a) + fill(s, a, y), errata 10 becomes fill >= 0, the
    fills of (s, a) sum to room(s, a) mu(s, a), and fill(s, a, y) <= width(s, a, y) mu(s, a).
    Where the last cannot bind for any y, the fill may go anywhere: such pairs (s, a) of an arm
    need no fills of their own but share a pool of one for each state.
    """
    variables = number_variables(problem)
    numbers = number_rows(problem, variables)
    row, column, value = _terms(problem, variables, numbers)
    pairs = problem.pay.size
    rows = csr_array(
        (value, (row, column)),
        shape=(numbers.budget + 1, pairs + variables.fill.size + variables.pool.size),
    )
    gain = np.zeros(rows.shape[1])
    gain[:pairs] = problem.pay.ravel()
    limit = np.zeros(numbers.budget + 1)
    limit[: len(problem.pay)] = 1.0
    limit[numbers.budget] = problem.budget
    floor = np.full(len(problem.pay), -1)
    if problem.limits is not None:
        limits = problem.limits
        floored, limited = numbers.floors >= 0, numbers.most >= 0
        limit[numbers.floors[floored]] = -limits.floors[floored]
        limit[numbers.most[limited]] = limits.caps[limited]
        floor = numbers.floors[limits.group]
    return Model(gain, rows, limit, numbers.n_equal, numbers.flow, floor, numbers.most)


def number_variables(problem: Problem) -> Variables:
    """Number the variables: mu, then fill as a share of room, then pool."""
    n_states = problem.room.shape[1]
    pairs = problem.room.size
    width, room = problem.width.reshape(pairs, n_states), problem.room.ravel()
    roams = (room > 0) & (width >= room[:, None]).all(axis=1)
    bounded = (room > 0) & ~roams
    pair, target = np.nonzero((width > 0) & bounded[:, None])
    pooled = np.unique(np.flatnonzero(roams) // (2 * n_states))
    pool_arm, pool_state = np.repeat(pooled, n_states), np.tile(np.arange(n_states), pooled.size)
    return Variables(
        bounded=bounded,
        pair=pair,
        target=target,
        share=width[pair, target] / room[pair],
        fill=pairs + np.arange(pair.size),
        pooled=pooled,
        pool_arm=pool_arm,
        pool_state=pool_state,
        pool=pairs + pair.size + np.arange(pool_arm.size),
    )


def number_rows(problem: Problem, variables: Variables) -> Rows:
    """Number the rows: normalisation, flow, sum of fills, cap of fills, floors, caps, budget.

    The flows of an arm sum to 0, so one of them is left out, unless it is needed to make the pool
    sum to its inflow.
    """
    n_arms, n_states, _ = problem.room.shape
    flows = np.ones((n_arms, n_states), dtype=bool)
    flows[:, -1] = False
    flows[variables.pooled, -1] = True
    n_flows, n_sums = np.count_nonzero(flows), np.count_nonzero(variables.bounded)
    flow = np.full((n_arms, n_states), -1)
    flow[flows] = n_arms + np.arange(n_flows)
    fills = np.full(problem.room.size, -1)
    fills[variables.bounded] = n_arms + n_flows + np.arange(n_sums)
    n_equal = n_arms + n_flows + n_sums
    capped = np.flatnonzero(variables.share < 1)
    cap = n_equal + np.arange(capped.size)
    last = n_equal + capped.size
    floors, most = np.full(1, -1), np.full(n_arms, -1)
    if problem.limits is not None:
        floors, last = _numbered(problem.limits.floors > 0, last)
        most, last = _numbered(problem.limits.caps < 1, last)
    return Rows(flow, fills, capped, cap, n_equal, last, floors, most)


def _numbered(chosen: NDArray[np.bool_], first: int) -> tuple[Numbers, int]:
    """Numbers from `first` for the chosen, -1 for the others; and the next number."""
    return np.where(chosen, first + chosen.cumsum() - 1, -1), first + int(chosen.sum())


def _terms(problem: Problem, of: Variables, to: Rows) -> tuple[Numbers, Numbers, Floats]:
    """Row, column and value of every coefficient of the variables in the rows."""
    n_states = problem.room.shape[1]
    pairs = problem.room.size
    arm, state, action = (x.ravel() for x in np.indices(problem.room.shape))
    room = problem.room.ravel()
    outflow = np.eye(n_states)[state] - problem.low.reshape(pairs, n_states)  # less inflow
    mu, target = np.nonzero(outflow)
    acting, bounded = np.flatnonzero(action), np.flatnonzero(of.bounded)
    limits = problem.limits
    group = np.zeros(len(problem.pay), dtype=np.int64) if limits is None else limits.group
    terms = (
        (arm, np.arange(pairs), np.ones(pairs)),
        (to.flow[arm[mu], target], mu, outflow[mu, target]),
        (to.flow[arm[of.pair], of.target], of.fill, -room[of.pair]),
        (to.flow[of.pool_arm, of.pool_state], of.pool, -np.ones(of.pool.size)),
        (to.fills[bounded], bounded, -np.ones(bounded.size)),
        (to.fills[of.pair], of.fill, np.ones(of.fill.size)),
        (to.cap, of.fill[to.capped], np.ones(to.capped.size)),
        (to.cap, of.pair[to.capped], -of.share[to.capped]),
        (to.floors[group[arm[acting]]], acting, -np.ones(acting.size)),
        (to.most[arm[acting]], acting, np.ones(acting.size)),
        (np.full(acting.size, to.budget), acting, np.ones(acting.size)),
    )
    row, column, value = (np.concatenate(part) for part in zip(*terms, strict=True))
    written = row >= 0
    return row[written], column[written], value[written]
