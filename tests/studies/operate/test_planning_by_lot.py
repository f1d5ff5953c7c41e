"""Places that are drawn by lot: on lists, in bundles, and the same when it is played again."""

import csv
import io
import zipfile

import pytest
from playing import Clock, clinic, cpap, play

from dopl_core import studies
from dopl_core.studies import Store, StudyError
from dopl_core.studies.operate import help_lists
from dopl_core.studies.store import log_reader


def transitions(content: bytes) -> list[dict[str, str]]:
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        text = bundle.read("transitions.csv").decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_place_by_lot_is_on_the_list_last_and_says_so(store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", budget=3, by_lot=1)
    study = studies.create_study(store, config)
    [week] = studies.read_lists(store, study)
    assert [one.by_lot for one in week.listed] == [False, False, True]
    assert not week.listed[-1].equal
    assert help_lists.why_listed(week.listed[-1], week).startswith("Chosen at random ")
    rows = rows_of(week)
    assert [row["by_lot"] for row in rows if row["reserve"] == "0"] == ["0", "0", "1"]


def rows_of(week: studies.WeekList) -> list[dict[str, str]]:
    """The rows of a list as readers of its CSV see them."""
    text = studies.write_csv(studies.list_columns(week), studies.list_rows(week))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_csv_of_a_list_ends_with_who_waits_by_lot(sqlite_store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", budget=2, by_lot=1)
    study = studies.create_study(sqlite_store, config)
    [week] = studies.read_lists(sqlite_store, study)
    rows, [waiting] = rows_of(week), week.left_out
    assert [row["id"] for row in rows if row["waits"] == "1"] == [rows[-1]["id"]] == [waiting.id]
    assert (rows[-1]["reserve"], rows[-1]["by_lot"]) == ("", "0")  # neither help nor next in line
    assert rows[-1]["why"].startswith("Chosen at random to wait this week")
    to_help = [row["id"] for row in rows if row["reserve"] == "0"]
    assert to_help == [one.id for one in week.listed]


def test_the_csv_of_a_list_ends_with_the_facts_that_the_owner_wants_on_it(
    sqlite_store: Store,
) -> None:
    arms = [
        studies.Arm(f"p{n}", f"P{n}", "all", "Low", {"phone": f"=0{n}", "why": "no"})
        for n in range(4)
    ]
    config = studies.from_roster(
        arms, ["Low", "High"], title="Calls", budget=2, list_columns="phone, why, group", sitting=0
    )
    study = studies.create_study(sqlite_store, config)
    studies.advance(sqlite_store, study)
    [week] = studies.read_lists(sqlite_store, study)
    rows = rows_of(week)
    assert list(rows[0])[-2:] == ["waits", "phone"]  # it has columns why and group of its own
    assert {row["phone"] for row in rows} <= {f"'=0{n}" for n in range(4)}
    assert all("worst off" in row["why"] for row in rows if row["reserve"] == "0")


def test_nobody_waits_where_everybody_can_be_helped(sqlite_store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", budget=4, by_lot=1)
    [week] = studies.read_lists(sqlite_store, studies.create_study(sqlite_store, config))
    assert len(week.listed) == 4
    assert not week.left_out
    assert not any(one.by_lot for one in week.listed)


@pytest.mark.parametrize("make", [cpap, clinic])
def test_lots_are_kept_exported_and_drawn_again_to_the_bit(
    store: Store, clock: Clock, make: object
) -> None:
    study = studies.create_study(store, make(budget=2, by_lot=1))  # type: ignore[operator]
    play(store, study, 30, clock=clock)
    epochs = log_reader.read_log(store, study).epochs
    kept = [epoch.by_lot.tolist() for epoch in epochs]
    assert all(len(epoch.drawn) == len(epoch.left_out) == 1 for epoch in epochs)
    studies.replay_study(store, study)
    exported = studies.export_bundle(store, study)
    lots = [row["listed"] for row in transitions(exported) if row["by_lot"] == "1"]
    assert lots.count("1") == lots.count("0") == len(kept)
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    assert [epoch.by_lot.tolist() for epoch in log_reader.read_log(store, study).epochs] == kept
    assert studies.export_bundle(store, study) == exported


def test_lots_are_fewer_than_the_budget(store: Store) -> None:
    with pytest.raises(
        StudyError, match=r"^by_lot is 2: it must be less than the budget, which is 2$"
    ):
        clinic(by_lot=2)
    study = studies.create_study(store, clinic(budget=3, by_lot=2, horizon=1))
    with pytest.raises(StudyError, match="it must be less than the budget"):
        studies.change_settings(store, study, budget=2)
    studies.change_settings(store, study, budget=2, by_lot=1)
