import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dopl_core import cli, environments
from dopl_core.experiments import sweep
from dopl_core.experiments.results import COLUMNS
from dopl_core.experiments.runs import Run

PARTS = {"episodes": 5, "horizon": 8, "confidence": "paper", "engine": "highs"}


def runs(**changes: object) -> list[sweep.Run]:
    learners = ["dopl", "oracle", "random", "mle_wibql"]
    return sweep.grid(["cpap", "app_marketing"], learners, range(2), **{**PARTS, **changes})


def same(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    """The same numbers to the bit in the same order, whatever the clock said."""
    return a.drop(columns="seconds").equals(b.drop(columns="seconds"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """All runs played in one go by one process."""
    return sweep.run(runs(), tmp_path_factory.mktemp("whole"))


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """An episode at a time, as slow runs are played."""
    monkeypatch.setattr(sweep, "_SLICE", 0.0)


def test_each_episode_is_a_row_with_the_columns_of_the_design(whole: pd.DataFrame) -> None:
    assert tuple(whole.columns) == COLUMNS
    assert len(whole) == 2 * 4 * 2 * 5
    for _, rows in whole.groupby(["environment", "learner", "seed"]):
        assert rows.episode.tolist() == [1, 2, 3, 4, 5]
        assert (rows.epochs == 8).all()
        less = (rows.oracle_reward - rows.reward).tolist()
        assert rows.regret.tolist() == pytest.approx(less, abs=1e-14)  # pandas 2 reads no last bits
        assert rows.cumulative_regret.tolist() == pytest.approx(rows.regret.cumsum().tolist())
        assert (rows.seconds > 0).all()


def test_every_learner_of_a_seed_meets_the_same_references(whole: pd.DataFrame) -> None:
    place = whole.groupby(["environment", "seed", "episode"])
    assert (place[["oracle_reward", "random_reward"]].nunique() == 1).all(axis=None)
    chance = whole[whole.learner == "random"]
    assert (chance.reward == chance.random_reward).all()


def test_the_oracle_with_the_papers_ties_has_no_regret(tmp_path: Path) -> None:
    settings = {"episodes": 3, "horizon": 20, "ties": "paper"}
    table = sweep.run(sweep.grid(["armman"], ["oracle"], range(2), **settings), tmp_path)
    assert (table.regret == 0).all()


def test_two_processes_give_the_same_rows_as_one(
    whole: pd.DataFrame, tmp_path: Path, slices: None
) -> None:
    assert same(whole, sweep.run(runs(), tmp_path, jobs=2))


def test_an_interrupted_sweep_continues_where_it_stopped(
    whole: pd.DataFrame, tmp_path: Path, slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, count = sweep.Results.add, 0

    def stop_sometimes(*args: object) -> None:
        nonlocal count
        count += 1
        if count in (7, 30, 31, 60):
            raise KeyboardInterrupt
        add(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(sweep.Results, "add", stop_sometimes)
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            sweep.run(runs(), tmp_path)
        rows = len(sweep.read(tmp_path))
        # Killed while writing: rows without a checkpoint, and half a line.
        with (tmp_path / "episodes.csv").open("a") as file:
            file.write("cpap,dopl,paper,highs,0,5,8,1,1,1,0,0,,,,,1\ncpap,dopl,paper,hi")
        assert len(sweep.read(tmp_path)) == rows + 1
    assert same(whole, sweep.run(runs(), tmp_path))
    assert count == len(whole) + 4  # nothing was played twice but what was lost
    assert sorted(p.name for p in tmp_path.iterdir()) == ["episodes.csv", "sweep.json"]


def test_a_finished_folder_is_only_read(tmp_path: Path) -> None:
    few = runs()[:2]
    table = sweep.run(few, tmp_path)
    assert table.equals(sweep.run(few, tmp_path))  # the clock's column included
    assert sweep.planned(tmp_path) == few


def test_runs_can_be_added_to_a_folder_and_finished_rows_stay(
    tmp_path: Path, whole: pd.DataFrame
) -> None:
    few = runs()[:3]
    before = sweep.run(few, tmp_path)
    after = sweep.run(runs(), tmp_path)
    assert same(after, whole)
    # Their wall times are those of the first run: they were not played again.
    assert (after.seconds[: len(before)] == before.seconds).all()


def test_other_runs_do_not_go_into_the_same_folder(tmp_path: Path) -> None:
    sweep.run(runs()[:1], tmp_path)
    before = (tmp_path / "episodes.csv").read_bytes()
    with pytest.raises(ValueError, match="--out"):
        sweep.run(runs()[1:2], tmp_path)
    assert (tmp_path / "episodes.csv").read_bytes() == before


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    first = sweep.Results(tmp_path, runs())
    with pytest.raises(ValueError, match="another process"):
        sweep.run(runs(), tmp_path)
    first.close()
    assert len(sweep.run(runs()[:1], tmp_path / "other")) == 5


@pytest.mark.long
def test_another_process_reads_whole_rows_while_they_are_written(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dopl_core.cli", "simulate", "cpap", "--confidence", "paper"]
    command += ["--horizon", "50", "--episodes", "2000", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        seen = []
        until = time.monotonic() + 300  # the first start after an install compiles all modules
        while len(set(seen)) < 4 and process.poll() is None and time.monotonic() < until:
            if (tmp_path / "episodes.csv").exists():
                table = pd.read_csv(tmp_path / "episodes.csv")
                assert tuple(table.columns) == COLUMNS
                seen.append(len(table))
            time.sleep(0.2)
    finally:
        process.terminate()
        process.wait(30)
    assert len(set(seen)) >= 4
    assert seen == sorted(seen)
    assert json.loads((tmp_path / "sweep.json").read_text())[0]["episodes"] == 2000


def test_rows_can_be_read_while_they_are_written(
    tmp_path: Path, slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, seen = sweep.Results.add, []

    def add_then_read(*args: object) -> None:
        add(*args)  # type: ignore[arg-type]
        table = pd.read_csv(tmp_path / "episodes.csv")
        assert tuple(table.columns) == COLUMNS
        seen.append(len(table))
        assert json.loads((tmp_path / "sweep.json").read_text())[0]["episodes"] == 5

    monkeypatch.setattr(sweep.Results, "add", add_then_read)
    few = sweep.grid(["cpap"], ["dopl", "random"], range(2), **PARTS)
    assert len(sweep.run(few, tmp_path)) == 20
    assert seen == list(range(1, 21))


@pytest.mark.long
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_rows(
    whole: pd.DataFrame, tmp_path: Path, slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    add, count = sweep.Results.add, 0
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        victim = next(iter(cluster.workers.values())).pid

        def kill_half_way(*args: object) -> None:
            nonlocal count
            count += 1
            if count == len(whole) // 2:
                os.kill(victim, signal.SIGKILL)
            add(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(sweep.Results, "add", kill_half_way)
        table = sweep.run(runs(), tmp_path, dask=cluster.scheduler_address)
    assert count == len(whole)
    assert same(whole, table)


def test_simulate_writes_the_requested_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "simulate cpap armman --learner random mle_qwic --episodes 3 --horizon 4 --seeds 2"
    cli.main([*words.split(), "--memory", "episode", "--restart", "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "episodes.csv")
    assert len(table) == 2 * 2 * 2 * 3
    assert set(table.environment) == {"cpap", "armman"}
    assert "24 episodes" in capsys.readouterr().out
    assert all(run.restart and run.memory == "episode" for run in sweep.planned(tmp_path))


def test_episodes_and_horizon_are_the_environments_own_by_default() -> None:
    (run,) = sweep.grid(["armman"], ["dopl"], [0])
    assert (run.episodes, run.horizon) == (20_000, 5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("simulate nowhere", "nowhere"),
        ("simulate cpap --learner dopl genius", "genius"),
        ("simulate cpap --confidence sure", "sure"),
        ("simulate cpap --engine steam", "steam"),
        ("simulate cpap --episodes 0", "episodes"),
        ("simulate cpap --horizon 0", "horizon"),
        ("simulate cpap --temperature 0 --episodes 1", "temperature"),
        ("simulate cpap --seeds 0", "seeds"),
        ("simulate cpap --jobs 0", "jobs"),
        ("simulate cpap cpap --episodes 1", "once"),
    ],
)
def test_invalid_options_are_refused_before_anything_is_written(
    tmp_path: Path, words: str, said: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match=said):
        cli.main([*words.split(), "--out", str(out)])
    assert not out.exists()


def test_a_learner_is_told_the_columns_unless_they_are_held_back(tmp_path) -> None:
    cpap = (environments.FOLDER / "cpap.toml").read_text(encoding="utf-8")
    file = tmp_path / "columns.toml"
    kinds = cpap.replace('name = "General"', 'name = "General"\ncolumns = { risk = "low" }')
    file.write_text(kinds.replace('name = "High-risk"', 'name = "H"\ncolumns = { risk = "high" }'))
    told, held = (
        run.make_learner(run.bandit())
        for run in (
            Run(str(file), "dopl", 0, episodes=1, horizon=1, columns=columns)
            for columns in (True, False)
        )
    )
    assert told.columns.names == ("risk",)
    assert held.columns is None
