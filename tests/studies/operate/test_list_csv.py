"""Lists as CSV: who is on a list to find out what help does, from the learner to every file."""

import csv
import io

import numpy as np
import pytest
from bundles import files
from playing import check_replay, clinic, cohort, report_from

from dopl_core import studies
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import Store, WeekList

STATES = ["Poor", "Fair", "Good"]


@pytest.fixture
def last_finds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listed arm with the highest number is there to find out."""

    def last(self: Dopl, states: object, listed: np.ndarray, where: object = None) -> np.ndarray:
        return listed[-1:]

    monkeypatch.setattr(Dopl, "finds_out", last, raising=False)


def ten(store: Store, **rules: object) -> str:
    return studies.create_study(store, cohort(10, STATES, 3, budget=3, horizon=1, **rules))


def now(store: Store, study: str) -> WeekList:
    [week] = studies.read_lists(store, study, last=1)
    return week


def marked(week: WeekList) -> list[str]:
    return [one.id for one in (*week.everybody, *week.left_out) if one.to_find_out]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.usefixtures("last_finds_out")
def test_who_is_listed_to_find_out_is_marked_in_every_file(store: Store) -> None:
    study = ten(store)
    week = now(store, study)
    last = max(week.listed, key=lambda one: int(one.id[1:])).id
    assert marked(week) == [last]
    shown = rows_of(studies.write_csv(studies.list_columns(week), studies.list_rows(week)))
    exported = rows_of(files(studies.export_bundle(store, study))["lists.csv"].decode())
    for name, rows in (("id", shown), ("arm", exported)):
        assert {row[name]: row["to_find_out"] for row in rows if row["to_find_out"] != "0"} == {
            last: "1"
        }
        [row] = [row for row in rows if row[name] == last]
        assert row["why"].startswith("Listed to find out what help does in ")
        assert row["by_lot"] == "0"


def test_nobody_is_marked_where_the_learner_says_so(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = lambda *_: np.empty(0, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(Dopl, "finds_out", nobody, raising=False)
    study = ten(sqlite_store)
    assert not marked(now(sqlite_store, study))
    assert not any("find out" in str(row) for row in studies.list_rows(now(sqlite_store, study)))


@pytest.mark.usefixtures("last_finds_out")
def test_the_mark_is_kept_in_bundles_and_on_lists_that_the_owner_changes(store: Store) -> None:
    study, rng = ten(store), np.random.default_rng(0)
    report_from(store, study, rng)
    studies.advance(store, study)
    week = now(store, study)
    [last] = marked(week)
    other = next(one.id for one in week.listed if one.id != last)
    studies.change_list(store, study, remove=[other], because="away")
    assert marked(now(store, study)) == [last]
    exported = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    assert marked(now(store, study)) == [last]
    assert studies.export_bundle(store, study) == exported
    studies.change_list(store, study, remove=[last], because="away")
    assert not marked(now(store, study))
    check_replay(store, study)


@pytest.mark.usefixtures("last_finds_out")
def test_who_was_to_find_out_and_is_put_on_again_is_on_by_the_owner(sqlite_store: Store) -> None:
    study = ten(sqlite_store)
    [last] = marked(now(sqlite_store, study))
    studies.change_list(sqlite_store, study, remove=[last], because="away")
    studies.change_list(sqlite_store, study, add=[last], because="is back")
    week = now(sqlite_store, study)
    assert last in {one.id for one in week.listed}
    assert not marked(week)


def test_who_waits_by_lot_finds_nothing_out(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybody = lambda self, states, listed, where=None: listed  # noqa: E731
    monkeypatch.setattr(Dopl, "finds_out", everybody, raising=False)
    study = ten(sqlite_store, by_lot=1)
    week = now(sqlite_store, study)
    assert sorted(marked(week)) == sorted(one.id for one in week.listed if not one.by_lot)
    assert len(marked(week)) == 2


@pytest.mark.usefixtures("last_finds_out")
def test_an_explanation_says_who_is_there_to_find_out_and_not_that_the_line_decides(
    sqlite_store: Store,
) -> None:
    study = ten(sqlite_store)
    week = now(sqlite_store, study)
    [last] = marked(week)
    found = studies.explain(sqlite_store, study, last)
    assert found.where == (
        "On the list, to find out what help does in their state. By the plan they are number "
        f"{found.rank} of 10 in line."
    )
    for arm in (last, week.reserve[0].id):
        said = studies.explain(sqlite_store, study, arm).change
        assert not any("on the list" in one for one in said)


def test_the_learner_is_asked_with_the_list_before_lots_and_the_chances_of_unknown_states(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def finds_out(self, states, listed, where=None):
        asked.append((states.tolist(), listed.tolist(), where))
        return listed[:0]

    monkeypatch.setattr(Dopl, "finds_out", finds_out, raising=False)
    config = clinic(horizon=1, confidence="calibrated", budget=3, by_lot=1)
    study = studies.create_study(sqlite_store, config)
    report = {"p1": "Low", "p2": "High", "p3": "Low"}
    studies.observe(sqlite_store, study, report)
    studies.advance(sqlite_store, study)
    [week] = studies.read_lists(sqlite_store, study, last=1)
    numbers = {one.id: config.arm_number(one.id) for one in (*week.listed, *week.left_out)}
    before = [numbers[one.id] for one in (*week.listed, *week.left_out) if not one.by_lot]
    states, listed, where = asked[-1]
    assert states == [0, 2, 0, -1]
    assert listed == sorted(before)
    assert where[3].sum() == pytest.approx(1)
