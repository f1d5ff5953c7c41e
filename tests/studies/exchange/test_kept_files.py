"""Kept databases and bundles of earlier versions open, replay, and go on.

schema10.db and the bundles of version 3 hold the same three studies; those of version 4 went on:

clinic: a roster with groups, photos and past records, a first sitting, lots, ties, repeats, plain
    pairs, participants' ids; somebody joins, leaves, comes back, is somewhere unknown; reports say
    who was helped, and are corrected; settings change, people are excluded and included; answers
    are undone, changed, flagged, late and refused
armman: simulated and drawn, with two ratings, somebody excluded for a plan
paper: CPAP with the paper's confidence, and practice

The database has an owner's key and session, and links.

maths7_clinic.zip, maths8_clinic.zip: ordered states, columns and places by lot, with plans of
    versions 7 and 8 of the maths; a first sitting, a report that was undone, one that was corrected
schema14.db, bundle6_events.zip: a study with one of every event, a protocol among them; its plans
    are of version 9 of the maths. The database is a copy without a write-ahead log
"""

import io
import json
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from bundles import files
from playing import Clock, check_replay, digest, play

from dopl_core import studies
from dopl_core.studies import Store, access
from dopl_core.studies.exchange import bundle
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.store import blobs

KEPT = Path(__file__).resolve().parents[2] / "data" / "kept"


def check_how(how: str) -> None:
    """Other maths made the plans of kept studies, so replay follows the record."""
    assert "replay follows the record" in how


@pytest.mark.parametrize(("version", "count"), [("0010", 3), ("0014", 1)])
def test_a_database_of_every_version_opens_goes_on_and_replays(
    tmp_path: Path, clock: Clock, version: str, count: int
) -> None:
    file = tmp_path / "old.db"
    shutil.copy(KEPT / f"schema{int(version)}.db", file)
    with sqlite3.connect(file) as raw:
        assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [(version,)]
    store = studies.open_store(f"sqlite:///{file}", clock=clock)
    found = studies.list_studies(store)
    assert len(found) == count
    clock.wait(10**6)
    for study in found:
        before = studies.load_learner(store, study.id)
        check_replay(store, study.id, *([check_how] if version == "0010" else []))
        labels = [state.label for state in study.config.states]
        assert play(store, study.id, 30, clock=clock, states=labels) > 10
        assert check_replay(store, study.id).counts.total() > before.counts.total()
    store.close()


def test_keys_and_links_of_a_kept_database_still_open_what_they_opened(tmp_path: Path) -> None:
    shutil.copy(KEPT / "schema10.db", tmp_path / "old.db")
    store = studies.open_store(f"sqlite:///{tmp_path}/old.db", clock=Clock())
    [clinic] = [study.id for study in studies.list_studies(store) if "clinic" in study.id]
    assert access.is_owner(store, "wwD7vqFJku_M6lKoyNpDDqN52k_oRS_8")
    assert access.has_session(store, "2cktkaY6VBez05uQhDeTya8fqG4bVxSU", "any.example")
    annotator = access.find_invite(store, "sjzdVxJ3MaaWHUQNZzQTxA")
    reader = access.find_invite(store, "qqgy5HN7CM-tmjqhvP08ag", "list")
    assert annotator is not None
    assert reader is not None
    assert (annotator.study, annotator.annotator) == (clinic, "Ann")
    assert (reader.study, reader.annotator) == (clinic, "Nurse")
    links = {link.annotator: link.revoked_at is not None for link in access.invites(store, clinic)}
    assert links == {"Ann": False, "Gone": True}
    assert studies.count_photos(store, clinic) == 2
    assert studies.excluded_annotators(store, clinic) == ["Bob"]
    store.close()


@pytest.mark.parametrize("kept", ["armman", "clinic", "paper"])
@pytest.mark.parametrize("version", [3, 4])
def test_a_bundle_of_every_version_is_imported_replays_and_goes_on(
    store: Store, clock: Clock, version: int, kept: str
) -> None:
    old = KEPT / f"bundle{version}_{kept}.zip"
    about = json.loads(files(old.read_bytes())["study.json"])
    assert about["schema"] == version
    replayed = studies.replay_bundle(old, check_how)
    study = studies.import_bundle(store, old)
    assert digest(store, study) == blobs.digest(replayed.state())
    clock.wait(10**7)
    labels = [state.label for state in studies.get_study(store, study).config.states]
    assert play(store, study, 20, clock=clock, states=labels) > 5
    now = studies.export_bundle(store, study)
    about = json.loads(files(now)["study.json"])
    assert about["schema"] == bundle.VERSION
    assert blobs.digest(studies.replay_bundle(now).state()) == digest(store, study)


@pytest.mark.parametrize(
    ("maths", "kept"),
    [(7, "maths7_clinic.zip"), (8, "maths8_clinic.zip"), (9, "bundle6_events.zip")],
)
def test_a_study_planned_with_this_version_of_the_maths_is_imported_replays_and_goes_on(
    sqlite_store: Store, clock: Clock, maths: int, kept: str
) -> None:
    file = KEPT / kept
    log = bundle.read(file)
    assert {body_of(event).maths for event in log.events if event.kind == "planned"} == {maths}
    study = studies.import_bundle(sqlite_store, file)
    assert digest(sqlite_store, study) == blobs.digest(studies.replay_bundle(file).state())
    clock.wait(10**7)
    assert play(sqlite_store, study, 10, clock=clock) > 5
    check_replay(sqlite_store, study)


def test_what_a_bundle_of_version_3_holds_is_what_is_exported_again(sqlite_store: Store) -> None:
    """Except wordings (codebook.md, reasons in lists.csv), the queue, and settings long gone."""
    for kept in ("armman", "clinic", "paper"):
        old = files((KEPT / f"bundle3_{kept}.zip").read_bytes())
        study = studies.import_bundle(sqlite_store, KEPT / f"bundle3_{kept}.zip")
        now = files(studies.export_bundle(sqlite_store, study))
        was, about = (json.loads(bundle.pop("study.json")) for bundle in (old, now))
        both = was["config"].keys() & about["config"].keys()  # settings come and go
        for one in (was, about):
            one["config"] = {key: one["config"][key] for key in both}
        assert (was.pop("closed"), was.pop("schema"), about.pop("schema")) == (
            [],
            3,
            bundle.VERSION,
        )
        assert about == was
        for name in ("lists.csv", "duels.csv"):
            tables = [pd.read_csv(io.BytesIO(bundle.pop(name))) for bundle in (old, now)]
            kept_columns = tables[0].columns.drop("why", errors="ignore")  # new ones are at the end
            assert tables[0][kept_columns].equals(tables[1][kept_columns])
        assert now.keys() - old.keys() == {"queue.csv", "reliability.csv"}
        assert {name for name in old if old[name] != now[name]} <= {"codebook.md"}
