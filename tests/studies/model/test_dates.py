import pytest
from playing import clinic

from dopl_core import studies
from dopl_core.studies import AmbiguousDatesError, CsvError
from dopl_core.studies.model.dates import is_day_first, moment, to_iso


def records(*dates: str) -> bytes:
    rows = [f"p1,{when},Low,yes" for when in dates]
    return "\n".join(["id,date,state,helped", *rows]).encode()


def test_a_time_is_a_share_of_its_day_in_utc() -> None:
    assert moment("2026-03-02T12:00:00") == moment("2026-03-02") + 0.5
    assert moment("2026-03-02T02:00:00+02:00") == moment("2026-03-02")
    assert moment("7.5") == 7.5


@pytest.mark.parametrize(
    ("dates", "answer"),
    [
        (["2026-03-02"], False),
        (["02.03.2026"], True),
        (["03/04/2026", "13/04/2026"], True),
        (["03/04/2026", "04/13/2026"], False),
        (["03/04/2026", "10/04/2026"], None),
    ],
)
def test_the_file_shows_whether_days_come_first(dates: list[str], answer: bool | None) -> None:
    assert is_day_first(dates) is answer


def test_short_dates_become_iso_dates() -> None:
    assert to_iso("2.3.2026", day_first=True) == "2026-03-02"
    assert to_iso("03/02/2026", day_first=False) == "2026-03-02"
    with pytest.raises(CsvError, match=r'"31\.02\.2026": there is no such date'):
        to_iso("31.02.2026", day_first=True)


def test_past_records_with_the_owners_dates_are_the_same_records() -> None:
    iso = studies.read_history(records("2026-03-02", "2026-03-09"), clinic())
    assert studies.read_history(records("2.3.2026", "9.3.2026"), clinic()) == iso
    slashes = records("02/03/2026", "09/03/2026")
    assert studies.read_history(slashes, clinic(), day_first=True) == iso


def test_dates_that_can_be_read_both_ways_are_asked_about() -> None:
    with pytest.raises(AmbiguousDatesError, match="the day or the month first"):
        studies.read_history(records("02/03/2026", "09/03/2026"), clinic())
