"""Kept databases and bundles of earlier versions open, replay, and go on.

schema10.db and the bundles of version 3 hold the same three studies, of edition 2:

clinic: a roster with groups, photos and past records, a first sitting, lots, ties, repeats, plain
    pairs, participants' ids; somebody joins, leaves, comes back, is somewhere unknown; reports say
    who was helped, and are corrected; settings change, people are excluded and included; answers
    are undone, changed, flagged, late and refused
armman: simulated and drawn, with two ratings, somebody excluded for a plan
paper: CPAP with the paper's confidence, and practice

The database has an owner's key and session, and links.
"""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from bundles import files
from playing import Clock, check_replay, digest, play

from dopl_core.learning.arithmetic import rounding
from dopl_core.studies import access, arrays, schema, service
from dopl_core.studies.replay import AS_RECORDED, TO_THE_BIT
from dopl_core.studies.service import Store

KEPT = Path(__file__).resolve().parents[1] / "data" / "kept"
VERSION_1 = "kept-version-1-792b0b"  # the study in the kept files of version 1
ROUNDING = "eb8b858a46c1"  # where they were made


def check_how(how: str) -> None:
    """Where they were made, kept studies come out to the bit; elsewhere but for rounding."""
    assert how == TO_THE_BIT or (how.startswith(AS_RECORDED) and rounding() != ROUNDING)


def test_a_database_of_version_1_is_brought_up_to_date_and_goes_on(
    tmp_path: Path, clock: Clock
) -> None:
    file = tmp_path / "old.db"
    shutil.copy(KEPT / "schema1.db", file)
    with sqlite3.connect(file) as raw:
        assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
        kept = raw.execute("SELECT * FROM events ORDER BY seq").fetchall()
    store = service.open_store(f"sqlite:///{file}", clock=clock)
    with store.read() as connection:
        rows = connection.execute(sa.select(schema.events).order_by(schema.events.c.seq)).all()
    assert [tuple(row)[:9] for row in rows] == kept  # and no chain
    learner = service.load_learner(store, VERSION_1)
    assert (learner.counts.total(), learner.visits.sum(), learner.episode) == (10, 160, 4)
    assert service.answers(store, VERSION_1).outcome.value_counts()["undone"] == 3
    assert play(store, VERSION_1, 30, clock=clock) > 20
    now = digest(store, VERSION_1)
    with store.write() as connection:
        assert connection.execute(sa.delete(schema.snapshots)).rowcount == 1
    assert digest(store, VERSION_1) == now
    store.close()


@pytest.mark.parametrize(
    ("version", "studies", "edition"), [("0002", 1, 1), ("0003", 3, 1), ("0010", 3, 2)]
)
def test_a_database_of_every_version_opens_goes_on_and_replays(
    tmp_path: Path, clock: Clock, version: str, studies: int, edition: int
) -> None:
    file = tmp_path / "old.db"
    shutil.copy(KEPT / f"schema{int(version)}.db", file)
    with sqlite3.connect(file) as raw:
        assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [(version,)]
    store = service.open_store(f"sqlite:///{file}", clock=clock)
    found = service.list_studies(store)
    assert len(found) == studies
    clock.wait(10**6)
    for study in found:
        assert study.config.edition == edition
        before = service.load_learner(store, study.id)
        check_replay(store, study.id, check_how)
        labels = [state.label for state in study.config.states]
        assert play(store, study.id, 30, clock=clock, states=labels) > 10
        assert check_replay(store, study.id).counts.total() > before.counts.total()
    store.close()


def test_keys_and_links_of_a_kept_database_still_open_what_they_opened(tmp_path: Path) -> None:
    shutil.copy(KEPT / "schema10.db", tmp_path / "old.db")
    store = service.open_store(f"sqlite:///{tmp_path}/old.db", clock=Clock())
    [clinic] = [study.id for study in service.list_studies(store) if "clinic" in study.id]
    assert access.is_owner(store, "wwD7vqFJku_M6lKoyNpDDqN52k_oRS_8")
    assert access.has_session(store, "2cktkaY6VBez05uQhDeTya8fqG4bVxSU")
    annotator = access.who(store, "sjzdVxJ3MaaWHUQNZzQTxA")
    reader = access.who(store, "qqgy5HN7CM-tmjqhvP08ag", "list")
    assert annotator is not None
    assert reader is not None
    assert (annotator.study, annotator.annotator) == (clinic, "Ann")
    assert (reader.study, reader.annotator) == (clinic, "Nurse")
    links = {link.annotator: link.revoked_at is not None for link in access.invites(store, clinic)}
    assert links == {"Ann": False, "Gone": True}
    assert service.count_photos(store, clinic) == 2
    assert service.excluded(store, clinic) == ["Bob"]
    store.close()


def test_a_bundle_of_version_1_is_imported(store: Store, clock: Clock) -> None:
    assert service.import_bundle(store, KEPT / "bundle1.zip") == VERSION_1
    learner = service.load_learner(store, VERSION_1)
    assert (learner.counts.total(), learner.visits.sum(), learner.episode) == (10, 160, 4)
    assert play(store, VERSION_1, 20, clock=clock) > 10
    now = service.export_bundle(store, VERSION_1)
    assert json.loads(files(now)["study.json"])["schema"] == 3
    replayed = service.replay_bundle(now)
    assert arrays.digest(replayed.state()) == digest(store, VERSION_1)


@pytest.mark.parametrize("kept", ["armman", "clinic", "paper"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_bundle_of_every_version_is_imported_replays_and_goes_on(
    store: Store, clock: Clock, version: int, kept: str
) -> None:
    """Of version 2, before editions: simulated and drawn, a roster's, the paper's."""
    old = KEPT / f"bundle{version}_{kept}.zip"
    about = json.loads(files(old.read_bytes())["study.json"])
    assert about["schema"] == version
    edition = about["config"].get("edition", 1)
    assert edition == version - 1
    replayed = service.replay_bundle(old, check_how)
    study = service.import_bundle(store, old)
    assert digest(store, study) == arrays.digest(replayed.state())
    clock.wait(10**6)
    labels = [state.label for state in service.get_study(store, study).config.states]
    assert play(store, study, 20, clock=clock, states=labels) > 5
    now = service.export_bundle(store, study)
    about = json.loads(files(now)["study.json"])
    assert (about["schema"], about["config"]["edition"]) == (3, edition)
    assert arrays.digest(service.replay_bundle(now).state()) == digest(store, study)


def test_what_a_bundle_of_version_3_holds_is_what_is_exported_again(sqlite_store: Store) -> None:
    """All but codebook.md, whose words may become better."""
    for kept in ("armman", "clinic", "paper"):
        old = files((KEPT / f"bundle3_{kept}.zip").read_bytes())
        study = service.import_bundle(sqlite_store, KEPT / f"bundle3_{kept}.zip")
        now = files(service.export_bundle(sqlite_store, study))
        assert {name for name in old if old[name] != now[name]} <= {"codebook.md"}
