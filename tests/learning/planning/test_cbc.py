import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pulp
import pytest
from drawn import ordinary

from dopl_core.learning.planning import PlanningError, cbc, model, plan
from dopl_core.learning.planning.problem import pose


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go, PuLP's too."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_plans_made_at_once_do_not_mix_and_leave_no_files(folder):
    problems = [ordinary(np.random.default_rng(seed), 6) for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda drawn: plan(*drawn.arguments()).value, problems))
    one_by_one = [plan(*drawn.arguments(), engine="highs").value for drawn in problems]
    assert at_once == pytest.approx(one_by_one, abs=1e-6)
    assert not list(folder.iterdir())


def test_nothing_is_printed(capfd, recwarn):
    plan(*ordinary(np.random.default_rng(0), 3).arguments())
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_a_program_without_solution_raises_its_status(folder, monkeypatch):
    def impossible(problem):
        whole = model.elp(problem)
        limit = whole.limit.copy()
        limit[-1] = -1.0  # less than no actions
        return replace(whole, limit=limit)

    monkeypatch.setattr(cbc, "elp", impossible)
    with pytest.raises(PlanningError, match="status is Infeasible"):
        plan(*ordinary(np.random.default_rng(0), 3).arguments())
    assert not list(folder.iterdir())


@pytest.mark.parametrize("script", [None, "exit 1", "exit 0"])
def test_a_solver_that_does_not_run_raises_and_leaves_no_files(
    script, folder, tmp_path, monkeypatch
):
    path = tmp_path / "cbc"
    if script is not None:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setattr(cbc, "bundled_cbc", lambda: pulp.COIN_CMD(path=str(path), msg=False))
    with pytest.raises(PlanningError, match="CBC could not be run"):
        plan(*ordinary(np.random.default_rng(0), 3).arguments())
    assert not list(folder.iterdir())


def test_the_file_says_what_the_matrix_says(tmp_path):
    drawn = ordinary(np.random.default_rng(0), 4, 3, 0.3)
    matrix = model.elp(pose(*drawn.arguments(), "all"))
    cbc.Program(matrix).writeMPS(str(tmp_path / "elp.mps"))
    variables, program = pulp.LpProblem.fromMPS(str(tmp_path / "elp.mps"), sense=pulp.LpMaximize)
    x = np.random.default_rng(1).uniform(size=matrix.gain.size)
    for i, value in enumerate(x):
        variables[f"X{i:07d}"].varValue = value
    assert program.objective.value() == pytest.approx(matrix.gain @ x)
    for i, row in enumerate(matrix.rows @ x - matrix.limit):
        assert program.get_constraint_by_name(f"R{i:07d}").value() == pytest.approx(row)
