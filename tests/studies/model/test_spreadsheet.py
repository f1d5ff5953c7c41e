import io
import zipfile
from datetime import date, datetime

import pytest
import xlsxwriter
from playing import STATES, clinic

from dopl_core import studies
from dopl_core.studies import CsvError, write_xlsx
from dopl_core.studies.model.spreadsheet import read_xlsx


def workbook(*sheets: list[list[object]]) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"default_date_format": "yyyy-mm-dd"}) as book:
        for rows in sheets:
            sheet = book.add_worksheet()
            for number, row in enumerate(rows):
                for place, cell in enumerate(row):
                    write = sheet.write_string if isinstance(cell, str) else sheet.write
                    write(number, place, cell)
    return file.getvalue()


def without_part(content: bytes, gone: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for part in old.namelist():
            if part != gone:
                new.writestr(part, old.read(part))
    return file.getvalue()


def test_cells_are_read_as_csv_would_have_them() -> None:
    cells = ["=1+1", 7, 4.5, True, date(2026, 3, 2), datetime(2026, 3, 2, 8, 30), None, "मीरा"]
    rows, notice = read_xlsx(workbook([["a"] * len(cells), cells]), "list.xlsx")
    expected = ["=1+1", "7", "4.5", "1", "2026-03-02", "2026-03-02T08:30:00", "", "मीरा"]
    assert rows[1] == expected
    assert notice == ""


def test_only_the_first_sheet_with_cells_is_read_and_the_owner_is_told() -> None:
    book = workbook([], [["id", "state"], ["p1", "Low"]], [["notes"]])
    sheet = studies.open_sheet(book, "clinic.xlsx")
    assert sheet.rows == [(2, {"id": "p1", "state": "Low"})]
    assert sheet.notice == 'clinic.xlsx has several sheets. Only "Sheet2" was read.'


def test_a_roster_a_report_and_past_records_can_be_spreadsheets() -> None:
    roster = workbook([["Nr", "Zustand", "Name"], [17, "Low", "Jürgen Groß"], [18, "High", "Ann"]])
    arms = studies.read_roster(roster, STATES, "clinic.xlsx")
    assert [(arm.id, arm.label, arm.state) for arm in arms] == [
        ("17", "Jürgen Groß", "Low"),
        ("18", "Ann", "High"),
    ]
    report = workbook([["id", "state", "helped"], ["p1", "High", True], ["p2", "Low", False]])
    assert studies.read_report(report, clinic()).helped == ["p1"]
    rows = [["p1", date(2026, 1, day), "Low", 1] for day in (5, 12, 19)]
    past = studies.read_history(workbook([["id", "Date", "state", "called"], *rows]), clinic())
    assert past.moves == 2


def test_rows_are_numbered_as_the_spreadsheet_shows_them() -> None:
    book = workbook([["id", "state"], [], ["p1", "Hihg"]])
    with pytest.raises(CsvError, match=r'clinic\.xlsx row 3: state "Hihg" is not one of Low'):
        studies.read_roster(book, STATES, "clinic.xlsx")


def test_a_table_that_was_written_is_read_back_and_nothing_in_it_is_a_formula() -> None:
    content = write_xlsx(["id", "share"], [["=HYPERLINK(1)", 0.5], ["+49 30 1", None]])
    assert read_xlsx(content, "list.xlsx")[0] == [
        ["id", "share"],
        ["=HYPERLINK(1)", "0.5"],
        ["+49 30 1", ""],
    ]
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        assert b"<f>" not in parts.read("xl/worksheets/sheet1.xml")


BAD = {  # made only when tested: the last one takes a while
    "book.xlsx is empty": lambda: workbook([]),
    "this spreadsheet is damaged": lambda: workbook([["id", "state"]])[:200],
    "not a spreadsheet": lambda: without_part(workbook([["id"]]), "xl/workbook.xml"),
    "cannot be read": lambda: without_part(workbook([["id"]]), "xl/worksheets/sheet1.xml"),
    "very far from the others": lambda: workbook([["id"], *[[]] * 1_000_000, [*[None] * 5, "x"]]),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_spreadsheet_is_refused_in_words(reason: str) -> None:
    with pytest.raises(CsvError, match=reason):
        studies.open_sheet(BAD[reason](), "book.xlsx")


def test_a_spreadsheet_that_unpacks_to_gigabytes_is_refused_before_it_is_read() -> None:
    file = io.BytesIO(workbook([["id", "state"]]))
    with (
        zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as parts,
        parts.open("xl/media/bomb.bin", "w") as bomb,
    ):
        for _ in range(21):
            bomb.write(bytes(10_000_000))
    with pytest.raises(CsvError, match="the spreadsheet is too large"):
        studies.open_sheet(file.getvalue(), "book.xlsx")
