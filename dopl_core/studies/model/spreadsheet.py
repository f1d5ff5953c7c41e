"""Spreadsheets (XLSX): the cells of an owner's file as text, and tables that Excel opens."""

import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from math import prod

from dopl_core.studies.model.errors import CsvError

SIGNATURE = b"PK\x03\x04"  # of a zip, which an XLSX file is
REMEDY = "save it as XLSX or as CSV UTF-8 and try again"

_MOST_BYTES = 200_000_000  # of all parts, unpacked
_MOST_CELLS = 5_000_000  # of the rectangle that holds all cells of a sheet
_CELL = re.compile(rb'\br="([A-Z]{0,3})([0-9]{1,7})"')


def read_xlsx(content: bytes, name: str) -> tuple[list[list[str]], str]:
    """The rows of the first sheet that has some, as text; and a warning about how it was read."""
    from python_calamine import CalamineError, CalamineWorkbook  # read only where one is uploaded

    _check_size(content, name)
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = [
            book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
            for sheet in book.sheet_names
        ]
    except CalamineError as error:
        raise CsvError(f"{name}: this spreadsheet cannot be read ({error}); {REMEDY}") from None
    filled = [(at, rows) for at, rows in enumerate(sheets) if rows]
    if not filled:
        raise CsvError(f"{name} is empty: a row of column names needed")
    at, rows = filled[0]
    notice = f'{name} has several sheets. Only "{book.sheet_names[at]}" was read.'
    return [[_text(cell) for cell in row] for row in rows], notice if len(filled) > 1 else ""


def _check_size(content: bytes, name: str) -> None:
    """Refuse a file that would take too much memory, before it is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            if "xl/workbook.xml" not in parts.namelist():
                raise CsvError(f"{name}: not a spreadsheet; {REMEDY}")
            if sum(part.file_size for part in parts.infolist()) > _MOST_BYTES:
                raise CsvError(f"{name}: the spreadsheet is too large; {REMEDY}")
            sheets = [part for part in parts.namelist() if part.startswith("xl/worksheets/")]
            if any(prod(_extent(parts.read(part))) > _MOST_CELLS for part in sheets):
                raise CsvError(
                    f"{name}: one cell is very far from the others, so the table would have more "
                    f"than {_MOST_CELLS:,} cells; delete it and try again"
                )
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, EOFError):
        raise CsvError(f"{name}: this spreadsheet is damaged; {REMEDY}") from None


def _extent(sheet: bytes) -> tuple[int, int]:
    """The last row and the last column that a sheet has a cell in."""
    letters, rows = set(), 1
    for column, row in _CELL.findall(sheet):
        letters.add(column)
        rows = max(rows, int(row))
    return rows, max((_column_number(column) for column in letters), default=1)


def _column_number(letters: bytes) -> int:
    """The number of a column from its letters: A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _text(cell: object) -> str:
    """A cell as CSV would have it: whole numbers without a point, dates in ISO 8601."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, (date, datetime, time)):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    return str(cell)


def write_xlsx(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A spreadsheet with one table; text stays text, so nothing in it runs as a formula."""
    from xlsxwriter import Workbook

    file, widths = io.BytesIO(), [len(column) for column in columns]
    with Workbook(file, {"in_memory": True}) as book:
        sheet, bold = book.add_worksheet(), book.add_format({"bold": True})
        for place, column in enumerate(columns):
            sheet.write_string(0, place, column, bold)
        for number, row in enumerate(rows, start=1):
            for place, cell in enumerate(row):
                if isinstance(cell, int | float):
                    sheet.write_number(number, place, cell)
                elif cell is not None:
                    sheet.write_string(number, place, str(cell))
                    widths[place] = max(widths[place], len(str(cell)))
        for place, width in enumerate(widths):
            sheet.set_column(place, place, min(60, width + 2))
        sheet.freeze_panes(1, 0)
    return file.getvalue()
