"""Files that are no bundles, and bundles that contradict themselves, are refused."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from bundles import edited, files, zipped
from playing import STATES, Clock, clinic, played

from dopl_core import studies
from dopl_core.studies import CsvError, Store
from dopl_core.studies.exchange import bundle, bundle_zip
from dopl_core.studies.model.errors import ReplayError
from dopl_core.studies.replay.replay import replay


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A clinic's bundle to spoil."""
    clock = Clock()
    store = studies.open_store(f"sqlite:///{tmp_path_factory.mktemp('b')}/b.db", clock=clock)
    study = played(store, clock, clinic(ratings=2))
    return studies.export_bundle(store, study)


def test_files_that_are_no_bundles_are_refused(
    sqlite_store: Store, exported: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = files(exported)
    latin = members | {"duels.csv": members["duels.csv"].replace(b"Ann", "Änn".encode("latin-1"))}
    broken = exported[: len(exported) // 2]
    for spoilt, message in (
        (b"", "not a zip file"),
        (b"no zip", "not a zip file"),
        (broken, "not a zip file"),
        (zipped({}), "study.json is missing"),
        (zipped({k: v for k, v in members.items() if k != "plans.csv"}), "plans.csv is missing"),
        (zipped({k: v for k, v in members.items() if k != "arrays.npz"}), "arrays.npz is missing"),
        (zipped(members | {"arrays.npz": b"junk"}), "arrays.npz: not arrays"),
        (zipped(members | {"duels.csv": b""}), "duels.csv is empty"),
        (zipped(members | {"duels.csv": b"a,b\n1,2\n"}), "duels.csv row 1: the columns are not"),
        (zipped(members | {"study.json": b"{"}), "study.json line 1: not JSON"),
        (zipped(members | {"study.json": b"[]"}), "is missing"),
        (zipped(latin), r"duels.csv line \d+: not UTF-8"),
    ):
        with pytest.raises(CsvError, match=message):
            studies.import_bundle(sqlite_store, spoilt)
    with pytest.raises(OSError, match="none"):
        studies.import_bundle(sqlite_store, tmp_path / "none.zip")
    monkeypatch.setattr(bundle_zip, "LARGEST", 1000)
    with pytest.raises(CsvError, match="not a bundle of dopl"):
        studies.import_bundle(sqlite_store, exported)
    assert studies.list_studies(sqlite_store) == []


def test_paths_inside_a_zip_are_never_followed(
    sqlite_store: Store, exported: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = zipped(files(exported) | {"../../evil.txt": b"x", "../evil.txt": b"x"})
    studies.import_bundle(sqlite_store, hostile)
    assert not list(tmp_path.parent.glob("evil.txt"))


def test_replay_says_where_a_changed_history_parts_from_what_was_recorded(
    sqlite_store: Store, clock: Clock
) -> None:
    # Calibrated: with the paper's confidence an answer far from the reference changes no estimate.
    study = played(sqlite_store, clock, clinic(ratings=2, confidence="calibrated"))
    exported = studies.export_bundle(sqlite_store, study)

    def flip(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["outcome"] == "left" and row["episode"] == "1")
        row.update(outcome="right", winner_arm=row["loser_arm"], loser_arm=row["winner_arm"])

    with pytest.raises(
        CsvError, match=r'duels.csv row \d+: outcome is "right", the log has "left"'
    ):
        studies.replay_bundle(edited(exported, "duels.csv", flip))

    def flip_in_the_log(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["kind"] == "answered" and row["outcome"] == "left")
        row["outcome"] = "right"

    both = edited(edited(exported, "duels.csv", flip), "events.csv", flip_in_the_log)
    with pytest.raises(CsvError, match=r"events.csv: not the log that was exported"):
        studies.replay_bundle(both)
    told = bundle.read(exported)
    place = next(n for n, shown in enumerate(told.impressions) if shown.outcome == "left")
    told.impressions[place] = replace(told.impressions[place], outcome="right")
    for number, event in enumerate(told.events):
        if event.impression == place and event.kind == "answered":
            told.events[number] = replace(event, outcome="right")
    with pytest.raises(ReplayError, match=r"plan \d is not reproduced"):
        replay(told)

    def move(rows: list[dict[str, str]]) -> None:
        """The first epoch lists another arm as helped."""
        helped = next(row for row in rows[:4] if row["listed"] == "1")
        other = next(row for row in rows[:4] if row["listed"] == "0")
        for mark in ("activated", "listed"):
            helped[mark], other[mark] = "0", "1"

    with pytest.raises(ValueError, match=r"no such arm helped|helps other arms"):
        studies.replay_bundle(edited(exported, "transitions.csv", move))


def test_only_who_is_on_the_list_by_the_plan_is_there_to_find_out(exported: bytes) -> None:
    def mark(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["kind"] == "listed")
        body = json.loads(row["body"])
        next(one for one in body["list"] if one["reserve"])["to_find_out"] = True
        row["body"] = json.dumps(body)

    with pytest.raises(
        CsvError, match=r'events.csv row \d+: "p\d" is there to find out what help does, and is not'
    ):
        studies.replay_bundle(edited(exported, "events.csv", mark))


def test_states_are_the_owners_words(sqlite_store: Store, clock: Clock) -> None:
    study = played(sqlite_store, clock, clinic(), 12)
    rows = csv.DictReader(
        io.StringIO(files(studies.export_bundle(sqlite_store, study))["transitions.csv"].decode())
    )
    assert {row["state"] for row in rows} <= set(STATES)
