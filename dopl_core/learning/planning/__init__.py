"""The best way to share a budget among arms whose transitions are known up to a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dopl_core.learning.planning import arms, cbc, highs, lagrangian
from dopl_core.learning.planning.chains import guess
from dopl_core.learning.planning.problem import Floats, Pays, PlanningError, pose

__all__ = ["ENGINES", "Engine", "Plan", "PlanningError", "plan"]

Engine = Literal["cbc", "highs", "lagrangian"]
ENGINES: tuple[Engine, ...] = ("cbc", "highs", "lagrangian")

OCCUPIED = 1e-9  # less occupancy than this is a solver's rounding


@dataclass(frozen=True)
class Plan:
    """An optimal solution of the extended LP, and what its duals say.

    value: average pay per epoch of all arms together
    occupancy: [N, S, A] long-run share of epochs in state s with action a; sums to 1 for each arm
    index: [N, S] share of the visits to a state that act; 0 in states never visited (errata 12)
    advantage: [N, S] gain of acting over waiting at the multiplier, states never visited included
    multiplier: what one more unit of budget is worth per epoch
    start: [1 + N*S] multiplier and biases, to start the next plan of the same bandit from
    """

    value: float
    occupancy: Floats
    index: Floats
    advantage: Floats
    multiplier: float
    start: Floats
    engine: Engine


def plan(
    reward: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    budget: float,
    *,
    engine: Engine = "cbc",
    pays: Pays = "all",
    start: ArrayLike | None = None,
) -> Plan:
    """Solve the extended LP (paper, appendix C.1) for reward [N, S] and boxes [N, S, A, S].

    reward may also differ between waiting and acting: [N, S, A].

    start, taken from an earlier plan of the same bandit, makes the lagrangian engine faster.
    """
    if engine not in ENGINES:
        raise PlanningError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    problem = pose(reward, low, high, budget, pays)
    each = arms.of(problem)
    multiplier, bias = _unpack(start, *each.pay.shape[1:])
    if engine == "lagrangian":
        occupancy, multiplier, response = lagrangian.solve(each, problem.budget, multiplier, bias)
    else:
        occupancy, multiplier, bias = (cbc if engine == "cbc" else highs).solve(problem)
        response = arms.respond(each, multiplier, guess(bias))
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
    )


def _unpack(start: ArrayLike | None, n_states: int, n_arms: int) -> tuple[float | None, Floats]:
    """The multiplier and the bias [S, N] that a start holds."""
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
