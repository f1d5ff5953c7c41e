"""CSV that is safe in spreadsheets: text that would run as a formula is quoted, and restored."""

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from dopl_core.studies.model.errors import CsvError

# Excel, LibreOffice and Sheets run text that begins with these. A quote is quoted too, so that
# `unquote` restores every text.
_RISKY = tuple("=+-@\t\r\n|%＝＋－＠'")
# Unicode's control, format and half characters, line and paragraph separators.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def quote(text: str) -> str:
    """Text that no spreadsheet runs as a formula."""
    return "'" + text if text.startswith(_RISKY) else text


def unquote(text: str) -> str:
    """What `quote` was given."""
    return text[1:] if text.startswith("'") else text


def one_line(text: str) -> str:
    """Text in one line that is safe to show on a terminal or a page.

    Control characters (which move the cursor or change colours), invisible marks (which reverse
    text) and all line ends of Unicode (which break chart libraries) become blanks.
    """
    return "".join(c if unicodedata.category(c) not in _UNSEEN else " " for c in text)


def printable(text: str) -> str:
    """The same with single blanks, for text that somebody else wrote."""
    return " ".join(one_line(text).split())


def write(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV text: numbers unchanged, text quoted against formulas, None empty."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)  # rows end in CR LF, so a cell with either is quoted
    writer.writerow([quote(name) for name in columns])
    for row in rows:
        writer.writerow([quote(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()


def decode(content: bytes, name: str) -> str:
    """The text of a UTF-8 file."""
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

    Cells are unchanged text. The separator (comma, semicolon or tab) is that of the header.
    """
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise CsvError(f"{name}: not a CSV file: {error}") from None
    return table(rows, name, "tab" if separator == "\t" else f'"{separator}"')


def table(
    rows: Sequence[Sequence[str]], name: str, mark: str = ""
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns and the numbered rows of a table whose first row has the column names.

    mark: what separates cells, for an error about a row with too many of them
    """
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise CsvError(f"{name} is empty: a row of column names needed")
    columns = [cell.strip() for cell in rows[0]]
    for column, times in Counter(columns).items():
        if not column:
            raise CsvError(f"{name} row 1: a column has no name")
        if times > 1:
            raise CsvError(f'{name} row 1: column "{column}" appears twice')
    found = []
    for number, row in enumerate(rows[1:], start=2):
        if not any(row):
            continue
        if len(row) != len(columns):
            remedy = "each column needs a cell, which may be empty"
            if len(row) > len(columns):
                remedy = f"put quotes around a cell with a {mark} in it"
            raise CsvError(
                f"{name} row {number}: {len(row)} cells, but {len(columns)} columns; {remedy}"
            )
        found.append((number, dict(zip(columns, row, strict=True))))
    return columns, found
