"""The owner's arms as a table: their ids, their states, and what else is known of them.

    id,state,label,group,age,hours_1,hours_2,hours_3
    p-017,Low,Mr Smith,High-risk,61,4.1,0,5.5

Column names are the owner's own: `Columns` says which column is which, and `guess_columns` guesses
it from their names. Id and state are required. Without a label, the label is the id; without a
group, the group is "all"; an empty state is unknown. Cards show the other columns as written. A
time series is either columns that end in a number (hours_1, hours_2, ...), oldest first, or one
cell with at least three numbers ("4.1 0 5.5"). sheet.py says which files can be read.

A report of next states has the same form: `id`, `state`, optionally `helped` (1 or 0), and columns
with news for cards. The state of an arm that is not in the file is unknown.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from dopl_core.learning.bandit import State
from dopl_core.studies.model.errors import CsvError
from dopl_core.studies.model.safe_csv import unquote
from dopl_core.studies.model.sheet import Rows, Sheet, open_sheet
from dopl_core.studies.model.study_config import Arm, StudyConfig

# Names that owners use, the most likely first.
_NAMES = {
    "id": ("id", "number", "no", "nr", "code", "key", "kennung"),
    "state": ("state", "status", "condition", "stage", "level", "zustand", "estado"),
    "label": ("label", "name", "full name", "patient", "client", "who"),
    "group": ("group", "ward", "team", "site", "arm", "gruppe"),
    "helped": ("helped", "called", "visited", "treated"),
    "when": ("when", "date", "day", "week", "month", "time", "datum", "fecha"),
}
# Columns of an exported list that hold no news about an arm.
_OF_LISTS = (
    *("name", "why", "last seen", "last_seen", "then", "notes", "week", "was"),
    *("by_lot", "reserve", "changed", "because", "waits"),
)
_OF_ROSTERS = ("id", "state", "label", "group")
_YES, _NO = ("1", "yes", "true", "x"), ("", "0", "no", "false")
_SHORTEST = 4  # letters: shorter words differ by one letter without being misspelt


@dataclass(frozen=True)
class Columns:
    """The names of the columns with a meaning, "" where a file has none.

    when: of past records;  helped: of past records and reports
    shown: the columns that cards show, in order; None for all other columns, in the file's order
    """

    id: str
    state: str
    label: str = ""
    group: str = ""
    helped: str = ""
    when: str = ""
    shown: tuple[str, ...] | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """The columns with a meaning."""
        return (self.id, self.state, self.label, self.group, self.helped, self.when)


@dataclass(frozen=True)
class Report:
    """Next states, arm id -> label (None where unknown), and news for cards.

    columns: arm id -> column -> text;  helped: ids of the arms helped, None if not reported
    blank: of which arms the column "helped" is empty
    """

    states: dict[str, str | None]
    columns: dict[str, dict[str, str]]
    helped: list[str] | None = None
    blank: list[str] = field(default_factory=list)

    def who_was_helped(self, blank: str | None) -> list[str] | None:
        """As `helped`, with empty cells counted as "yes" or "no"; an error if it is None."""
        if self.helped is None or not self.blank or blank == "no":
            return self.helped
        if blank == "yes":
            return self.helped + self.blank
        some = ", ".join(self.blank[:3]) + (" ..." if len(self.blank) > 3 else "")
        raise CsvError(
            f"helped is empty in {len(self.blank)} rows ({some}): write 1 or 0, or add "
            "--empty-helped no (or yes)"
        )

    @property
    def help_marks(self) -> dict[str, bool] | None:
        """Whether each arm was helped, in a correction: an empty cell leaves it as it was."""
        if self.helped is None:
            return None
        return {arm: arm in self.helped for arm in self.states if arm not in self.blank}

    @property
    def news(self) -> list[str]:
        """The columns of which it has texts for cards."""
        return list(dict.fromkeys(c for texts in self.columns.values() for c in texts))


def guess_columns(
    columns: Sequence[str], history: bool = False, like: Columns | None = None
) -> Columns:
    """The columns with a meaning, guessed by their names; "" where no name fits.

    history: of past records, where the first column with a time says when
    like: of the roster, whose columns mean the same in other files
    """
    same = {} if like is None else {what: getattr(like, what) for what in _OF_ROSTERS}
    found: dict[str, Any] = {what: name for what, name in same.items() if name in columns}
    left = [name for name in columns if name not in found.values()]
    for what, names in _NAMES.items():
        if what not in found and (what != "when" or history):
            found[what] = next(iter(_by_likeness(left, names)), "")
            left = [one for one in left if one != found[what]]
    return Columns(**found)


def count_states(
    source: Path | bytes | Sheet, name: str = "roster.csv", columns: Columns | None = None
) -> dict[str, int]:
    """The number of rows with each state, in the order of their first rows."""
    sheet, columns = _with_columns(source, name, columns)
    states = (cells[columns.state].strip() for _, cells in sheet.rows)
    return dict(Counter(state for state in states if state))


def look_alike(states: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of states that may be one state, misspelt."""
    return [pair for pair in combinations(states, 2) if _may_be_one(*pair)]


def read_roster(
    source: Path | bytes | Sheet,
    states: Sequence[State | str],
    name: str = "roster.csv",
    columns: Columns | None = None,
    spelt: Mapping[str, str] | None = None,
) -> tuple[Arm, ...]:
    """The arms of a roster file, in the file's order.

    source: the file, or uploaded content that errors call `name`
    spelt: misspelt state -> correct state
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
    week: int | None = None,
) -> Report:
    """A report on a study's arms; an empty state is unknown, and arms may be left out.

    week: the week that it is about; the rows of a list know theirs
    """
    sheet, columns = _with_columns(source, name, columns)
    _check_week(sheet, columns, config, week)
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
            raise CsvError(f'{where}: id "{arm}" is not in this study')
        if not arms[arm].present:
            if state:
                raise CsvError(f'{where}: "{arm}" has left; remove the row, or re-admit them first')
            continue
        report.states[arm] = state or None
        report.columns[arm] = _others(cells, columns)
        if report.helped is None:
            continue
        if is_yes(cells[columns.helped], where):
            report.helped.append(arm)
        elif not cells[columns.helped].strip():
            report.blank.append(arm)
    return report


def _check_week(sheet: Sheet, columns: Columns, config: StudyConfig, week: int | None) -> None:
    """Refuse the list or the report of another week; cards may show a column of that name."""
    on_cards = {column for arm in config.arms for column in arm.columns}
    if week is None or "week" not in sheet.columns or "week" in {*on_cards, *columns.own}:
        return
    for number, cells in sheet.rows:
        if (said := cells["week"].strip()) not in ("", str(week), f"{week}.0"):
            word = config.epoch_word
            raise CsvError(
                f"{sheet.name} row {number}: this is about {word} {said}, but {word} {week} is "
                "reported: choose the right file, or remove the column week"
            )


def _with_columns(
    source: Path | bytes | Sheet, name: str, columns: Columns | None
) -> tuple[Sheet, Columns]:
    """The sheet, and its columns; guessed by their names where the owner has not chosen them."""
    sheet = open_sheet(source, name)
    columns = columns or guess_columns(sheet.columns)
    check_columns(sheet, {"id": columns.id, "state": columns.state})
    return sheet, columns


def check_columns(sheet: Sheet, needed: Mapping[str, str]) -> None:
    """Refuse a sheet without a column that is needed; needed: what it holds -> its name."""
    for what, column in needed.items():
        if column not in sheet.columns:
            raise CsvError(
                f'{sheet.name} row 1: column "{column or what}" is missing: rename the column that '
                "holds it, or use the app, where you can choose it"
            )


def _others(cells: dict[str, str], columns: Columns) -> dict[str, str]:
    """The cells that a card shows."""
    if columns.shown is not None:
        return {column: cells[column] for column in columns.shown if column in cells}
    return {column: text for column, text in cells.items() if column not in columns.own}


def _news(sheet: Sheet, columns: Columns, config: StudyConfig) -> tuple[str, ...]:
    """The columns of a report that cards show: all except those that only exported lists have."""
    on_cards = {column for arm in config.arms for column in arm.columns}
    return tuple(
        column
        for column in sheet.columns
        if column not in columns.own and (column in on_cards or column.lower() not in _OF_LISTS)
    )


def _as_known(arm: str, arms: Mapping[str, Arm]) -> str:
    """An id as the study has it: exported ids may be quoted, and spreadsheets write 7 as 7.0."""
    for one in (arm, unquote(arm), arm.removesuffix(".0")):
        if one in arms:
            return one
    return arm


def is_yes(cell: str, where: str) -> bool:
    """Whether a cell of the column `helped` says yes; an empty one says no."""
    typed = cell.strip().lower()
    if typed not in (*_YES, *_NO):
        raise CsvError(f'{where}: helped is "{cell.strip()}": 1 or 0 needed')
    return typed in _YES


def _known(
    sheet: Sheet, columns: Columns, labels: list[str], spelt: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Id and state of each row; refuses the first row that is wrong."""
    seen: dict[str, int] = {}
    known = []
    for number, cells in sheet.rows:
        arm, state = cells[columns.id].strip(), cells[columns.state].strip()
        state = spelt.get(state, state)
        where = f"{sheet.name} row {number}"
        if not arm:
            raise CsvError(f"{where}: {columns.id} is empty")
        if arm in seen:
            raise CsvError(f'{where}: {columns.id} "{arm}" is already in row {seen[arm]}')
        if state and state not in labels:
            raise CsvError(f'{where}: state "{state}" is not one of {", ".join(labels)}')
        seen[arm] = number
        known.append((arm, state))
    return known


def _by_likeness(columns: Sequence[str], names: Sequence[str]) -> Iterable[str]:
    """Columns with one of these names; then columns with one of them as a word of their name."""
    words = {column: _folded(column).split() for column in columns}
    for name in names:
        yield from (column for column in columns if " ".join(words[column]) == name)
    for name in names:
        yield from (column for column in columns if name in words[column])


def _may_be_one(one: str, other: str) -> bool:
    """Whether two states differ by case, blanks, accents, or one typing error."""
    one, other = (_folded(state) for state in (one, other))
    if one == other:
        return True
    if [c for c in one if c.isdigit()] != [c for c in other if c.isdigit()]:
        return False
    return min(len(one), len(other)) >= _SHORTEST and _is_one_slip(one, other)


def _folded(text: str) -> str:
    """Letters and digits without case and accents; all else becomes blanks."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    kept = (c for c in apart if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in kept).split())


def _is_one_slip(one: str, other: str) -> bool:
    """Whether one letter was left out, added, changed, or swapped with the next."""
    if len(one) > len(other):
        one, other = other, one
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[same:] == other[same + 1 :]
    swapped = one[same + 1 : same + 2] + one[same : same + 1] + one[same + 2 :]
    return one[same + 1 :] == other[same + 1 :] or swapped == other[same:]
