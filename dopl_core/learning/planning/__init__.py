"""The optimal use of a budget among arms whose transition rows lie in known boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dopl_core.learning.planning import arms, cbc, highs, lagrangian, limits
from dopl_core.learning.planning.chains import guess
from dopl_core.learning.planning.even import even_floors
from dopl_core.learning.planning.problem import (
    Floats,
    Numbers,
    Pays,
    PlanningError,
    Problem,
    limits_of,
    pose,
)

__all__ = ["ENGINES", "Engine", "Plan", "PlanningError", "among_all", "even_floors", "plan"]

Engine = Literal["cbc", "highs", "lagrangian"]
ENGINES: tuple[Engine, ...] = ("cbc", "highs", "lagrangian")

OCCUPIED = 1e-9  # less occupancy than this is a solver's rounding


@dataclass(frozen=True)
class Plan:
    """An optimal solution of the extended LP, with its duals.

    value: average pay per epoch of all arms together
    occupancy: [N, S, A] long-run share of epochs in state s with action a; sums to 1 for each arm
    index: [N, S] share of the visits to a state that act; 0 in states never visited (errata 12)
    advantage: [N, S] gain of acting over waiting at the multiplier, states never visited included
    multiplier: the value per epoch of one more unit of budget
    prices: [N] what an action of each arm costs: the multiplier, less the price of its group's
        floor, plus that of its cap; None if there are neither floors nor caps
    start: [1 + N*S] multiplier and biases, to start the next plan of the same bandit from
    """

    value: float
    occupancy: Floats
    index: Floats
    advantage: Floats
    multiplier: float
    start: Floats
    engine: Engine
    prices: Floats | None = None


def plan(
    reward: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    budget: float,
    *,
    engine: Engine = "cbc",
    pays: Pays = "all",
    start: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    floors: ArrayLike | None = None,
    caps: ArrayLike | None = None,
) -> Plan:
    """Solve the extended LP (paper, appendix C.1): the optimal use of a budget among arms.

    Parameters
    ----------
    reward : array_like, shape (N, S) or (N, S, 2)
        Of each state; or of waiting and acting, if they differ.
    low, high : array_like, shape (N, S, 2, S)
        Bounds of the transition rows; both are the transitions if these are known.
    budget : float
        The expected number of arms that are helped at a time.
    engine, pays : {"cbc", "highs", "lagrangian"}, {"all", "active"}
        What solves it (all agree in value to 1e-6); which arms earn the reward of their state.
    start : array_like, shape (1 + N * S,), optional
        Of an earlier plan of the same bandit; makes the lagrangian engine faster.
    groups, floors : array_like, shapes (N,) and (G,), optional
        The group of each arm, from 0; the least expected number of helped arms of each group.
    caps : array_like, shape (N,), optional
        The largest share of epochs in which each arm is helped.

    Returns
    -------
    Plan

    Examples
    --------
    >>> lasts = [[[1, 0], [0, 1]], [[1, 0], [1, 0]]]  # [state, action, next state]: help works
    >>> never = [[[1, 0], [1, 0]], [[1, 0], [1, 0]]]
    >>> plan([[0, 1], [0, 1]], [lasts, never], [lasts, never], budget=1).value
    0.5
    """
    if engine not in ENGINES:
        raise PlanningError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    problem = pose(reward, low, high, budget, pays)
    limit = limits_of(len(problem.pay), problem.budget, groups, floors, caps)
    return _solve(replace(problem, limits=limit), engine, start)


def _solve(problem: Problem, engine: Engine, start: ArrayLike | None) -> Plan:
    limit = problem.limits
    each = arms.of(problem)
    first, bias = _unpack(start, *each.pay.shape[1:])
    prices: Floats | None = None
    kept = False
    if engine == "lagrangian" and limit is None:
        occupancy, multiplier, response = lagrangian.solve(each, problem.budget, first, bias)
        kept = True
    elif engine == "lagrangian" and limit is not None:
        found = limits.solve(each, problem.budget, limit, first, bias)
        occupancy, multiplier, prices, response = found
        kept = limits.are_kept(occupancy, limit)  # rounding may lose a cap, once in 100,000
    if not kept:
        occupancy, multiplier, prices, bias = (cbc if engine == "cbc" else highs).solve(problem)
        response = arms.respond(each, multiplier if limit is None else prices, guess(bias))
    visits = occupancy[..., 0] + occupancy[..., 1]
    seen = visits > OCCUPIED
    return Plan(
        value=float(np.vdot(occupancy, problem.pay)),
        occupancy=occupancy,
        index=np.divide(occupancy[..., 1], visits, out=np.zeros(visits.shape), where=seen),
        advantage=response.advantage.T.copy(),
        multiplier=multiplier,
        start=np.concatenate([[multiplier], response.bias.T.ravel()]),
        engine=engine,
        prices=None if limit is None else prices,
    )


def _unpack(start: ArrayLike | None, n_states: int, n_arms: int) -> tuple[float | None, Floats]:
    """The multiplier and the bias [S, N] of a start."""
    if start is None:
        return None, np.zeros((n_states, n_arms))
    start = np.asarray(start, dtype=np.float64)
    size = 1 + n_arms * n_states
    if start.shape != (size,) or not np.isfinite(start).all() or start[0] < 0:
        raise PlanningError(
            f"start must come from a plan of {n_arms} arms with {n_states} states: {size} finite"
            " numbers, the first not negative"
        )
    return float(start[0]), start[1:].reshape(n_arms, n_states).T


def among_all(made: Plan, here: Numbers, n_arms: int) -> Plan:
    """The plan of the arms `here` as a plan of all arms: absent arms are never visited."""

    def whole(part: Floats) -> Floats:
        every = np.zeros((n_arms, *part.shape[1:]))
        every[here] = part
        return every

    biases = whole(made.start[1:].reshape(len(here), -1))
    return replace(
        made,
        occupancy=whole(made.occupancy),
        index=whole(made.index),
        advantage=whole(made.advantage),
        prices=None if made.prices is None else whole(made.prices),
        start=np.concatenate([made.start[:1], biases.ravel()]),
    )
