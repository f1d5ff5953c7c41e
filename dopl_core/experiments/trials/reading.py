"""Reads trials from CSV files: records of everybody, or counts of moves.

    history.csv   id, when, state, helped     a record; helped is 1 if help followed it, else 0
    roster.csv    id, and columns that were known at the start
    states.csv    state                       the states from worst to best
    moves.csv     trial, time, helped, state, next_state, people

A folder may hold several trials: NAME_history.csv, NAME_roster.csv, NAME_states.csv. moves.csv has
counts of the moves of randomised trials; its states are numbers from 0, the worst.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dopl_core.experiments.trials.trial import Trial, in_waves
from dopl_core.learning import columns as columns_of
from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.learning.columns import Columns

RECORDS = ("id", "when", "state", "helped")
COUNTS = ("trial", "time", "helped", "state", "next_state", "people")
MOST_CELLS = 10_000_000  # people times steps

_SERIES = re.compile(r"(.*?)[ _.-]?\d+")  # of columns: urine_1, urine_2
_DAY = 86_400.0  # seconds

Source: TypeAlias = Path | bytes | pd.DataFrame


class _Row(NamedTuple):
    """A row of a file; where: its place, for errors."""

    where: str
    cells: dict[str, str]


class _Record(NamedTuple):
    """A record of a person, checked."""

    person: str
    moment: float
    state: str
    helped: int


def read_folder(
    folder: Path,
    *,
    states: Sequence[str] = (),
    randomised: Callable[[str], bool] = lambda name: False,
) -> list[Trial]:
    """All trials of a folder.

    states: from worst to best, of histories without a states.csv
    randomised: whether help was drawn at random, given a trial's name
    """
    found = []
    for path in sorted([*folder.glob("history.csv"), *folder.glob("*_history.csv")]):
        stem = path.name.removesuffix("history.csv")
        name = stem.rstrip("_") or folder.resolve().name
        roster, order = folder / f"{stem}roster.csv", folder / f"{stem}states.csv"
        labels = read_states(order) if order.exists() else states
        known = roster if roster.exists() else None
        found.append(
            read_history(path, known, name=name, states=labels, randomised=randomised(name))
        )
    if (counts := folder / "moves.csv").exists():
        found += read_moves(counts)
    if not found:
        raise ValueError(
            f"{folder}: no trial; history.csv or NAME_history.csv needed, with the columns"
            f" {', '.join(RECORDS)}, or moves.csv"
        )
    return found


def read_history(
    history: Source,
    roster: Source | None = None,
    *,
    name: str = "history",
    states: Sequence[str] = (),
    randomised: bool = False,
) -> Trial:
    """A trial from records of everybody.

    states: from worst to best. Numbers need none; other states without them have no order.
    """
    rows = _rows(history, "history.csv", RECORDS)
    records = [_record(row) for row in rows]
    _check_once(rows, records)
    labels, ordered = _labels(rows, states)
    people = {person: at for at, person in enumerate(dict.fromkeys(one.person for one in records))}
    given, acted = _in_steps(records, people, {label: at for at, label in enumerate(labels)})
    columns, left_out = _columns(roster, list(people))
    return Trial(
        name,
        given,
        acted,
        labels,
        randomised=randomised,
        ordered=ordered,
        columns=columns,
        left_out=left_out,
    )


def read_states(source: Source, name: str = "states.csv") -> tuple[str, ...]:
    """The states of a file, from worst to best."""
    found = tuple(row.cells["state"] for row in _rows(source, name, ("state",)))
    if len(set(found)) < max(2, len(found)):
        raise ValueError(f"{name}: write each state once, at least two of them, the worst first")
    return found


def read_moves(source: Source) -> list[Trial]:
    """Trials from counts of moves: one for each trial and time, with people in waves."""
    groups: dict[tuple[str, str], list[tuple[int, int, int, int]]] = {}
    for row in _rows(source, "moves.csv", COUNTS):
        before, acted, after, people = (
            _whole(row, column) for column in ("state", "helped", "next_state", "people")
        )
        if acted > 1:
            raise ValueError(f'{row.where}: helped is "{acted}"; write 1 or 0')
        key = row.cells["trial"], row.cells["time"]
        groups.setdefault(key, []).append((before, acted, after, people))
    found = []
    for (trial, time), counts in groups.items():
        before, acted, after, people = np.array(counts).T
        each = (np.repeat(values, people) for values in (before, acted, after))
        labels = tuple(str(s) for s in range(1 + int(max(before.max(), after.max()))))
        found.append(Trial(f"{trial}, {time}", *in_waves(*each), labels, randomised=True))
    return found


# --- rows


def _rows(source: Source, name: str, columns: Sequence[str]) -> list[_Row]:
    """The rows of a table that has these columns, numbered as a spreadsheet numbers them."""
    if isinstance(source, pd.DataFrame):
        texts = source.astype(object).where(source.notna(), "").map(_text)
        header, rows = [str(column) for column in source.columns], texts.to_numpy().tolist()
    else:
        if isinstance(source, Path):
            name, source = source.name, source.read_bytes()
        header, *rows = _cells(source, name)
    for column in columns:
        if header.count(column) != 1:
            raise ValueError(
                f'{name} row 1: one column "{column}" needed; found {", ".join(header)}'
            )
    found = []
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) and any(row):
            raise ValueError(f"{name} row {number}: {len(row)} cells, {len(header)} needed")
        if any(row):
            cells = {column: cell.strip() for column, cell in zip(header, row, strict=True)}
            found.append(_Row(f"{name} row {number}", cells))
    if not found:
        raise ValueError(f"{name} has no rows below the column names: at least one needed")
    return found


def _cells(content: bytes, name: str) -> list[list[str]]:
    try:
        text = content.decode("utf-8-sig")
        first = text.partition("\n")[0]
        separator = max(",;\t", key=first.count)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{name}: not a CSV file; save it as CSV UTF-8 and try again") from None
    if not rows:
        raise ValueError(f"{name} is empty: a row of column names needed")
    return [[cell.strip() for cell in rows[0]], *rows[1:]]


def _text(value: object) -> str:
    """A cell of a data frame as a CSV file would have it: whole numbers without .0."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _whole(row: _Row, column: str) -> int:
    if not re.fullmatch(r"\d{1,7}", row.cells[column]):
        raise ValueError(f'{row.where}: {column} is "{row.cells[column]}"; write 0, 1, 2, ...')
    return int(row.cells[column])


def _record(row: _Row) -> _Record:
    person, when, state, helped = (row.cells[column] for column in RECORDS)
    if not person:
        raise ValueError(f"{row.where}: id is empty")
    if helped not in ("0", "1"):
        raise ValueError(f'{row.where}: helped is "{helped}"; write 1 or 0')
    return _Record(person, _moment(when, row.where), state, int(helped))


def _moment(when: str, where: str) -> float:
    """A number as it is, a date in days."""
    try:
        found = float(when)
    except ValueError:
        try:
            date = datetime.fromisoformat(when)
            found = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() / _DAY
        except ValueError:
            found = np.nan
    if not np.isfinite(found):
        raise ValueError(f'{where}: when is "{when}"; write a number, or a date like 2026-01-31')
    return found


def _check_once(rows: Sequence[_Row], records: Sequence[_Record]) -> None:
    """Nobody has two records of one moment."""
    first: dict[tuple[str, float], str] = {}
    for row, record in zip(rows, records, strict=True):
        before = first.setdefault(record[:2], row.where)
        if before != row.where:
            raise ValueError(
                f'{row.where}: "{record.person}" already has a record of {row.cells["when"]}, in'
                f" {before}; keep one of them"
            )


def _labels(rows: Sequence[_Row], states: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The states, and whether they go from worst to best. An empty state is unknown."""
    used = {row.cells["state"] for row in rows} - {""}
    if states:
        for row in rows:
            if row.cells["state"] not in (*states, ""):
                raise ValueError(
                    f'{row.where}: state "{row.cells["state"]}" is not one of {", ".join(states)}'
                )
        return tuple(states), True
    try:
        return tuple(sorted(used, key=float)), True
    except ValueError:
        return tuple(sorted(used)), False


# --- steps


def _in_steps(
    records: Sequence[_Record], people: dict[str, int], codes: dict[str, int]
) -> tuple[IntArray, IntArray]:
    """States [T+1, N] and help [T, N].

    A step is a visit of the trial, or the usual time between two records of a person: whichever
    makes more moves. The first fits visits at uneven distances, the second own calendars.
    """
    moments = np.array([record.moment for record in records])
    person = np.array([people[record.person] for record in records])
    state = np.array([codes[record.state] if record.state else UNKNOWN for record in records])
    helped = np.array([record.helped for record in records])
    visits = np.unique(moments, return_inverse=True)[1].astype(float)
    even = np.rint((moments - moments.min()) / _usual_step(moments, person))
    found: list[tuple[int, IntArray, IntArray]] = []
    for steps in (even, visits):
        size = steps.max() + 1
        if size * len(people) <= MOST_CELLS:
            step = steps.astype(np.int64)
            states = np.full((int(size), len(people)), UNKNOWN)
            acted = np.zeros(states.shape, dtype=np.int64)
            states[step, person], acted[step, person] = state, helped
            moves = int(((states[:-1] != UNKNOWN) & (states[1:] != UNKNOWN)).sum())
            found.append((moves, states, acted[:-1]))
    if not found:
        raise ValueError(
            f"history.csv: {len(people):,} people and {visits.max() + 1:,.0f} moments exceed the"
            f" limit of {MOST_CELLS:,} states; split the file"
        )
    return max(found, key=lambda one: one[0])[1:]


def _usual_step(moments: np.ndarray, person: IntArray) -> float:
    """The most common time between two records of a person, the shorter of two equally common."""
    order = np.lexsort((moments, person))
    gaps = np.diff(moments[order])[np.diff(person[order]) == 0].round(6)
    steps = Counter(gaps[gaps > 0].tolist())
    return max(steps, key=lambda step: (steps[step], -step), default=1.0)


# --- columns


def _columns(
    roster: Source | None, people: Sequence[str]
) -> tuple[Columns | None, tuple[str, ...]]:
    """The columns of a roster for these people, and the names of those that are left out.

    Columns that differ in a number at the end are a series of results: later ones must not be used
    for earlier steps, so the series is left out.
    """
    if roster is None:
        return None, ()
    of_person: dict[str, dict[str, str]] = {}
    for row in _rows(roster, "roster.csv", ("id",)):
        person = row.cells["id"]
        if person in of_person:
            raise ValueError(f'{row.where}: id "{person}" appears twice; keep one row')
        of_person[person] = row.cells
    names = list(next(iter(of_person.values())))
    stems = [found[1] if (found := _SERIES.fullmatch(name)) else None for name in names]
    series = {stem for stem, times in Counter(stems).items() if stem is not None and times > 1}
    kept = [name for name, stem in zip(names, stems, strict=True) if stem not in series]
    texts = [[of_person.get(person, {}).get(name, "") for name in kept] for person in people]
    return columns_of.read(kept, texts), tuple(name for name in names if name not in kept)
