"""Whoever changes a field of a study's record is found by replay, or by a seal."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from bundles import OURS, files, zipped
from playing import Clock, check_replay, clinic, everyone, one_answer, play, trial

from dopl_core import cli, studies
from dopl_core.studies import Ask, CsvError, Store, StudyError, access
from dopl_core.studies.model import config_json
from dopl_core.studies.model.config_json import fields_to_json
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.store import inserts, tables

# Every column of every table: a new one must be classified here.
COVERED = {
    "studies": "title status made_at seq heard episode epoch changes in_force chain",
    "configs": "content",
    "annotators": "name joined_at consented",
    "events": "seq at kind annotator impression duel outcome body chain salt sealed",
    "plans": "plan made_at engine value random_value multiplier changed answers",
    "epochs": "episode epoch states arms next_states helped source columns by_lot",
    "duels": "episode epoch number purpose left_arm left_state right_arm right_state",
    "impressions": "duel annotator session shown_at outcome answered_at response_ms trip_ms narrow "
    "participant",
    "photos": "arm content",
}
QUEUE = {  # what is asked next, and pace; a change harms no answer
    "studies": "asked given planner planner_until planner_step",
    "annotators": "practised repeats last link participant code",
    "duels": "id ratings given held free",
    "impressions": "id expires_at",
}
DERIVED = {  # computed again from the log where it is damaged, the key of a cache, or a duration
    "studies": "config_digest changes_chain in_force_chain",
    "annotators": "answers",
    "plans": "digest arrays seconds",
    "epochs": "digest",
    "snapshots": "seq log digest arrays",
}
# Not of the record:
ACCESS = {"invites", "keys", "sessions", "members", "audit", "seats", "drafts", "mappings"}
ACCESS |= {"unscrubbed"}


def columns_in(*kinds: dict[str, str]) -> set[tuple[str, str]]:
    return {(t, name) for kind in kinds for t, names in kind.items() for name in names.split()}


def test_every_column_is_classified() -> None:
    """As covered by the log, as the queue, or as derived: add a new one to the tables above."""
    there = {
        (table.name, column.name)
        for table in tables.metadata.sorted_tables
        for column in table.c
        if table.name not in ACCESS and column.name != "study"
    } - {("studies", "id")}
    assert there == columns_in(COVERED, QUEUE, DERIVED)
    assert sum(len(columns_in(kind)) for kind in (COVERED, QUEUE, DERIVED)) == len(there)


def lived(store: Store, clock: Clock) -> str:
    why = {"reason_every": 1, "reason_tags": "age"}
    config = clinic(ratings=2, ties_allowed=True, sitting=2, repeat_every=3, by_lot=1, **why)
    study = studies.create_study(store, config, protocol=trial(config))
    studies.keep_photos(store, study, {"p1": b"one", "p2": b"two"})
    play(store, study, 30, clock=clock)
    found = studies.next_duel(store, study, "Panel", participant="id-7")
    assert isinstance(found, Ask)
    times = {"response_ms": 900, "trip_ms": 40, "narrow": True, "too_fast_ms": 0}
    studies.answer(store, found.impression, "left", **times)
    studies.flag(store, found.impression, found_name(store, study), "look")
    studies.give_reason(store, found.impression, found_name(store, study), ["age"], "older")
    studies.change_settings(store, study, title="Other", consent="We keep your answers.")
    studies.agree(store, study, "Ann", studies.coming_config(store, study).consent_version)
    studies.close_duels(store, study)
    studies.advance(store, study)
    studies.erase_annotator(store, study, "Bob")
    if studies.read_lists(store, study):
        studies.observe(store, study, everyone("Low"), {"p1": {"hours": "9"}}, helped=["p2", "p3"])
    check_replay(store, study)
    return study


def found_name(store: Store, study: str) -> str:
    frame = studies.answers(store, study)
    return str(frame[frame.participant == "id-7"].annotator.iloc[-1])


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if value[:1] == "{":
        return value.replace("9", "8", 1) if "9" in value else value.replace("a", "e", 1)
    words = {"left": "right", "right": "left", "tie": "left", "skip": "left", "expired": "left"}
    words |= {"policy": "sitting", "sitting": "repeat", "repeat": "gold", "gold": "repeat"}
    words |= {"running": "paused", "undone": "expired", "owner": "simulated"}
    words |= {"shown": "expired", "answered": "refused", "lagrangian": "highs"}
    return words.get(value, f"{value}x")


def changes(store: Store, study: str, table: str, name: str) -> Iterator[tuple[Any, Any, Any]]:
    """Where, the old and another value: of two rows that have one."""
    about = tables.metadata.tables[table]
    of = about.c.id if table == "studies" else about.c.study
    with store.read() as connection:
        rows = connection.execute(sa.select(about).where(of == study)).mappings().all()
    known = [row for row in rows if row[name] is not None and row[name] != b""]
    assert known, f"{table}.{name}: the study that was lived has none"
    for row in random.Random(f"{table}.{name}").sample(known, min(2, len(known))):
        key = sa.and_(*(column == row[column.name] for column in about.primary_key.columns))
        after = sa.and_(
            *(
                column == (other(row[name]) if column.name == name else row[column.name])
                for column in about.primary_key.columns
            )
        )
        yield (about, key, after), row[name], other(row[name])


def test_a_change_of_any_single_field_is_refused(store: Store, clock: Clock) -> None:
    study = lived(store, clock)
    missed = []
    for table, name in sorted(columns_in(COVERED)):
        for (about, key, after), old, new in changes(store, study, table, name):
            try:
                with store.write() as connection:
                    connection.execute(sa.update(about).where(key).values({name: new}))
            except sa.exc.IntegrityError:
                continue  # the database refuses it
            store.heads.clear()
            try:
                studies.replay_study(store, study)
                missed.append((table, name, old, new))
            except OURS:
                pass
            with store.write() as connection:
                connection.execute(sa.update(about).where(after).values({name: old}))
    assert missed == []
    store.configs.clear()
    check_replay(store, study)


def test_the_configuration_of_an_imported_study_is_compared(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another version of dopl wrote it, whose settings were others."""
    with monkeypatch.context() as older:
        written = config_json.to_json
        older.setattr(inserts, "to_json", lambda one: without_a_setting(written(one)))
        study = studies.create_study(store, clinic())
    one_answer(store, study, "Ann")
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    studies.replay_study(store, study)
    assert studies.export_bundle(store, study) == content
    about = json.loads(files(content)["study.json"])
    about["config"]["arms"][0]["name"] = "Somebody else"
    forged = zipped(files(content) | {"study.json": json.dumps(about).encode()})
    with pytest.raises(CsvError, match=r"the configuration \(roster, names, settings\) is not"):
        studies.replay_bundle(forged)
    with store.write() as connection:
        connection.execute(
            sa.update(tables.configs).values(content=fields_to_json(about["config"]))
        )
    store.configs.clear()
    with pytest.raises(LogError, match="the configuration"):
        studies.replay_study(store, study)


def without_a_setting(text: str) -> str:
    return fields_to_json(
        {name: value for name, value in json.loads(text).items() if name != "why"}
    )


def test_a_seal_proves_that_nothing_before_it_was_changed(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, clinic(sitting=2))
    one_answer(store, study, "Ann")
    seal = str(studies.seal_study(store, study))
    play(store, study, 10, clock=clock)
    studies.replay_study(store, study, seal=seal)
    content = studies.export_bundle(store, study)
    studies.replay_bundle(content, seal=f"  {seal}\n")
    # Somebody who can write changes an answer and computes every digest anew.
    e = tables.events.c
    with store.write() as connection:
        said = sa.update(tables.events).where(e.study == study, e.kind == "joined")
        connection.execute(said.values(at=e.at + 1))
        a = tables.annotators
        connection.execute(sa.update(a).values(joined_at=a.c.joined_at + 1))
        before = None
        rows = sa.select(tables.events).where(e.study == study).order_by(e.seq)
        for event in connection.execute(rows).mappings().all():
            before = inserts.chain(before, dict(event))
            here = sa.update(tables.events).where(e.study == study, e.seq == event["seq"])
            connection.execute(here.values(chain=before))
        connection.execute(sa.update(tables.studies).values(chain=before))
    store.heads.clear()
    studies.replay_study(store, study)  # it replays
    with pytest.raises(LogError, match="was changed since it was sealed on 2026-"):
        studies.replay_study(store, study, seal=seal)
    forged = studies.export_bundle(store, study)
    with pytest.raises(LogError, match="was changed since it was sealed"):
        studies.replay_bundle(forged, seal=seal)


def test_a_seal_is_of_its_study_and_of_events_that_are_there(sqlite_store: Store) -> None:
    one, two = (studies.create_study(sqlite_store, clinic()) for _ in range(2))
    seal = studies.seal_study(sqlite_store, one)
    with pytest.raises(LogError, match="the seal is of study"):
        studies.replay_study(sqlite_store, two, seal=str(seal))
    with pytest.raises(LogError, match="ends before event 99"):
        studies.replay_study(sqlite_store, one, seal=str(seal._replace(seq=99)))
    for text in ("", "x", str(seal)[:-9], str(seal).replace("dopl-seal", "seal")):
        with pytest.raises(StudyError, match="is not a seal"):
            studies.replay_study(sqlite_store, one, seal=text)


def test_a_signed_seal_needs_the_key_that_signed_it(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = studies.create_study(sqlite_store, clinic())
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    key, other = tmp_path / "key", tmp_path / "other"
    key.write_text(f"{access.make_owner_key(sqlite_store)}\n")
    other.write_text("something else")
    with pytest.raises(SystemExit, match="not the owner's key"):
        cli.main(["seal", study, "--key", str(other)])
    cli.main(["seal", study, "--key", str(key)])
    signed = capsys.readouterr().out
    cli.main(["replay", study, "--seal", signed])  # without the key it is a seal as any
    assert "reproduced" in capsys.readouterr().out
    cli.main(["replay", study, "--seal", signed, "--key", str(key)])
    assert "reproduced" in capsys.readouterr().out
    line = signed.rpartition(" ")[0]
    one = studies.seal_study(sqlite_store, study)
    for file, text in ((other, signed), (key, line), (key, f"{line} {'0' * 64}")):
        with pytest.raises(SystemExit, match="not signed with this key"):
            cli.main(["replay", study, "--seal", text, "--key", str(file)])
    moved = signed.replace(one.digest, "0" * 64)
    with pytest.raises(SystemExit, match="not signed with this key"):
        cli.main(["replay", study, "--seal", moved, "--key", str(key)])


def test_the_commands_print_and_check_a_seal(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = studies.create_study(sqlite_store, clinic())
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    cli.main(["seal", study])
    seal = capsys.readouterr().out
    assert seal.startswith(f"dopl-seal {study} ")
    cli.main(["replay", study, "--seal", seal])
    assert "reproduced to the bit" in capsys.readouterr().out
