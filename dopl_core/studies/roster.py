"""The owner's arms as a CSV file: who there is, in which state, and what is known of them.

    id,state,label,group,age,hours_1,hours_2,hours_3
    p-017,Low,Mr Smith,High-risk,61,4.1,0,5.5

Column names are the owner's own: `Columns` says which is which, and `guess_columns` what they look
like. An id and a state are needed; the label is the id and the group is "all" where they are
missing, and a state that is empty is unknown. Other columns are kept as they are written and shown
on the arm's card. A time series is either columns with a number at their end (hours_1, hours_2,
...), oldest first, or one cell of three numbers or more ("4.1 0 5.5"); cards.read draws it.
UTF-8, UTF-16 or what Windows writes, with commas, semicolons or tabs.

A report of next states has the same form: `id` and `state`, `helped` (1 or 0) if you like, and
what is newly known. Arms may be left out: where they are is then unknown.
"""

import codecs
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from dopl_core.learning.bandit import State
from dopl_core.studies.config import Arm, StudyConfig
from dopl_core.studies.csvtext import CsvError, read, unquote

Rows = list[tuple[int, dict[str, str]]]  # with their numbers as a spreadsheet shows them

# What owners call them; those that come first are the likelier.
_NAMES = {
    "id": ("id", "number", "no", "nr", "code", "key"),
    "state": ("state", "status", "condition", "stage", "level", "zustand", "estado"),
    "label": ("label", "name", "full name", "patient", "client", "who"),
    "group": ("group", "ward", "team", "site", "arm", "gruppe"),
    "helped": ("helped", "called", "visited", "treated"),
}
# Columns of an exported list that say nothing new about an arm.
_OF_LISTS = ("name", "why", "last seen", "last_seen", "then", "notes", "week", "was")
_YES, _NO = ("1", "yes", "true", "x"), ("", "0", "no", "false")
_SHORTEST = 4  # letters of words whose misspellings can be told from other words


@dataclass(frozen=True)
class Sheet:
    """A file's table; notice: what its reader should know about how it was read, or ""."""

    name: str
    columns: list[str]
    rows: Rows
    notice: str = ""


@dataclass(frozen=True)
class Columns:
    """Which of a file's columns is what, "" where there is none.

    shown: those that cards show, in this order; None for all others, in the file's order
    """

    id: str = "id"
    state: str = "state"
    label: str = "label"
    group: str = "group"
    helped: str = ""
    shown: tuple[str, ...] | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """Those that have a meaning."""
        return (self.id, self.state, self.label, self.group, self.helped)


@dataclass(frozen=True)
class Report:
    """Next states, arm id -> label (None where unknown), and what else is newly known.

    columns: arm id -> column -> text;  helped: ids of those helped, None where it is not said
    """

    states: dict[str, str | None]
    columns: dict[str, dict[str, str]]
    helped: list[str] | None = None


def open_sheet(source: Path | bytes | Sheet, name: str = "roster.csv") -> Sheet:
    """The table in a file, or in its content as it was uploaded, then called `name`."""
    if isinstance(source, Sheet):
        return source
    if isinstance(source, Path):
        name, source = source.name, source.read_bytes()
    text, notice = _decoded(source, name)
    columns, rows = read(text, name)
    if not rows:
        raise CsvError(f"{name} has no arms: one row for each needed")
    return Sheet(name, columns, rows, notice)


def decode(content: bytes, name: str) -> str:
    """The text of an owner's file, however it is encoded."""
    return _decoded(content, name)[0]


def guess_columns(columns: Sequence[str]) -> Columns:
    """Which column is what, by their names; "" where no name tells."""
    left = list(columns)
    found: dict[str, str] = {}
    for what, names in _NAMES.items():
        found[what] = next((one for one in _by_likeness(left, names)), "")
        left = [one for one in left if one != found[what]]
    return Columns(
        found["id"], found["state"], found["label"], found["group"], helped=found["helped"]
    )


def count_states(
    source: Path | bytes | Sheet, name: str = "roster.csv", columns: Columns | None = None
) -> dict[str, int]:
    """How many rows have each state, in the order in which the file first mentions them."""
    sheet, columns = _with_columns(source, name, columns)
    states = (cells[columns.state].strip() for _, cells in sheet.rows)
    return dict(Counter(state for state in states if state))


def states_in(
    source: Path | bytes | Sheet, name: str = "roster.csv", columns: Columns | None = None
) -> list[str]:
    """The states that a roster mentions, as it does: for its owner to put in order."""
    return list(count_states(source, name, columns))


def look_alike(states: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs that may be one state, misspelt: for their owner to tell."""
    return [pair for pair in combinations(states, 2) if _may_be_one(*pair)]


def read_roster(
    source: Path | bytes | Sheet,
    states: Sequence[State | str],
    name: str = "roster.csv",
    columns: Columns | None = None,
    spelt: Mapping[str, str] | None = None,
) -> tuple[Arm, ...]:
    """The arms of a roster file, in its order.

    source: the file, or its content as it was uploaded, then called `name`
    spelt: states that are misspelt in it, and how they should be
    """
    labels = [state if isinstance(state, str) else state.label for state in states]
    sheet, columns = _with_columns(source, name, columns)
    known = _known(sheet, columns, labels, spelt or {})
    arms = []
    for (arm, state), (_, cells) in zip(known, sheet.rows, strict=True):
        label, group = (cells.get(c, "").strip() for c in (columns.label, columns.group))
        arms.append(Arm(arm, label or arm, group or "all", state, _others(cells, columns)))
    return tuple(arms)


def read_report(
    source: Path | bytes | Sheet,
    config: StudyConfig,
    name: str = "states.csv",
    columns: Columns | None = None,
) -> Report:
    """What a file says of a study's arms; an empty state is unknown, and arms may be left out."""
    sheet, columns = _with_columns(source, name, columns)
    columns = replace(columns, shown=_news(sheet, columns, config))
    arms = {arm.id: arm for arm in config.arms}
    rows: Rows = [
        (number, cells | {columns.id: _as_known(cells[columns.id].strip(), arms)})
        for number, cells in sheet.rows
    ]
    known = _known(replace(sheet, rows=rows), columns, [state.label for state in config.states], {})
    report = Report({}, {}, [] if columns.helped in sheet.columns else None)
    for (arm, state), (number, cells) in zip(known, rows, strict=True):
        where = f"{sheet.name} row {number}"
        if arm not in arms:
            raise CsvError(f'{where}: id "{arm}" is not an arm of this study')
        if not arms[arm].present:
            if state:
                raise CsvError(f'{where}: "{arm}" has left: leave the row out, or let it come back')
            continue
        report.states[arm] = state or None
        report.columns[arm] = _others(cells, columns)
        if report.helped is not None and _is_yes(cells[columns.helped], where):
            report.helped.append(arm)
    return report


def _with_columns(
    source: Path | bytes | Sheet, name: str, columns: Columns | None
) -> tuple[Sheet, Columns]:
    sheet = open_sheet(source, name)
    columns = columns or Columns(helped="helped")
    for column in (columns.id, columns.state):
        if column not in sheet.columns:
            raise CsvError(f'{sheet.name} row 1: column "{column}" is missing')
    return sheet, columns


def _others(cells: dict[str, str], columns: Columns) -> dict[str, str]:
    """What a card shows."""
    if columns.shown is not None:
        return {column: cells[column] for column in columns.shown if column in cells}
    return {column: text for column, text in cells.items() if column not in columns.own}


def _news(sheet: Sheet, columns: Columns, config: StudyConfig) -> tuple[str, ...]:
    """The columns of a report that cards show: all, but those that lists have and rosters not."""
    on_cards = {column for arm in config.arms for column in arm.columns}
    return tuple(
        column
        for column in sheet.columns
        if column not in columns.own and (column in on_cards or column.lower() not in _OF_LISTS)
    )


def _as_known(arm: str, arms: Mapping[str, Arm]) -> str:
    """An id as the study has it: exported ones may be quoted, and spreadsheets write 7 as 7.0."""
    for one in (arm, unquote(arm), arm.removesuffix(".0")):
        if one in arms:
            return one
    return arm


def _is_yes(cell: str, where: str) -> bool:
    said = cell.strip().lower()
    if said not in (*_YES, *_NO):
        raise CsvError(f'{where}: helped is "{cell.strip()}": 1 or 0 needed')
    return said in _YES


def _known(
    sheet: Sheet, columns: Columns, labels: list[str], spelt: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Id and state of each row, or what is wrong with the first that is wrong."""
    seen: dict[str, int] = {}
    known = []
    for number, cells in sheet.rows:
        arm, state = cells[columns.id].strip(), cells[columns.state].strip()
        state = spelt.get(state, state)
        where = f"{sheet.name} row {number}"
        if not arm:
            raise CsvError(f"{where}: {columns.id} is empty")
        if arm in seen:
            raise CsvError(f'{where}: {columns.id} "{arm}" is there already, in row {seen[arm]}')
        if state and state not in labels:
            raise CsvError(f'{where}: state "{state}" is not one of {", ".join(labels)}')
        seen[arm] = number
        known.append((arm, state))
    return known


def _decoded(content: bytes, name: str) -> tuple[str, str]:
    """A file's text, and what its reader should know about it."""
    notice = ""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError:
        if marked:
            raise CsvError(f"{name}: not a text file; save it as CSV UTF-8") from None
        # Windows' own: every letter of the west; nearly all bytes mean something in it.
        text = content.decode("cp1252", errors="replace")
        notice = f"{name} is not UTF-8: it was read as Windows text. Check names with accents."
    odd = next((c for c in text if unicodedata.category(c) == "Cc" and c not in "\t\r\n"), None)
    if odd is not None or "\ufffd" in text:
        raise CsvError(f"{name}: not a text file; save it as CSV UTF-8 and try again")
    return text, notice


def _by_likeness(columns: Sequence[str], names: Sequence[str]) -> Iterable[str]:
    """Columns that are called so; then those in whose name the word is."""
    words = {column: _folded(column).split() for column in columns}
    for name in names:
        yield from (column for column in columns if " ".join(words[column]) == name)
    for name in names:
        yield from (column for column in columns if name in words[column])


def _may_be_one(one: str, other: str) -> bool:
    """Whether two states differ by case, blanks or accents, or by one slip of the fingers."""
    one, other = (_folded(state) for state in (one, other))
    if one == other:
        return True
    if [c for c in one if c.isdigit()] != [c for c in other if c.isdigit()]:
        return False
    return min(len(one), len(other)) >= _SHORTEST and _is_one_slip(one, other)


def _folded(text: str) -> str:
    """Letters and digits without case and accents; anything else is a blank."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    kept = (c for c in apart if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in kept).split())


def _is_one_slip(one: str, other: str) -> bool:
    """Whether a letter was left out, added, changed, or changed places with the next."""
    if len(one) > len(other):
        one, other = other, one
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[same:] == other[same + 1 :]
    swapped = one[same + 1 : same + 2] + one[same : same + 1] + one[same + 2 :]
    return one[same + 1 :] == other[same + 1 :] or swapped == other[same:]
