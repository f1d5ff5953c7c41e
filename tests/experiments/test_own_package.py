"""A learner in a package of its own, installed in a temporary folder, is found everywhere."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dopl_core import cli, simulate
from dopl_core.experiments import background, learners

pytestmark = pytest.mark.long

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "losing"
version = "1.0"

[project.entry-points."dopl.learners"]
losers_first = "losing.first:LosersFirst"
"""
CODE = """
from dopl_core import Learner
from dopl_core.experiments.baselines import index_plan


class LosersFirst(Learner):
    def make_plan(self):
        wins = self.counts.wins()
        return index_plan((wins.T - wins).sum(axis=1).reshape(self.n_arms, self.n_states))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed in."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    (source / "losing").mkdir()
    (source / "losing" / "__init__.py").write_text("")
    (source / "losing" / "first.py").write_text(CODE)
    (source / "pyproject.toml").write_text(PROJECT)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    alone = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *alone, str(source)], check=True)
    return target


@pytest.fixture
def here(installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The package can be imported, here and in new processes."""
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), *sys.path]))
    monkeypatch.setenv("DOPL_RUNS", str(tmp_path / "runs"))
    return tmp_path


@pytest.mark.parametrize("name", ["losers_first", "losing.first:LosersFirst"])
def test_simulate_plays_a_learner_of_an_installed_package(here: Path, name: str) -> None:
    table = simulate(name, "cpap", episodes=2, horizon=3, seeds=2, jobs=2)
    assert set(table.learner) == {name}
    assert len(table) == 4


def test_the_simulate_page_offers_it_and_runs_it(here: Path) -> None:
    assert learners.names()[-1] == "losers_first"
    assert learners.label("losers_first") == "losers_first"
    own = ("losers_first", "losing.first:LosersFirst")
    run = background.start(background.Settings("cpap", own, "calibrated", 2, 3, 1))
    started = background.find(run)
    while started.status == "running":
        time.sleep(0.1)
        started = background.find(run)
    assert started.status == "finished", started.trouble
    assert set(started.rows().learner) == set(own)
    assert background.picture(started).startswith(b"\x89PNG")


def test_the_arena_plays_it(here: Path) -> None:
    places = ["--environments", "cpap", "--starts", "nothing", "--out", str(here / "arena")]
    sizes = ["--episodes", "2", "--seeds", "1", "--jobs", "1"]
    cli.main(["arena", "losers_first", "losing.first:LosersFirst", *places, *sizes])
    table = pd.read_csv(here / "arena" / "table.csv")
    assert list(table.learner) == ["losers_first", "losing.first:LosersFirst"]
    assert (table.difference == 0).all()


def test_the_command_checks_a_learner_of_the_present_folder(here: Path) -> None:
    (here / "mine.py").write_text(CODE)
    command = [sys.executable, "-m", "dopl_core.cli", "check", "mine:LosersFirst"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" ok ") == 7
