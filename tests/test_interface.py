"""What researchers import from dopl_core."""

import contextlib
import doctest
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dopl_core
from dopl_core import Dopl, Learner, SimulatedWorld, load_environment, plan, simulate, strengths
from dopl_core.experiments.baselines import Random
from dopl_core.experiments.results import COLUMNS
from dopl_core.learning.bandit import Bandit

NOTEBOOK = Path(__file__).resolve().parents[1] / "data" / "guides" / "first_steps.ipynb"


def run(code: str) -> str:
    """What Python prints in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_every_public_name_can_be_imported() -> None:
    for name in dopl_core.__all__:
        assert getattr(dopl_core, name) is not None
        assert name in (dopl_core.__doc__ or "")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = dopl_core.nothing


def test_simulate_returns_a_row_for_each_episode_with_the_columns_of_the_design() -> None:
    table = simulate("dopl", "cpap", episodes=2, horizon=3, seeds=2, confidence="paper")
    assert tuple(table.columns) == COLUMNS
    assert table[["seed", "episode"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert (table.epochs == 3).all()
    assert set(table.confidence) == {"paper"}


def test_simulate_refuses_an_unknown_learner() -> None:
    with pytest.raises(ValueError, match="not one of oracle, dopl"):
        simulate("magic", "cpap", episodes=1, horizon=1, seeds=1)


def test_a_learner_is_a_name_a_class_or_a_factory_and_plays_the_same() -> None:
    def factory(bandit: Bandit, *, horizon: int, seed: int) -> Learner:
        return Random(bandit.n_arms, bandit.n_states, bandit.budget, horizon=horizon, seed=seed)

    given = {"random": "random", "Random": Random, "factory": factory}
    tables = {
        name: simulate(learner, "cpap", episodes=2, horizon=3, seeds=2)
        for name, learner in given.items()
    }
    for name, table in tables.items():
        assert set(table.learner) == {name}
        same = ["seed", "episode", "reward", "oracle_reward", "cumulative_regret"]
        assert table[same].equals(tables["random"][same])


def test_a_class_is_told_the_settings_that_it_names() -> None:
    class Own(Dopl):
        pass

    settings = {"episodes": 2, "horizon": 3, "seeds": 1, "confidence": "paper", "engine": "highs"}
    table = simulate(Own, "cpap", **settings)
    assert set(table.confidence) == {"paper"}
    assert set(table.engine) == {"highs"}


@pytest.mark.parametrize(
    "wrong", [3, int, lambda bandit, **_: bandit], ids=["number", "type", "factory"]
)
def test_simulate_refuses_what_is_no_learner(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"Learner|is not a name, a class or a factory"):
        simulate(wrong, "cpap", episodes=1, horizon=1, seeds=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", dopl_core.__all__)
def test_every_public_name_has_a_numpydoc_docstring_whose_example_runs(name: str) -> None:
    thing = getattr(dopl_core, name)
    text = thing.__doc__
    assert re.search(r"\n +Parameters\n +-{10}\n", text)
    assert "shape" in text
    names = dict(vars(sys.modules[thing.__module__]))
    [example] = doctest.DocTestFinder(recurse=False).find(thing, name, globs=names)
    assert example.examples
    said = io.StringIO()
    assert doctest.DocTestRunner().run(example, out=said.write).failed == 0, said.getvalue()


def test_the_notebook_is_valid_and_its_cells_run_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    said, names = io.StringIO(), {"__name__": "notebook"}
    with contextlib.redirect_stdout(said):
        for cell in book["cells"]:
            keys = {"cell_type", "id", "metadata", "source"}
            if cell["cell_type"] == "code":
                assert cell.keys() == keys | {"execution_count", "outputs"}
                exec("".join(cell["source"]), names)  # noqa: S102
            else:
                assert cell["cell_type"] == "markdown"
                assert cell.keys() == keys
    assert "a week more than random help" in said.getvalue()
    assert "arm 3: -" in said.getvalue()


def test_the_other_names_work_together() -> None:
    bandit = load_environment("cpap")
    learner = Dopl(bandit.n_arms, bandit.n_states, bandit.budget, horizon=1)
    assert isinstance(learner, Learner)
    world = SimulatedWorld(bandit, seed=0)
    learner.replan()
    arms = learner.activate(world.states, 0)
    assert len(arms) == bandit.budget
    P = bandit.transitions
    best = plan(bandit.rewards, P, P, bandit.budget, engine="lagrangian")
    assert best.value == pytest.approx(15.9004, abs=1e-4)
    mean, sd = strengths(np.array([0, 0, 1]), np.array([1, 2, 2]), n_arms=3)
    assert mean.ravel().argsort().tolist() == [2, 1, 0]
    assert (sd > 0).all()


def test_importing_the_package_is_cheap_and_sets_the_threads_before_numpy() -> None:
    code = "import dopl_core, os, sys; print('numpy' in sys.modules, os.environ['OMP_NUM_THREADS'])"
    assert run(code) == "False 1"


def test_a_command_imports_nothing_that_takes_long_and_is_seldom_needed() -> None:
    loaded = run("import dopl_core.cli as cli, sys; cli.parser(); print(*sys.modules)").split()
    assert {"scipy.stats", "matplotlib", "streamlit", "pandas", "alembic"}.isdisjoint(loaded)
