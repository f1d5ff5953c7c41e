"""Who judges whom, as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dopl_core.studies import StudyError
from dopl_core.studies.model.annotator_limits import Limit, read_limits, write_limits

TEXT = """
[Ann]
ward = North, "South, upper"
shift = ""
never = p-017, p-020

[Bo = B]
# nobody, until they come back
ward =
[Cy]
"""


def test_a_part_names_columns_with_their_values_and_people_who_are_never_shown() -> None:
    only = {"ward": frozenset(["North", "South, upper"]), "shift": frozenset([""])}
    assert read_limits(TEXT) == {
        "Ann": Limit(only, frozenset(["p-017", "p-020"])),
        "Bo = B": Limit({"ward": frozenset()}),
    }
    assert read_limits("") == {}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ward = North", "line 1: begin with a line that names an annotator"),
        ("[Ann]\nNorth", "line 2: write a column, = and its values"),
        ("[Ann]\nward = A\nward = B", 'line 3: "ward" is given twice'),
        ("[Ann]\nward = A\n[Ann]", r"line 3: \[Ann\] is given twice"),
    ],
)
def test_an_error_names_the_line_and_the_remedy(text: str, error: str) -> None:
    with pytest.raises(StudyError, match=f"annotator_limits {error}"):
        read_limits(text)


_words = some.text(some.characters(codec="utf-8", exclude_categories=["C"]), max_size=6)
_cells = some.frozensets(_words, max_size=3)


@given(some.dictionaries(_words, some.builds(Limit, some.dictionaries(_words, _cells), _cells)))
def test_what_is_written_reads_the_same_or_is_refused(limits: dict[str, Limit]) -> None:
    try:
        text = write_limits(limits)
    except StudyError:
        return
    assert read_limits(text) == {n: one for n, one in limits.items() if one.only or one.never}


def test_ordinary_names_are_never_refused() -> None:
    only = {"ward (old)": frozenset(["St. Mary's", "3, upper", "", "50 %", "[x]", "a=b", 'a "b"'])}
    limits = {"Ann [night]": Limit(only, frozenset(["p#1"])), "Jörg": Limit({}, frozenset(["p2"]))}
    assert read_limits(write_limits(limits)) == limits
