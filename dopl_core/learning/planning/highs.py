"""The extended LP solved in process by HiGHS, through scipy."""

from __future__ import annotations

import numpy as np

from dopl_core.learning.planning.model import elp
from dopl_core.learning.planning.problem import Floats, PlanningError, Problem


def solve(problem: Problem) -> tuple[Floats, float, Floats, Floats]:
    """The optimal occupancy [N, S, A], the multiplier, the prices [N], and the bias [S, N]."""
    from scipy.optimize import linprog  # slow to import

    model = elp(problem)
    n_equal = model.n_equal
    answer = linprog(
        -model.gain,
        A_ub=model.rows[n_equal:],
        b_ub=model.limit[n_equal:],
        A_eq=model.rows[:n_equal],
        b_eq=model.limit[:n_equal],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if answer.status != 0:
        raise PlanningError(f"HiGHS did not find an optimal plan: {answer.message}")
    occupancy = np.maximum(answer.x[: problem.pay.size], 0.0).reshape(problem.pay.shape)
    return occupancy, *model.prices(-answer.ineqlin.marginals), model.bias(-answer.eqlin.marginals)
