"""The table in an owner's file: CSV or XLSX.

CSV files are UTF-8, UTF-16 or Windows text, with commas, semicolons or tabs.
"""

import codecs
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from dopl_core.studies.model import safe_csv, spreadsheet
from dopl_core.studies.model.errors import CsvError

Rows = list[tuple[int, dict[str, str]]]  # with their row numbers in a spreadsheet


@dataclass(frozen=True)
class Sheet:
    """The table in a file; notice: a warning about how it was read, or ""."""

    name: str
    columns: list[str]
    rows: Rows
    notice: str = ""


def open_sheet(source: Path | bytes | Sheet, name: str = "roster.csv") -> Sheet:
    """The table in a file, or in uploaded content that errors call `name`."""
    if isinstance(source, Sheet):
        return source
    if isinstance(source, Path):
        name, source = source.name, source.read_bytes()
    if source.startswith(spreadsheet.SIGNATURE):
        cells, notice = spreadsheet.read_xlsx(source, name)
        columns, rows = safe_csv.table(cells, name)
    else:
        text, notice = _decoded(source, name)
        columns, rows = safe_csv.read(text, name)
    if not rows:
        raise CsvError(f"{name} has no rows below the column names: at least one is needed")
    return Sheet(name, columns, rows, notice)


def _decoded(content: bytes, name: str) -> tuple[str, str]:
    """The text of a file, and a warning about how it was read."""
    notice, unreadable = "", f"{name}: not a text file; {spreadsheet.REMEDY}"
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError:
        if marked:
            raise CsvError(unreadable) from None
        # The Windows encoding of western languages, in which nearly every byte is a character.
        text = content.decode("cp1252", errors="replace")
        notice = f"{name} is not UTF-8. It was read as Windows text: check names with accents."
    odd = next((c for c in text if unicodedata.category(c) == "Cc" and c not in "\t\r\n"), None)
    if odd is not None or "\ufffd" in text:
        raise CsvError(unreadable)
    return text, notice
