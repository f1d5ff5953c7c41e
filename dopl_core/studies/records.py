"""Past records of arms: where they were and who was helped, before the study began.

    id,when,state,helped
    p-017,2026-03-02,Low,1
    p-017,2026-03-09,Moderate,0

`when` is a date (2026-03-02) or a number that sorts; `helped` is 1 or 0. A move is counted between
two records of an arm that lie one usual step apart (the commonest step of the file): a missing week
is a gap, not a move. Arms that are not in the roster still teach what arms have in common.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies import csvtext
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.csvtext import CsvError

COLUMNS = ("id", "when", "state", "helped")

_MOST_MOVES = 10_000_000  # arms times the most moves of one: a table that is counted at once


@dataclass(frozen=True)
class Records:
    """Past records in one form, and how much they say.

    text: CSV with COLUMNS, in the order of time;  moves: moves found in it
    arms: how many arms they are about;  gaps: neighbouring records that are no move
    """

    text: str
    moves: int
    arms: int
    gaps: int


def read_history(source: Path | bytes, config: StudyConfig, name: str = "history.csv") -> Records:
    """The records of a file, checked row by row."""
    if isinstance(source, Path):
        name, source = source.name, source.read_bytes()
    rows = _rows(csvtext.decode(source, name), name)
    labels = [state.label for state in config.states]
    kept: dict[tuple[str, float], tuple[float, str, str, str, str]] = {}
    for number, cells in rows:
        arm, when, state, helped = (csvtext.unquote(cells[c].strip()) for c in COLUMNS)
        where = f"{name} row {number}"
        if not arm:
            raise CsvError(f"{where}: id is empty")
        if state and state not in labels:
            raise CsvError(f'{where}: state "{state}" is not one of {", ".join(labels)}')
        if helped not in ("0", "1"):
            raise CsvError(f'{where}: helped is "{helped}": 0 or 1 needed')
        at = _moment(when, where)
        if (arm, at) in kept:
            raise CsvError(f'{where}: "{arm}" has a record of {when} already')
        kept[arm, at] = (at, arm, when, state, helped)
    if not kept:
        raise CsvError(f"{name} has no records: one row an arm and time needed")
    ordered = sorted(kept.values())
    text = csvtext.write(COLUMNS, [row[1:] for row in ordered])
    states, _, _, gaps = _moves(text, config)
    moves = int((states != UNKNOWN).sum())
    if not moves:
        raise CsvError(f"{name}: no move is in it: two records of an arm, one step apart, needed")
    return Records(text, moves, len({row[1] for row in ordered}), gaps)


def ids_in(text: Any) -> list[str]:
    """The arms that records are about, in the order in which they come."""
    rows = _rows(text, "history.csv")
    return list(dict.fromkeys(csvtext.unquote(cells["id"]) for _, cells in rows))


def moves(text: str, config: StudyConfig) -> tuple[IntArray, IntArray, IntArray]:
    """States, actions and next states [E, N] as `count_moves` takes them; N are config's arms."""
    return _moves(text, config)[:3]


def _moves(text: str, config: StudyConfig) -> tuple[IntArray, IntArray, IntArray, int]:
    """Each arm's moves in a column of their own, from the top; and how many gaps there were."""
    of_arm: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for _, cells in _rows(text, "history.csv"):
        arm, when, state, helped = (csvtext.unquote(cells[column]) for column in COLUMNS)
        number = config.state_number(state) if state else UNKNOWN
        of_arm[arm].append((_moment(when, "history.csv"), number, int(helped)))
    step = _usual_step(of_arm)
    gaps = 0
    found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for arm, records in of_arm.items():
        for (at, before, acted), (then, after, _) in pairwise(records):
            if 0.5 * step < then - at < 1.5 * step and UNKNOWN not in (before, after):
                found[arm].append((before, acted, after))
            else:
                gaps += 1
    numbers = {arm.id: number for number, arm in enumerate(config.arms)}
    for arm in found:
        numbers.setdefault(arm, len(numbers))
    most = max((len(of_one) for of_one in found.values()), default=0)
    if most * len(numbers) > _MOST_MOVES:
        raise CsvError(
            f"history.csv: {most} moves of one arm, {len(numbers)} arms: too many at once, leave "
            "the oldest out"
        )
    states, helped_, next_states = (np.full((most, len(numbers)), UNKNOWN) for _ in range(3))
    for arm, of_one in found.items():
        column = np.array(of_one)
        for target, part in zip((states, helped_, next_states), column.T, strict=True):
            target[: len(of_one), numbers[arm]] = part
    return states, np.maximum(helped_, 0), next_states, gaps


def _rows(text: Any, name: str) -> list[tuple[int, dict[str, str]]]:
    if not isinstance(text, str):
        raise CsvError(f"{name}: no text")
    columns, rows = csvtext.read(text, name)
    for column in COLUMNS:
        if column not in columns:
            raise CsvError(f'{name} row 1: column "{column}" is missing')
    return rows


def _usual_step(of_arm: dict[str, list[tuple[float, int, int]]]) -> float:
    steps = Counter(
        then[0] - record[0] for records in of_arm.values() for record, then in pairwise(records)
    )
    return max(steps, key=lambda step: (steps[step], -step)) if steps else 1.0


def _moment(text: str, where: str) -> float:
    """A date as its day's number, or a number."""
    try:
        return float(date.fromisoformat(text).toordinal())
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise CsvError(f'{where}: when is "{text}": a date (2026-01-31) or a number needed')
    return number
