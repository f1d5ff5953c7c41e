"""CSV that survives spreadsheets, and text that survives terminals."""

import pytest

from dopl_core.studies.model import safe_csv

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "|cmd", "%x", "＝1", "'already"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_header_is_taken_for_a_formula(text: str) -> None:
    written = safe_csv.write(["id", text], [["a", text]])
    columns, [(_, row)] = safe_csv.read(written, "file")
    assert columns == ["id", f"'{text}".strip()]
    assert safe_csv.unquote(row[columns[1]]) == text


def test_plain_headers_stay_as_they_are() -> None:
    assert safe_csv.write(["id", "Low, often"], []) == 'id,"Low, often"\r\n'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("\x1b]0;title\x07after", "]0;title after"),
        ("\x9b2Jgone", "2Jgone"),
        ("two\r\nlines\u2028three\u2029four", "two lines three four"),
        ("\u202eturned\u202c", "turned"),
        ("Größe 日本 ✓", "Größe 日本 ✓"),
    ],
)
def test_what_is_printed_is_all_that_is_seen(text: str, shown: str) -> None:
    assert safe_csv.printable(text) == shown
