"""The owner's arms as a CSV file: who there is, in which state, and what is known of them.

    id,state,label,group,age,hours_1,hours_2,hours_3
    p-017,Low,Mr Smith,High-risk,61,4.1,0,5.5

`id` and `state` are needed; `label` is the id and `group` is "all" where they are missing. Every
other column is kept as it is written and shown on the arm's card. A time series is either columns
with a number at their end (hours_1, hours_2, ...), oldest first, or one cell of three numbers or
more ("4.1 0 5.5"); cards.read draws it. UTF-8, with commas, semicolons or tabs.

A report of next states has the same form: `id` and `state`, and what is newly known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dopl_core.learning.bandit import State
from dopl_core.studies.config import Arm, StudyConfig
from dopl_core.studies.csvtext import CsvError, decode, read, unquote

_OWN = ("id", "state", "label", "group")


@dataclass(frozen=True)
class Report:
    """Next states, arm id -> label, and the newly known columns, arm id -> column -> text."""

    states: dict[str, str]
    columns: dict[str, dict[str, str]]


def read_roster(
    source: Path | bytes, states: Sequence[State | str], name: str = "roster.csv"
) -> tuple[Arm, ...]:
    """The arms of a roster file, in its order.

    source: the file, or its content as it was uploaded, then called `name`
    """
    labels = [state if isinstance(state, str) else state.label for state in states]
    rows, name = _rows(source, name)
    arms = []
    for (arm, state), (_, cells) in zip(_known(rows, labels, name), rows, strict=True):
        label, group = cells.get("label", "").strip(), cells.get("group", "").strip()
        arms.append(Arm(arm, label or arm, group or "all", state, _extra(cells)))
    return tuple(arms)


def states_in(source: Path | bytes, name: str = "roster.csv") -> list[str]:
    """The states that a roster mentions, in the order it first does: for its owner to put right."""
    rows, _ = _rows(source, name)
    return list(dict.fromkeys(cells["state"].strip() for _, cells in rows))


def read_report(source: Path | bytes, config: StudyConfig, name: str = "states.csv") -> Report:
    """The next states of a study's arms; every arm must be there, once."""
    rows, name = _rows(source, name)
    known = {arm.id for arm in config.arms}
    # A list that was exported has its risky ids quoted.
    for _, cells in rows:
        if cells["id"].strip() not in known and unquote(cells["id"].strip()) in known:
            cells["id"] = unquote(cells["id"].strip())
    states: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = {}
    labels = [state.label for state in config.states]
    for (arm, state), (number, cells) in zip(_known(rows, labels, name), rows, strict=True):
        if arm not in known:
            raise CsvError(f'{name} row {number}: id "{arm}" is not an arm of this study')
        states[arm] = state
        columns[arm] = _extra(cells)
    if missing := [arm.id for arm in config.arms if arm.id not in states]:
        raise CsvError(f'{name}: arm "{missing[0]}" is missing: all {len(known)} arms needed')
    return Report(states, columns)


def _rows(source: Path | bytes, name: str) -> tuple[list[tuple[int, dict[str, str]]], str]:
    if isinstance(source, Path):
        name, source = source.name, source.read_bytes()
    columns, rows = read(decode(source, name), name)
    for column in ("id", "state"):
        if column not in columns:
            raise CsvError(f'{name} row 1: column "{column}" is missing')
    if not rows:
        raise CsvError(f"{name} has no arms: one row for each needed")
    return rows, name


def _extra(cells: dict[str, str]) -> dict[str, str]:
    return {column: text for column, text in cells.items() if column not in _OWN}


def _known(
    rows: Iterable[tuple[int, dict[str, str]]], labels: list[str], name: str
) -> list[tuple[str, str]]:
    """Id and state of each row, or what is wrong with the first that is wrong."""
    seen: dict[str, int] = {}
    known = []
    for number, cells in rows:
        arm, state = cells["id"].strip(), cells["state"].strip()
        if not arm:
            raise CsvError(f"{name} row {number}: id is empty")
        if arm in seen:
            raise CsvError(f'{name} row {number}: id "{arm}" is there already, in row {seen[arm]}')
        if state not in labels:
            raise CsvError(
                f'{name} row {number}: state "{state}" is not one of {", ".join(labels)}'
            )
        seen[arm] = number
        known.append((arm, state))
    return known
