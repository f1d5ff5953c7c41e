"""CSV that survives spreadsheets: text that would run as a formula is quoted, and restored."""

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

# Excel, LibreOffice and Sheets run what begins with these; a quote itself is quoted to be undone.
_RISKY = tuple("=+-@\t\r\n|%＝＋－＠'")
_UNSEEN = (
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
)  # control, format, half characters, line and paragraph ends


class CsvError(ValueError):
    """A file that cannot be used: says which, which row, and why."""


def quote(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return "'" + text if text.startswith(_RISKY) else text


def unquote(text: str) -> str:
    """What `quote` was given."""
    return text[1:] if text.startswith("'") else text


def printable(text: str) -> str:
    """Text that a terminal, or one line of a page, shows as it is.

    Without control characters, which move the cursor or change colours, invisible marks that turn
    text around, and ends of lines, of which Unicode has more than one and chart libraries stumble.
    """
    shown = (c if unicodedata.category(c) not in _UNSEEN else " " for c in text)
    return " ".join("".join(shown).split())


def write(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV text: numbers as they are, other text quoted against formulas, None empty."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)  # rows end in CR LF, so that either inside a cell is quoted
    writer.writerow([quote(name) for name in columns])
    for row in rows:
        writer.writerow([quote(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()


def decode(content: bytes, name: str) -> str:
    """The text of a file, which must be UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise CsvError(
            f"{name} line {line}: not UTF-8 text; save the file as CSV UTF-8 and try again"
        ) from None
    if "\0" in text:
        raise CsvError(f"{name}: not a text file; save it as CSV UTF-8 and try again")
    return text


def read(text: str, name: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns, and the rows with their numbers as a spreadsheet shows them (1 is the header).

    Cells come as they are written; separated by commas, semicolons or tabs, as the header is.
    """
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise CsvError(f"{name}: not a CSV file: {error}") from None
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise CsvError(f"{name} is empty: a row of column names needed")
    columns = [cell.strip() for cell in rows[0]]
    for column, times in Counter(columns).items():
        if not column:
            raise CsvError(f"{name} row 1: a column has no name")
        if times > 1:
            raise CsvError(f'{name} row 1: column "{column}" is there twice')
    found = []
    for number, row in enumerate(rows[1:], start=2):
        if not any(row):
            continue
        if len(row) != len(columns):
            mark = "tab" if separator == "\t" else f'"{separator}"'
            more = f"a cell with a {mark} in it must stand in quotes"
            remedy = (
                more if len(row) > len(columns) else "each column needs a cell, if an empty one"
            )
            raise CsvError(f"{name} row {number}: {len(row)} of {len(columns)} cells; {remedy}")
        found.append((number, dict(zip(columns, row, strict=True))))
    return columns, found
