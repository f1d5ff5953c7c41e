"""Rosters and reports: what an owner's CSV says, or the row that is wrong with it."""

from pathlib import Path

import pytest
from playing import ROSTER, STATES, clinic

from dopl_core import studies
from dopl_core.studies import CsvError
from dopl_core.studies.collect import cards
from dopl_core.studies.model import roster

ROSTERS = Path(__file__).resolve().parents[3] / "data" / "rosters"


def test_a_roster_gives_arms_with_everything_that_is_known() -> None:
    first = studies.read_roster(ROSTER, STATES)[0]
    assert first == studies.Arm("p1", "Ada", "ward", "Low", {"age": "60", "hours": "1 2 3"})


def test_only_id_and_state_are_needed() -> None:
    arms = studies.read_roster(b"state,id\nLow,a\nHigh,b\n", STATES)
    assert arms[1] == studies.Arm("b", "b", "all", "High", {})


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
    (arm,) = studies.read_roster(content, STATES)
    assert (arm.id, arm.state) == ("a", "Low")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "roster.csv is empty"),
        (b"\n\n", "roster.csv is empty"),
        (b"id,state\n", "roster.csv has no rows"),
        (b"id,label\na,A\n", 'roster.csv row 1: column "state" is missing: rename the column'),
        (b"id,state,id\na,Low,b\n", 'roster.csv row 1: column "id" appears twice'),
        (b"id,state,\na,Low,1\n", "roster.csv row 1: a column has no name"),
        (
            b"id,state\na,Low\nb,High\na,Low\n",
            'roster.csv row 4: id "a" is already in row 2',
        ),
        (
            b"id,state\n1,Low\n2,Low\n3,Low\n4,Low\n5,Low\n6,Hihg\n",
            'roster.csv row 7: state "Hihg" is not one of Low, Moderate, High',
        ),
        (b"id,state\n,Low\n", "roster.csv row 2: id is empty"),
        (
            b"id;state\na;Low;3\n",
            'roster.csv row 2: 3 cells, but 2 columns; put quotes around a cell with a ";" in it',
        ),
        (
            b"id,state\na,Low\nb\n",
            "roster.csv row 3: 1 cells, but 2 columns; "
            "each column needs a cell, which may be empty",
        ),
        (b"\xff\xfei", "roster.csv: not a text file"),
        (b"id,state\nM\x81ller,Low\n", "roster.csv: not a text file"),
        (b"id,state\na\0,Low\n", "roster.csv: not a text file"),
        (b'id,state\n"a,Low\n', "roster.csv: not a CSV file"),
        (b"PK\x03\x04\x14\x00\x08\x08", "roster.csv: this spreadsheet is damaged"),
    ],
)
def test_a_bad_roster_is_refused_with_row_and_reason(content: bytes, message: str) -> None:
    with pytest.raises(CsvError, match=message):
        studies.read_roster(content, STATES)


def test_the_states_of_a_roster_can_be_listed_before_they_are_put_in_order() -> None:
    assert list(studies.count_states(ROSTER)) == ["Low", "High", "Moderate"]


def test_a_file_is_called_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "ward 7.csv"
    file.write_bytes(b"id,state\na,Up\n")
    with pytest.raises(CsvError, match=r'ward 7[.]csv row 2: state "Up"'):
        studies.read_roster(file, STATES)


def test_a_report_gives_states_and_what_is_newly_known() -> None:
    report = studies.read_report(
        b"id,state,hours\np1,High,9\np2,Low,\np3,Low,1\np4,Low,2\n", clinic()
    )
    assert report.states == {"p1": "High", "p2": "Low", "p3": "Low", "p4": "Low"}
    assert report.columns["p1"] == {"hours": "9"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,state,helped\np1,Low,maybe\n", 'states.csv row 2: helped is "maybe": 1 or 0 needed'),
        (b"id,state\np1,Low\np9,Low\n", 'states.csv row 3: id "p9" is not in this study'),
        (b"id,state\np1,Up\n", 'states.csv row 2: state "Up" is not one of'),
    ],
)
def test_a_bad_report_is_refused_with_row_and_reason(content: bytes, message: str) -> None:
    with pytest.raises(CsvError, match=message):
        studies.read_report(content, clinic())


def test_a_list_that_was_exported_can_be_sent_back() -> None:
    arms = [studies.Arm("=1", "one", state="Low"), studies.Arm("b", "two", state="Low")]
    config = studies.from_roster(arms, STATES, title="T", budget=2)
    report = studies.read_report(b"id,state\n'=1,High\nb,Low\n", config)
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
    arms = studies.read_roster(ROSTERS / name, states)
    config = studies.from_roster(arms, states, title="Example", budget=6)
    assert config.n_arms >= 12
    shown = cards.from_roster(arms[0].columns).charts
    assert [one.caption.lower() for one in shown] == [chart]


def test_the_example_report_fits_the_example_roster() -> None:
    arms = studies.read_roster(ROSTERS / "clinic.csv", STATES)
    config = studies.from_roster(arms, STATES, title="Example", budget=6)
    report = studies.read_report(ROSTERS / "clinic_next_week.csv", config)
    assert set(report.states) == {arm.id for arm in arms}
    assert len(report.columns[arms[0].id]) == 7


# --- other people's files


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_files_are_read_however_they_are_encoded(encoding: str) -> None:
    content = "id,state\nMüller,Low\n".encode(encoding)
    sheet = roster.open_sheet(content)
    assert studies.read_roster(sheet, STATES)[0].id == "Müller"
    assert ("Windows" in sheet.notice) == (encoding == "cp1252")


@pytest.mark.parametrize(
    ("columns", "guessed"),
    [
        ("id,state,label,group,age", "id,state,label,group,,"),
        ("Patient No,Full name,Ward,Condition,Age", "Patient No,Condition,Full name,Ward,,"),
        ("Nr,Zustand,Called", "Nr,Zustand,,,Called,"),
        ("a,b,c", ",,,,,"),
    ],
)
def test_columns_are_guessed_by_their_names(columns: str, guessed: str) -> None:
    assert ",".join(roster.guess_columns(columns.split(",")).own) == guessed


def test_columns_may_be_called_as_the_owner_likes_and_cards_show_those_chosen_in_order() -> None:
    content = b"Nr,Name,Zustand,age,note,city\n7,Ada,gut,61,x,Ulm\n"
    columns = roster.Columns("Nr", "Zustand", "Name", "", shown=("city", "age"))
    (arm,) = studies.read_roster(content, ["gut"], columns=columns)
    assert arm == studies.Arm("7", "Ada", "all", "gut", {"city": "Ulm", "age": "61"})
    assert list(arm.columns) == ["city", "age"]


def test_a_state_that_is_empty_is_unknown() -> None:
    assert studies.read_roster(b"id,state\na,\nb,Low\n", STATES)[0].state == ""
    assert studies.count_states(b"id,state\na,\nb,Low\n") == {"Low": 1}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("stabel", "stable", True),
        ("Stable", "stable", True),
        ("very  ill", "very-ill", True),
        ("Moderate", "Modrate", True),
        ("Moderate", "Moderatee", True),
        ("Moderate", "Maderate", True),
        ("kritisch", "Krítisch", True),
        ("stable", "unstable", False),
        ("Stage 1", "Stage 2", False),
        ("low", "lot", False),
        ("1", "2", False),
        ("Poor", "Fair", False),
    ],
)
def test_states_that_look_like_misspellings_of_each_other_are_found(
    one: str, other: str, alike: bool
) -> None:
    assert roster.look_alike([one, other]) == ([(one, other)] if alike else [])
    assert roster.look_alike([other, one]) == ([(other, one)] if alike else [])


def test_a_misspelt_state_is_read_as_its_owner_says() -> None:
    arms = studies.read_roster(b"id,state\na,Lwo\nb,Low\n", STATES, spelt={"Lwo": "Low"})
    assert [arm.state for arm in arms] == ["Low", "Low"]


def test_a_report_may_leave_arms_out_and_states_empty_and_say_who_was_helped() -> None:
    report = studies.read_report(b"id,state,helped\np1,High,1\np2,,0\np3,Low,\n", clinic())
    assert report.states == {"p1": "High", "p2": None, "p3": "Low"}
    assert report.helped == ["p1"]
    assert studies.read_report(b"id,state\np1,High\n", clinic()).helped is None


def test_what_only_lists_have_does_not_come_onto_cards() -> None:
    content = b"week,id,name,group,state,why,helped,hours\n1,p1,Ada,ward,Low,Unsure,1,9\n"
    assert studies.read_report(content, clinic()).columns == {"p1": {"hours": "9"}}


def test_numbers_as_ids_are_known_however_a_spreadsheet_writes_them() -> None:
    arms = [studies.Arm("17", "one", state="Low"), studies.Arm("18", "two", state="Low")]
    config = studies.from_roster(arms, STATES, title="T", budget=2)
    assert studies.read_report(b"id,state\n17.0,High\n18,Low\n", config).states == {
        "17": "High",
        "18": "Low",
    }


def test_those_who_have_left_may_stay_in_the_file_but_have_no_state() -> None:
    arms = [studies.Arm(f"p{n}", "x", state="Low", present=n < 3) for n in range(4)]
    config = studies.from_roster(arms, STATES, title="T", budget=2)
    assert "p3" not in studies.read_report(b"id,state\np1,Low\np3,\n", config).states
    with pytest.raises(CsvError, match='row 2: "p3" has left'):
        studies.read_report(b"id,state\np3,Low\n", config)


def test_the_example_records_fit_the_example_roster_and_have_gaps_and_others() -> None:
    arms = studies.read_roster(ROSTERS / "clinic.csv", STATES)
    config = studies.from_roster(arms, STATES, title="Example", budget=6)
    past = studies.read_history(ROSTERS / "clinic_history.csv", config)
    assert past.moves > 100
    assert past.gaps > 0
    assert past.arms == len(arms) + 2
