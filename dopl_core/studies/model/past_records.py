"""Past records: states of arms, and who was helped, before the study began.

    id,when,state,helped
    p-017,2026-03-02,Low,1
    p-017,2026-03-09,Moderate,0

Column names are the owner's own (roster.py). `when` is a date or a number, `helped` is 1 or 0. Two
records of an arm make a move if they are one usual step apart, the most common step in the file: a
missing week is a gap, not a move. The learner also uses records of arms that are not in the roster.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies.model import safe_csv
from dopl_core.studies.model.dates import is_day_first, moment, to_iso
from dopl_core.studies.model.errors import AmbiguousDatesError, CsvError
from dopl_core.studies.model.roster import Columns, check_columns, guess_columns, is_yes
from dopl_core.studies.model.sheet import Sheet, open_sheet
from dopl_core.studies.model.study_config import StudyConfig

COLUMNS = ("id", "when", "state", "helped")

_MOST_MOVES = 10_000_000  # arms times the most moves of one arm: the size of one table

_Record = tuple[float, str, str, str, str]  # moment, then COLUMNS


@dataclass(frozen=True)
class Records:
    """Past records in a standard form.

    text: CSV with COLUMNS, sorted by time;  moves: the number of moves in it
    arms: the number of arms in it;  gaps: pairs of successive records that are not a move
    """

    text: str
    moves: int
    arms: int
    gaps: int


def read_history(
    source: Path | bytes | Sheet,
    config: StudyConfig,
    name: str = "history.csv",
    columns: Columns | None = None,
    day_first: bool | None = None,
) -> Records:
    """The records of a file, checked row by row.

    columns: which is which; guessed by their names if None
    day_first: whether 03/04/2026 is 3 April; None if the file must show it
    """
    sheet = open_sheet(source, name)
    columns = columns or guess_columns(sheet.columns, history=True)
    own = {column: getattr(columns, column) for column in COLUMNS}
    check_columns(sheet, own)
    day_first = _day_order(sheet, columns.when) if day_first is None else day_first
    labels = [state.label for state in config.states]
    kept: dict[tuple[str, float], _Record] = {}
    for number, cells in sheet.rows:
        texts = [safe_csv.unquote(cells[column].strip()) for column in own.values()]
        where = f"{sheet.name} row {number}"
        record = _record(*texts, labels=labels, day_first=day_first, where=where)
        at, arm, when, *_ = record
        if (arm, at) in kept:
            raise CsvError(f'{where}: "{arm}" already has a record of {when}')
        kept[arm, at] = record
    ordered = sorted(kept.values())
    text = safe_csv.write(COLUMNS, [row[1:] for row in ordered])
    states, _, _, gaps = _moves(text, config)
    moves = int((states != UNKNOWN).sum())
    if not moves:
        raise CsvError(
            f"{sheet.name} has no moves: two records of a person, one step apart, needed"
        )
    return Records(text, moves, len({row[1] for row in ordered}), gaps)


def _record(
    arm: str, when: str, state: str, helped: str, *, labels: list[str], day_first: bool, where: str
) -> _Record:
    """A row of an owner's file, checked; where: its place, for errors."""
    if not arm:
        raise CsvError(f"{where}: id is empty")
    if state and state not in labels:
        raise CsvError(f'{where}: state "{state}" is not one of {", ".join(labels)}')
    if not helped:
        raise CsvError(f"{where}: helped is empty: 1 or 0 needed")
    acted = str(int(is_yes(helped, where)))
    try:
        when = to_iso(when, day_first)
        return moment(when), arm, when, state, acted
    except CsvError as error:
        raise CsvError(f"{where}: {error}") from None


def _day_order(sheet: Sheet, when: str) -> bool:
    """Whether the short dates of a sheet begin with the day."""
    found = is_day_first(cells[when].strip() for _, cells in sheet.rows)
    if found is None:
        raise AmbiguousDatesError(
            f'{sheet.name}: "{sheet.rows[0][1][when]}" can be read with the day or the month '
            "first; write dates like 2026-01-31"
        )
    return found


def ids_in(text: str) -> list[str]:
    """The ids in past records, in the order of their first records."""
    rows = _rows(text)
    return list(dict.fromkeys(safe_csv.unquote(cells["id"]) for _, cells in rows))


def renamed(text: str, ids: Mapping[str, str]) -> str:
    """The same records of arms with other ids."""
    rows = ([safe_csv.unquote(cells[c]) for c in COLUMNS] for _, cells in _rows(text))
    return safe_csv.write(COLUMNS, [(ids[arm], *rest) for arm, *rest in rows])


def moves(text: str, config: StudyConfig) -> tuple[IntArray, IntArray, IntArray]:
    """States, actions and next states [E, N] for `count_moves`, the arms of config first."""
    return _moves(text, config)[:3]


def sightings(text: str, config: StudyConfig) -> tuple[dict[str, list[tuple[float, int]]], float]:
    """Moments and states of each arm, in order of time; and the usual step."""
    of_arm = _records_of_arms(text, config)
    seen = {arm: [(at, state) for at, state, _ in records] for arm, records in of_arm.items()}
    return seen, _usual_step(of_arm)


def _moves(text: str, config: StudyConfig) -> tuple[IntArray, IntArray, IntArray, int]:
    """Each arm's moves in its own column, from the top; and the number of gaps."""
    found, gaps = _moves_of_arms(text, config)
    numbers = {arm.id: number for number, arm in enumerate(config.arms)}
    for arm in found:
        numbers.setdefault(arm, len(numbers))
    most = max((len(of_one) for of_one in found.values()), default=0)
    if most * len(numbers) > _MOST_MOVES:
        raise CsvError(
            f"history.csv: {most} moves of one person and {len(numbers)} people exceed the limit: "
            "leave the oldest records out"
        )
    states, helped, next_states = (np.full((most, len(numbers)), UNKNOWN) for _ in range(3))
    for arm, of_one in found.items():
        for target, part in zip((states, helped, next_states), np.array(of_one).T, strict=True):
            target[: len(of_one), numbers[arm]] = part
    return states, np.maximum(helped, 0), next_states, gaps


def _moves_of_arms(
    text: str, config: StudyConfig
) -> tuple[dict[str, list[tuple[int, int, int]]], int]:
    """State, help and next state of each move, by arm; and the number of gaps."""
    of_arm = _records_of_arms(text, config)
    step = _usual_step(of_arm)
    gaps = 0
    found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for arm, records in of_arm.items():
        for (at, before, acted), (then, after, _) in pairwise(records):
            if 0.5 * step < then - at < 1.5 * step and UNKNOWN not in (before, after):
                found[arm].append((before, acted, after))
            else:
                gaps += 1
    return found, gaps


def _records_of_arms(text: str, config: StudyConfig) -> dict[str, list[tuple[float, int, int]]]:
    """Moment, state and help of each record, by arm."""
    of_arm: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for _, cells in _rows(text):
        arm, when, state, helped = (safe_csv.unquote(cells[column]) for column in COLUMNS)
        number = config.state_number(state) if state else UNKNOWN
        of_arm[arm].append((moment(when), number, int(helped)))
    return of_arm


def _rows(text: str) -> list[tuple[int, dict[str, str]]]:
    columns, rows = safe_csv.read(text, "history.csv")
    for column in COLUMNS:
        if column not in columns:
            raise CsvError(f'history.csv row 1: column "{column}" is missing')
    return rows


def _usual_step(of_arm: dict[str, list[tuple[float, int, int]]]) -> float:
    steps = Counter(
        then[0] - record[0] for records in of_arm.values() for record, then in pairwise(records)
    )
    return max(steps, key=lambda step: (steps[step], -step)) if steps else 1.0
