"""The extended LP solved in process by HiGHS, through scipy."""

from __future__ import annotations

from scipy.optimize import linprog

from dopl_core.planning.model import elp
from dopl_core.planning.problem import Floats, PlanningError, Problem


def solve(problem: Problem) -> tuple[Floats, float]:
    """The optimal occupancy [N, S, A] and the multiplier of the budget."""
    model = elp(problem)
    n_equal = model.n_equal
    answer = linprog(
        -model.gain,
        A_ub=model.rows[n_equal:],
        b_ub=model.limit[n_equal:],
        A_eq=model.rows[:n_equal],
        b_eq=model.limit[:n_equal],
        method="highs",
    )
    if answer.status != 0:
        raise PlanningError(f"HiGHS did not find an optimal plan: {answer.message}")
    return answer.x[: problem.pay.size].reshape(problem.pay.shape), -answer.ineqlin.marginals[-1]
