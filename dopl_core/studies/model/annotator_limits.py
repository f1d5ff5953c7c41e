"""Who judges whom, as one setting: a part for each annotator whom the owner limits.

    [Ann]
    group = North, South
    never = p-017, p-020

Ann judges people of these groups only, and never sees the cards of two of them. Left of = stands a
column of the roster, `group` or `never`. Where several columns are named, all must fit. A value
with a comma stands in quotes; "" is an empty cell.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.ini_text import read_parts

NEVER = "never"  # stands before ids, all other words before a line's = are columns
LIMITS_HELP = (
    "Easier on the Invite tab. One part for each annotator: [Ann] on a line, then lines such as "
    "group = North, South and never = p-17, p-20. Left of = stands a column, group or never. It "
    "holds at once."
)


@dataclass(frozen=True)
class Limit:
    """The people whose cards an annotator is shown.

    only: column -> values; people who have one of the values in each of these columns
    never: ids of people whose cards are kept from them
    """

    only: dict[str, frozenset[str]]
    never: frozenset[str] = frozenset()


def read_limits(content: str) -> dict[str, Limit]:
    """Annotator, or name of a panel's link -> their limit."""
    parts = read_parts(
        content,
        "annotator_limits",
        comes_first="begin with a line that names an annotator, such as [Ann]",
        line="write a column, = and its values, such as group = North, South",
    )
    found = {}
    for name, lines in parts.items():
        cells = {key: _cells(value) for key, value in lines.items()}
        never = cells.pop(NEVER, frozenset()) - {""}
        if cells or never:
            found[name.strip()] = Limit(cells, never)
    return found


def write_limits(limits: Mapping[str, Limit]) -> str:
    """The text of these limits; refuses names that it cannot hold."""
    some = {name: limit for name, limit in limits.items() if limit.only or limit.never}
    lines = []
    for name, limit in some.items():
        named = limit.only | ({NEVER: limit.never} if limit.never else {})
        lines += [f"[{name}]", *(f"{key} = {_text(cells)}" for key, cells in named.items())]
    text = "\n".join(lines)
    if read_limits(text) != some:  # a column that begins with #, a value of two lines
        raise StudyError(
            "annotator_limits: these names of people, columns and values cannot be written as "
            "lines; rename the column, or name people by their ids"
        )
    return text


def _cells(line: str) -> frozenset[str]:
    rows = csv.reader([line.replace("\n", " ")], skipinitialspace=True)
    return frozenset(cell.strip() for row in rows for cell in row)


def _text(cells: Iterable[str]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(sorted(cells))
    return written.getvalue()
