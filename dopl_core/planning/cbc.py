"""The extended LP solved by CBC, through PuLP."""

from __future__ import annotations

import tempfile

import numpy as np
import pulp

from dopl_core.planning.model import elp
from dopl_core.planning.problem import Floats, PlanningError, Problem


def solve(problem: Problem) -> tuple[Floats, float]:
    """The optimal occupancy [N, S, A] and the multiplier of the budget."""
    model = elp(problem)
    program = pulp.LpProblem("elp", pulp.LpMaximize)
    variables = [program.add_variable(f"x{i:07d}", 0) for i in range(model.gain.size)]
    program.setObjective(pulp.LpAffineExpression(zip(variables, model.gain.tolist(), strict=True)))
    start, column, value = (
        x.tolist() for x in (model.rows.indptr, model.rows.indices, model.rows.data)
    )
    limit = model.limit.tolist()
    for i in range(len(limit)):
        terms = slice(start[i], start[i + 1])
        sense = pulp.LpConstraintEQ if i < model.n_equal else pulp.LpConstraintLE
        row = pulp.LpAffineExpression(
            [(variables[j], v) for j, v in zip(column[terms], value[terms], strict=True)]
        )
        program.addConstraint(pulp.LpConstraint(row, sense, f"c{i:07d}", limit[i]))
    with tempfile.TemporaryDirectory() as folder:
        solver = cbc()
        solver.tmpDir = folder
        try:
            status = program.solve(solver)
        except pulp.PulpSolverError as error:
            raise PlanningError(f"CBC failed: {error}") from error
    if status != pulp.LpStatusOptimal:
        raise PlanningError(f"CBC did not find an optimal plan: {pulp.LpStatus[status]}")
    x = np.array([v.varValue for v in variables[: problem.pay.size]])
    occupancy = np.maximum(x, 0.0).reshape(problem.pay.shape)
    return occupancy, max(0.0, program.get_constraint_by_name(f"c{len(limit) - 1:07d}").pi)


def cbc() -> pulp.LpSolver:
    """The only place that names a CBC class: PuLP 4.0 no longer bundles one."""
    return pulp.COIN_CMD(path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False)
