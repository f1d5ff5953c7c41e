"""Rosters and reports: what an owner's CSV says, or the row that is wrong with it."""

from pathlib import Path

import pytest
from playing import ROSTER, STATES, clinic

from dopl_core.studies import cards, service
from dopl_core.studies.service import CsvError

ROSTERS = Path(__file__).resolve().parents[2] / "data" / "rosters"


def test_a_roster_gives_arms_with_everything_that_is_known() -> None:
    first = service.read_roster(ROSTER, STATES)[0]
    assert first == service.Arm("p1", "Ada", "ward", "Low", {"age": "60", "hours": "1 2 3"})


def test_only_id_and_state_are_needed() -> None:
    arms = service.read_roster(b"state,id\nLow,a\nHigh,b\n", STATES)
    assert arms[1] == service.Arm("b", "b", "all", "High", {})


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfid,state\na,Low\n",
        b"id;state\na;Low\n",
        b"id\tstate\r\na\tLow\r\n",
        b"id,state\n\na,Low\n\n",
        b" id , state \n a , Low \n",
    ],
)
def test_spreadsheets_ways_of_writing_csv_are_understood(content: bytes) -> None:
    (arm,) = service.read_roster(content, STATES)
    assert (arm.id, arm.state) == ("a", "Low")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "roster.csv is empty"),
        (b"\n\n", "roster.csv is empty"),
        (b"id,state\n", "roster.csv has no arms"),
        (b"id,label\na,A\n", 'roster.csv row 1: column "state" is missing'),
        (b"id,state,id\na,Low,b\n", 'roster.csv row 1: column "id" is there twice'),
        (b"id,state,\na,Low,1\n", "roster.csv row 1: a column has no name"),
        (
            b"id,state\na,Low\nb,High\na,Low\n",
            'roster.csv row 4: id "a" is there already, in row 2',
        ),
        (
            b"id,state\n1,Low\n2,Low\n3,Low\n4,Low\n5,Low\n6,Hihg\n",
            'roster.csv row 7: state "Hihg" is not one of Low, Moderate, High',
        ),
        (b"id,state\n,Low\n", "roster.csv row 2: id is empty"),
        (b"id,state\na,Low,3\n", "roster.csv row 2: 3 cells, 2 columns"),
        ("id,state\nMüller,Low\n".encode("latin-1"), "roster.csv line 2: not UTF-8 text"),
        ("id,state\na,Low\n".encode("utf-16"), "roster.csv line 1: not UTF-8 text"),
        (b"id,state\na\0,Low\n", "roster.csv: not a text file"),
        (b'id,state\n"a,Low\n', "roster.csv: not a CSV file"),
        (b"PK\x03\x04\x14\x00\x08\x08", "not a text file|not UTF-8|is missing"),
    ],
)
def test_a_bad_roster_is_refused_with_row_and_reason(content: bytes, message: str) -> None:
    with pytest.raises(CsvError, match=message):
        service.read_roster(content, STATES)


def test_the_states_of_a_roster_can_be_listed_before_they_are_put_in_order() -> None:
    assert service.states_in(ROSTER) == ["Low", "High", "Moderate"]


def test_a_file_is_called_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "ward 7.csv"
    file.write_bytes(b"id,state\na,Up\n")
    with pytest.raises(CsvError, match=r'ward 7[.]csv row 2: state "Up"'):
        service.read_roster(file, STATES)


def test_a_report_gives_states_and_what_is_newly_known() -> None:
    report = service.read_report(
        b"id,state,hours\np1,High,9\np2,Low,\np3,Low,1\np4,Low,2\n", clinic()
    )
    assert report.states == {"p1": "High", "p2": "Low", "p3": "Low", "p4": "Low"}
    assert report.columns["p1"] == {"hours": "9"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,state\np1,Low\np2,Low\np3,Low\n", 'states.csv: arm "p4" is missing'),
        (b"id,state\np1,Low\np9,Low\n", 'states.csv row 3: id "p9" is not an arm of this study'),
        (b"id,state\np1,Up\n", 'states.csv row 2: state "Up" is not one of'),
    ],
)
def test_a_bad_report_is_refused_with_row_and_reason(content: bytes, message: str) -> None:
    with pytest.raises(CsvError, match=message):
        service.read_report(content, clinic())


def test_a_list_that_was_exported_can_be_sent_back() -> None:
    arms = [service.Arm("=1", "one", state="Low"), service.Arm("b", "two", state="Low")]
    config = service.from_roster(arms, STATES, title="T", budget=2)
    report = service.read_report(b"id,state\n'=1,High\nb,Low\n", config)
    assert report.states == {"=1": "High", "b": "Low"}


@pytest.mark.parametrize(
    ("name", "states", "chart"),
    [
        ("clinic.csv", STATES, "hours"),
        ("mothers.csv", ("Disengaged", "Occasional", "Engaged"), "share of calls heard"),
    ],
)
def test_the_example_rosters_make_studies_with_charts(
    name: str, states: tuple[str, ...], chart: str
) -> None:
    arms = service.read_roster(ROSTERS / name, states)
    config = service.from_roster(arms, states, title="Example", budget=6)
    assert config.n_arms >= 12
    shown = cards.read(arms[0].columns).charts
    assert [one.caption.lower() for one in shown] == [chart]


def test_the_example_report_fits_the_example_roster() -> None:
    arms = service.read_roster(ROSTERS / "clinic.csv", STATES)
    config = service.from_roster(arms, STATES, title="Example", budget=6)
    report = service.read_report(ROSTERS / "clinic_next_week.csv", config)
    assert set(report.states) == {arm.id for arm in arms}
    assert len(report.columns[arms[0].id]) == 7
