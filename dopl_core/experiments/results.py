"""A folder of results that grows while runs are played, and that a stopped sweep continues from.

episodes.csv    one row for each episode (COLUMNS); whole lines are appended about once a second, so
                it can be read at any time; when all runs are finished, the rows are sorted
sweep.json      the runs, so that a reader knows how many rows to expect
unfinished/     a checkpoint of each run, until all are finished

reward, oracle_reward, random_reward and regret are per epoch. cumulative_regret is the sum of
regret over episodes: multiplied by `epochs` it is the paper's.
"""

import csv
import io
import json
import math
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dopl_core.experiments.runs import Run

try:
    import fcntl
except ImportError:  # not on Windows, where nothing prevents two writers
    fcntl = None  # type: ignore[assignment]

_RUN = ["environment", "learner", "confidence", "engine", "seed"]
_REWARDS = ["reward", "oracle_reward", "random_reward", "regret", "cumulative_regret"]
_ERRORS = ["index_error", "f_error", "p_error", "r_error"]
COLUMNS = (*_RUN, "episode", "epochs", *_REWARDS, *_ERRORS, "seconds")
_KEY = len(_RUN)

State = dict[str, NDArray[Any]]
Row = tuple[int | float, ...]  # the columns after the key


def read(folder: str | Path) -> pd.DataFrame:
    """The rows written so far; safe while a sweep is running."""
    text = (Path(folder) / "episodes.csv").read_text(encoding="utf-8")
    return pd.read_csv(io.StringIO(text[: text.rfind("\n") + 1]))


def planned(folder: str | Path) -> list[Run]:
    """The runs of a folder."""
    return [Run(**run) for run in json.loads((Path(folder) / "sweep.json").read_text("utf-8"))]


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean rewards over the last tenth of each learner's episodes, and those of its references."""
    late = table[table.episode > 0.9 * table.groupby(list(COLUMNS[:_KEY])).episode.transform("max")]
    means = late.groupby(list(COLUMNS[: _KEY - 1]))[["reward", "oracle_reward", "random_reward"]]
    return means.mean()


class Results:
    """The only writer of a folder."""

    def __init__(self, folder: str | Path, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        self._keys = [run.key for run in runs]
        if len(set(self._keys)) < len(runs):
            raise ValueError("two runs are the same: name each environment once")
        self._folder = Path(folder)
        self._rows, self._checkpoints = self._folder / "episodes.csv", self._folder / "unfinished"
        self._saved: list[State | None] = [{} for _ in runs]  # None if a run is finished
        self.played = [0] * len(runs)
        self._open()

    def _open(self) -> None:
        """Begin, or continue where the same runs stopped."""
        plan = self._folder / "sweep.json"
        runs = [run.plain() for run in self.runs]
        if not plan.exists():
            if self._rows.exists():
                raise ValueError(f"{self._rows} exists already: choose another folder (--out)")
            self._checkpoints.mkdir(parents=True, exist_ok=True)
            _replace(plan, json.dumps(runs, indent=1) + "\n")
            self._lock = _lock(plan)
            self._write([])
            return
        known = json.loads(plan.read_text("utf-8"))
        if runs[: len(known)] != known:
            raise ValueError(f"{self._folder} has other runs: choose another folder (--out)")
        self._lock = _lock(plan)
        if not self._checkpoints.exists():
            for number, run in enumerate(self.runs[: len(known)]):
                self._saved[number], self.played[number] = None, run.episodes
        for path in self._checkpoints.glob("*.npz"):
            with np.load(path) as arrays:
                self._keep(int(path.stem), dict(arrays))
        if len(runs) > len(known):
            self._add_runs(plan, runs)
        if self._checkpoints.exists():
            # Rows after the last checkpoint are dropped: their episodes are played again.
            self._write(self._ordered())

    def _add_runs(self, plan: Path, runs: list[dict[str, Any]]) -> None:
        """Add runs; finished runs stay finished."""
        self._checkpoints.mkdir(exist_ok=True)
        for number, saved in enumerate(self._saved):
            if saved is None:
                np.savez(self._checkpoint(number), episode=self.played[number])
        _replace(plan, json.dumps(runs, indent=1) + "\n")
        self._lock.close()
        self._lock = _lock(plan)

    def waiting(self) -> list[tuple[int, State]]:
        """The unfinished runs: their numbers and checkpoints ({} to begin)."""
        return [(i, saved) for i, saved in enumerate(self._saved) if saved is not None]

    def add(self, number: int, rows: Iterable[Row], saved: State) -> None:
        """Append new rows of a run, then write its checkpoint."""
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(
            (*self._keys[number], *("" if math.isnan(x) else x for x in row)) for row in rows
        )
        with self._rows.open("a", encoding="utf-8") as file:
            file.write(lines.getvalue())
        path = self._checkpoint(number)
        with path.with_suffix(".new").open("wb") as file:
            np.savez(file, **saved)  # type: ignore[arg-type]
        os.replace(path.with_suffix(".new"), path)
        self._keep(number, saved)

    def finish(self) -> None:
        """Sort all rows and delete the checkpoints."""
        if self._checkpoints.exists():
            self._write(self._ordered())
            done = self._checkpoints.rename(self._folder / "finished")  # atomic
            shutil.rmtree(done)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def _keep(self, number: int, saved: State) -> None:
        self.played[number] = int(saved["episode"])
        done = self.played[number] >= self.runs[number].episodes
        self._saved[number] = None if done else saved

    def _checkpoint(self, number: int) -> Path:
        return self._checkpoints / f"{number}.npz"

    def _ordered(self) -> list[list[str]]:
        """The rows of all runs up to their checkpoints, sorted by run."""
        of_run: dict[tuple[str, ...], dict[int, list[str]]] = {key: {} for key in self._keys}
        if not self._rows.exists():
            return []
        with self._rows.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if len(row) == len(COLUMNS) and row != list(COLUMNS):
                    of_run[tuple(row[:_KEY])].setdefault(int(row[_KEY]), row)
        return [
            of_run[key][episode]
            for key, played in zip(self._keys, self.played, strict=True)
            for episode in range(1, played + 1)
        ]

    def _write(self, rows: list[list[str]]) -> None:
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows([list(COLUMNS), *rows])
        _replace(self._rows, lines.getvalue())


def _lock(path: Path) -> IO[str]:
    """Lock out a second writer until this file is closed or this process ends."""
    file = path.open(encoding="utf-8")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise ValueError(f"{path.parent} is in use by another process") from None
    return file


def _replace(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees the old one or the new one."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)
