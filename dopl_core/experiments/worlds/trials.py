"""Worlds made of trials, `trial:NAME`: 20 people, help for 6, who move as people in a trial did.

Read at run time from moves.csv in the folder DOPL_TRIALS: columns trial, time, helped, state (0 is
the worst), next_state and people. The first time of a trial counts, as one week. A name is the
text before a bracket, with underscores: `trial:job_loss` is "job loss (workshop)".
"""

import csv
import os
from pathlib import Path

import numpy as np

from dopl_core.experiments.worlds.chains import WEEKS, scattered
from dopl_core.experiments.worlds.drawn import Drawn
from dopl_core.learning.bandit import Bandit, FloatArray

PREFIX = "trial:"
FOLDER = "DOPL_TRIALS"
ARMS, BUDGET = 20, 6
SMOOTHING = 0.5  # moves added to each entry of a row
_NUMBERS = ("helped", "state", "next_state", "people")


def trial(name: str, seed: int) -> Drawn:
    """The rows of a trial, and everybody's own rows about them, worth 20 moves."""
    rng = np.random.default_rng([seed, *name.encode()])
    moves = scattered(trial_rows(name), ARMS, rng)
    values = np.tile(np.linspace(0, 1, moves.shape[1]), (ARMS, 1))
    return Drawn(Bandit(moves, values, BUDGET, name=name, episodes=WEEKS, horizon=1))


def trial_rows(name: str) -> FloatArray:
    """Rows [S, A, S'] of a trial: the shares of those who moved, smoothed by half a move."""
    found = _tables(_file(name))
    if name not in found:
        raise ValueError(f"{name} is not one of {', '.join(found)} of {FOLDER}")
    smoothed = found[name] + SMOOTHING
    return np.asarray(smoothed / smoothed.sum(axis=2, keepdims=True))


def trial_names() -> list[str]:
    """The worlds that the folder DOPL_TRIALS offers."""
    return list(_tables(_file(PREFIX + "NAME")))


def _file(name: str) -> Path:
    folder = os.environ.get(FOLDER, "")
    file = Path(folder) / "moves.csv"
    if not folder or not file.is_file():
        trouble = f"{folder} has none" if folder else "it is not set"
        raise ValueError(f"{name} is read from moves.csv: set {FOLDER} to its folder ({trouble})")
    return file


def _tables(file: Path) -> dict[str, FloatArray]:
    """Moves [S, A, S'] of each trial at its first time, by the name of its world."""
    moves: dict[str, list[tuple[int, ...]]] = {}
    first: dict[str, str] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        for column in ("trial", "time", *_NUMBERS):
            if column not in (rows.fieldnames or ()):
                raise ValueError(f"{file} has no column {column}")
        for number, row in enumerate(rows, start=2):
            name = PREFIX + row["trial"].partition(" (")[0].replace(" ", "_")
            if first.setdefault(name, row["time"]) == row["time"]:
                entry = tuple(_number(row, column, f"{file} row {number}") for column in _NUMBERS)
                moves.setdefault(name, []).append(entry)
    return {name: _table(entries) for name, entries in moves.items()}


def _number(row: dict[str, str], column: str, place: str) -> int:
    text = row[column] or ""
    if not text.isdecimal() or (column == "helped" and text not in ("0", "1")):
        wanted = "0 or 1" if column == "helped" else "a whole number"
        raise ValueError(f'{place}: {column} "{text}" is not {wanted}')
    return int(text)


def _table(entries: list[tuple[int, ...]]) -> FloatArray:
    states = 1 + max(max(state, then) for _, state, then, _ in entries)
    table = np.zeros((states, 2, states))
    for helped, state, then, people in entries:
        table[state, helped, then] += people
    return table
