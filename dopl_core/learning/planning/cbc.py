"""The extended LP solved by CBC, through PuLP."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pulp

from dopl_core.learning.planning.model import Model, elp
from dopl_core.learning.planning.problem import Floats, PlanningError, Problem


def solve(problem: Problem) -> tuple[Floats, float, Floats, Floats]:
    """The optimal occupancy [N, S, A], the multiplier, the prices [N], and the bias [S, N]."""
    model = elp(problem)
    program = Program(model)
    with TemporaryDirectory(prefix="dopl-") as folder:
        solver = bundled_cbc()
        solver.tmpDir = folder  # deleted afterwards, even if CBC fails
        try:
            status = program.solve(solver)
        except pulp.PulpSolverError as error:
            raise PlanningError(f"CBC could not be run: {error}") from error
    if status != pulp.LpStatusOptimal:
        raise PlanningError(f"CBC found no optimal plan: its status is {pulp.LpStatus[status]}")
    occupancy = np.maximum(program.values[: problem.pay.size], 0.0).reshape(problem.pay.shape)
    return occupancy, *model.prices(program.duals[model.n_equal :]), model.bias(program.duals)


def bundled_cbc() -> pulp.LpSolver:
    """The CBC solver that PuLP bundles. Only this line names its class: PuLP 4.0 changes it."""
    return pulp.COIN_CMD(path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False)


class Program(pulp.LpProblem):
    """A PuLP problem whose coefficients are one sparse matrix instead of one object each.

    With objects PuLP took longer to write the problem than CBC to solve it. So this class
    implements the two things that PuLP's solvers need: writing the problem, reading the solution.
    """

    def __init__(self, model: Model) -> None:
        super().__init__("elp", pulp.LpMaximize)
        self.model = model
        self.values = np.zeros(model.gain.size)
        self.duals = np.zeros(model.limit.size)

    def writeMPS(self, filename: str, *_: Any, **__: Any) -> tuple[Any, ...]:  # noqa: N802
        """Write the problem; return the names of variables and rows in the file."""
        model, terms = self.model, self.model.rows.tocoo()
        columns = [f"X{i:07d}" for i in range(model.gain.size)]
        rows = [f"R{i:07d}" for i in range(model.limit.size)]
        paying = np.flatnonzero(model.gain)
        column = np.concatenate([terms.col, paying])
        row = np.concatenate([terms.row, np.full(paying.size, len(rows))])
        value = np.concatenate([terms.data, model.gain[paying]])
        order = column.argsort(kind="stable")  # MPS needs the terms of a column together
        entries = zip(*(x[order].tolist() for x in (column, row, value)), strict=True)
        names = [*rows, "OBJ"]
        with open(filename, "w") as file:
            file.write("NAME elp\nROWS\n N  OBJ\n")
            file.writelines(f" E  {name}\n" for name in rows[: model.n_equal])
            file.writelines(f" L  {name}\n" for name in rows[model.n_equal :])
            file.write("COLUMNS\n")
            file.writelines(f" {columns[j]} {names[i]} {x!r}\n" for j, i, x in entries)
            file.write("RHS\n")
            limits = zip(rows, model.limit.tolist(), strict=True)
            file.writelines(f" RHS {name} {limit!r}\n" for name, limit in limits if limit)
            file.write("ENDATA\n")
        return [], dict(enumerate(columns)), dict(enumerate(rows)), "OBJ"

    def assignVarsVals(self, values: dict[int, float]) -> None:  # noqa: N802
        self.values[list(values)] = list(values.values())

    def assignConsPi(self, values: dict[int, float]) -> None:  # noqa: N802
        self.duals[list(values)] = list(values.values())

    def assignVarsDj(self, values: dict[int, float]) -> None:  # noqa: N802
        """Reduced costs are of no use here."""

    def assignConsSlack(self, values: dict[int, float], activity: bool = False) -> None:  # noqa: N802
        """Nor is the slack of rows."""
