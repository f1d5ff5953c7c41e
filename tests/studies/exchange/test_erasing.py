"""After an erasure nothing says who was erased, and the study verifies, replays and goes on."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from erased_clinic import PERSON, PHOTO, check_gone, filled, on_disk
from named_clinic import COMMENT, NAMES, SECRETS, config, found_in, reason_of
from playing import Clock, check_replay, clinic, cpap, digest, one_answer, play

from dopl_core import cli, studies
from dopl_core.studies import Ask, Store, StudyError, access
from dopl_core.studies.exchange import erasing
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.operate import planning
from dopl_core.studies.replay.learner_from_log import load_learner
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.scrub import needs_scrub
from dopl_core.studies.store.transaction import write_study

KEPT = Path(__file__).resolve().parents[2] / "data" / "kept"
WEEKS = 7 * 24 * 3600


def test_nothing_says_who_an_erased_person_was(
    store: Store, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = filled(store)
    seal = str(studies.seal_study(store, study))
    counted = load_learner(store, study).counts.total()
    before = on_disk(store, tmp_path)
    assert PHOTO in before
    done = studies.erase_person(store, study, "Pat-017")
    assert (done.what, done.name, done.scrubbed) == ("person", "erased-1", True)
    check_gone(store, study, tmp_path, PERSON)
    how: list[str] = []
    studies.replay_study(store, study, how.append, seal=seal)  # made before the erasure
    assert "2 of 2 plans were made before people were erased" in how[0]
    assert "Personal data were erased: erased-annotator-1 on 2026-09-21, erased-1 on" in how[0]
    assert load_learner(store, study).counts.total() == counted
    assert not {a.id: a for a in studies.coming_config(store, study).arms}["erased-1"].present
    with pytest.raises(StudyError, match="was erased already"):
        studies.erase_person(store, study, "erased-1")
    # The next plan is computed from what is left, and again to the bit.
    studies.observe(store, study, {"Pat-018": "Low"}, {"Pat-018": {"note": "new"}})
    assert studies.advance(store, study)
    check_replay(store, study, how.append)
    assert "2 of 3 plans were made before people were erased" in how[-1]
    content = studies.export_bundle(store, study)
    learner = digest(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    assert digest(store, study) == learner
    studies.replay_study(store, study, seal=seal)


def test_the_next_in_line_takes_the_place_of_a_person_who_is_erased(
    store: Store, clock: Clock
) -> None:
    arms = [studies.Arm(f"p{n}", f"Name {n}", "all", "Low") for n in range(9)]
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=3, practice=False)
    study = studies.create_study(store, config)
    [week] = studies.read_lists(store, study)
    place, (next_up, second) = week.listed[0].id, [one.id for one in week.reserve]
    studies.erase_person(store, study, place)
    [after] = studies.read_lists(store, study)
    assert {one.id for one in after.listed} == {one.id for one in week.listed} - {place} | {next_up}
    assert [(one.id, one.because) for one in after.removed] == [("erased-1", "")]
    check_replay(store, study)
    # Nor is somebody who is next in line offered for a place, or moves up, once they are erased.
    assert second in {one.id for one in after.reserve}
    studies.erase_person(store, study, second)
    [after] = studies.read_lists(store, study)
    assert not {"erased-1", "erased-2"} & {one.id for one in (*after.listed, *after.reserve)}
    studies.change_list(store, study, remove=[next_up], because="on holiday")
    [after] = studies.read_lists(store, study)
    assert len(after.listed) == len(week.listed)
    assert not {"erased-1", "erased-2"} & {one.id for one in (*after.listed, *after.reserve)}
    check_replay(store, study)
    studies.replay_bundle(studies.export_bundle(store, study))
    studies.observe(store, study, dict.fromkeys(studies.present_states(store, study), "Low"))
    assert studies.advance(store, study)
    check_replay(store, study)


def test_nothing_says_who_erased_annotators_were(store: Store, tmp_path: Path) -> None:
    study = filled(store)
    token = access.invite(store, study, NAMES[0])
    seal = str(studies.seal_study(store, study))
    studies.erase_annotator(store, study, NAMES[0])
    panel = studies.participant_name("Panel A", "panel-7f3a")
    studies.erase_annotator(store, study, panel, answers=True)
    gone = (reason_of(NAMES[0]), reason_of(panel))
    check_gone(store, study, tmp_path, ("Zoë Quist", "Quist", COMMENT, "panel-7f3a", *gone))
    assert found_in(studies.export_bundle(store, study), (reason_of(NAMES[1]),))  # not erased
    studies.replay_study(store, study, seal=seal)
    assert access.find_invite(store, token) is None
    assert "erased-annotator-3" in studies.excluded_annotators(store, study)
    for do in (studies.include, studies.next_duel, access.invite):
        with pytest.raises(StudyError, match="erased"):
            do(store, study, "erased-annotator-3")
    with pytest.raises(StudyError, match='nobody called "Nobody" has come'):
        studies.erase_annotator(store, study, "Nobody")


def test_limits_from_the_beginning_name_nobody_who_was_erased(store: Store, tmp_path: Path) -> None:
    """Zoë Quist never came; her name stands in the configuration and in a change of it."""
    text = "[Zoë Quist]\ngroup = Zürich-West\nnever = Pat-019, Pat-020\n[Bo]\ngroup = Zürich-West"
    study = studies.create_study(store, replace(config(), annotator_limits=text))
    access.invite(store, study, "Zoë Quist")
    studies.limit_annotator(store, study, "Cy", {}, ["Pat-019"])
    seal = str(studies.seal_study(store, study))
    studies.judging(store, study)  # and this process remembers it
    studies.erase_annotator(store, study, "Zoë Quist")
    check_gone(store, study, tmp_path, ("Zoë Quist", "Quist"))
    limits = studies.coming_config(store, study).limits
    assert limits.keys() == {"Bo", "Cy"}
    studies.erase_person(store, study, "Pat-019")
    check_gone(store, study, tmp_path, ("Pat-019", "Ångström", "@555019"))
    assert studies.coming_config(store, study).limits == {"Bo": limits["Bo"]}
    studies.replay_study(store, study, seal=seal)


def test_what_an_erased_annotator_had_open_goes_to_others(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic())
    opened = studies.next_duel(sqlite_store, study, "Ann")
    assert isinstance(opened, Ask)
    studies.withdraw(sqlite_store, study, "Ann")
    with pytest.raises(StudyError, match="has withdrawn"):
        studies.answer(sqlite_store, opened.impression, "left", too_fast_ms=0)
    one_answer(sqlite_store, study, "Bob")
    check_replay(sqlite_store, study)


def test_an_anonymous_study_is_left_when_everybody_is_erased(store: Store, tmp_path: Path) -> None:
    study = filled(store)
    seal = str(studies.seal_study(store, study))
    studies.erase_everybody(store, study)
    check_gone(store, study, tmp_path, (*SECRETS, *PERSON))
    studies.replay_study(store, study, seal=seal)
    assert studies.get_study(store, study).status == "closed"
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content


def test_answers_about_an_erased_person_leave_the_next_plans(
    sqlite_store: Store, clock: Clock
) -> None:
    store = sqlite_store
    study = studies.create_study(store, clinic(horizon=1, ratings=2))
    play(store, study, 40, clock=clock)
    answers = studies.answers(store, study)
    counts = answers.outcome.isin(["left", "right"])
    about = counts & ((answers.left_arm == "p1") | (answers.right_arm == "p1"))
    assert about.any()
    moves = load_learner(store, study).visits
    assert moves[0].any()
    studies.erase_person(store, study, "p1", answers=True)
    learner = check_replay(store, study)
    assert learner.counts.total() == counts.sum() - about.sum()
    assert not learner.visits[0].any()
    assert (learner.visits[1:] == moves[1:]).all()
    play(store, study, 20, clock=clock)
    check_replay(store, study)


def tampered(store: Store, study: str, seq: int, **values: object) -> None:
    e = tables.events.c
    with store.write() as connection:
        here = sa.update(tables.events).where(e.study == study, e.seq == seq)
        connection.execute(here.values(**values))
    store.heads.clear()


def chained_again(store: Store, study: str) -> None:
    """What somebody does who can write to the database and changes the log."""
    e, before = tables.events.c, None
    with store.write() as connection:
        rows = sa.select(tables.events).where(e.study == study).order_by(e.seq)
        for event in connection.execute(rows).mappings().all():
            before = inserts.chain(before, dict(event))
            here = sa.update(tables.events).where(e.study == study, e.seq == event["seq"])
            connection.execute(here.values(chain=before))
        connection.execute(sa.update(tables.studies).values(chain=before))


def test_what_stands_in_place_of_erased_data_cannot_be_changed(tmp_path: Path) -> None:
    """Also in studies from before schema 13, whose events have no salt."""
    shutil.copy(KEPT / "schema10.db", tmp_path / "old.db")
    store = studies.open_store(f"sqlite:///{tmp_path}/old.db", clock=Clock())
    [study] = [one.id for one in studies.list_studies(store) if "clinic" in one.id]
    studies.erase_annotator(store, study, "Ann")
    check_replay(store, study)
    with store.read() as connection:
        e = tables.events.c
        erased = sa.select(e.seq).where(e.sealed.is_not(None), e.kind == "answered")
        seq = connection.execute(erased).scalars().first() or 0
    tampered(store, study, seq, annotator="Bob")
    with pytest.raises(LogError):
        studies.replay_study(store, study)
    tampered(store, study, seq, annotator="erased-annotator-1", at=e.at + 1)
    with pytest.raises(LogError):
        studies.replay_study(store, study)
    tampered(store, study, seq, at=e.at - 1)
    check_replay(store, study)
    # An event before it, and every digest computed anew.
    tampered(store, study, 1, at=e.at - 1)
    chained_again(store, study)
    with pytest.raises(LogError, match="what stands in place of erased data"):
        studies.replay_study(store, study)
    store.close()


def test_an_event_cannot_be_passed_off_as_erased(sqlite_store: Store, clock: Clock) -> None:
    study = studies.create_study(sqlite_store, clinic())
    play(sqlite_store, study, 4, clock=clock)
    with sqlite_store.read() as connection:
        row = connection.execute(sa.select(tables.events).limit(1)).mappings().one()
    sealed = inserts.sealed(dict(row))
    tampered(sqlite_store, study, row["seq"], salt=None, sealed=sealed)
    with pytest.raises(LogError, match="no erasure says so"):
        studies.replay_study(sqlite_store, study)


def test_an_erasure_that_fails_midway_changes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, clinic())
    before = studies.export_bundle(store, study)
    with monkeypatch.context() as broken:
        broken.setattr(erasing, "_rewrite_draft", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            studies.erase_person(store, study, "p1")
    assert studies.export_bundle(store, study) == before
    assert not needs_scrub(store)
    # Killed after the transaction: the files are cleared with the next retention.
    monkeypatch.setattr(erasing, "scrub", lambda _: False)
    assert not studies.erase_person(store, study, "p1").scrubbed
    assert needs_scrub(store)
    studies.retain(store)
    assert not needs_scrub(store)


def test_other_processes_read_the_configuration_again(store: Store, url: str) -> None:
    study = studies.create_study(store, clinic())
    other = studies.open_store(url, clock=store.clock)
    assert studies.coming_config(other, study).arms[0].label == "Ada"
    with write_study(other, study) as tx:
        seq = tx.row.seq
    studies.erase_person(store, study, "p1")
    assert studies.coming_config(other, study).arms[0].label == "erased-1"
    assert "Ada" not in repr(other.configs)
    with write_study(other, study) as tx:
        assert tx.row.seq > seq
    other.close()


def test_a_plan_that_was_being_made_is_not_taken(sqlite_store: Store, clock: Clock) -> None:
    store = sqlite_store
    study = studies.create_study(store, clinic(horizon=1))
    studies.leave(store, study, ["p1"])
    studies.observe(store, study, dict.fromkeys(("p2", "p3", "p4"), "Low"))
    made = planning._make_plan(store, study, lambda _: None)
    studies.erase_person(store, study, "p1")
    with write_study(store, study) as tx:
        assert not planning._still_holds(tx, made)


def test_people_of_simulated_worlds_are_nobody(sqlite_store: Store, clock: Clock) -> None:
    study = studies.create_study(sqlite_store, cpap())
    play(sqlite_store, study, 12, clock=clock)
    with pytest.raises(StudyError, match="its people are nobody"):
        studies.erase_person(sqlite_store, study, "1")
    studies.erase_annotator(sqlite_store, study, "Ann")
    how: list[str] = []
    check_replay(sqlite_store, study, how.append)
    assert "reproduced to the bit" in how[0]
    studies.erase_everybody(sqlite_store, study)
    check_replay(sqlite_store, study)


def test_retention_erases_what_is_due_and_nothing_else(
    sqlite_store: Store,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = sqlite_store
    kept = studies.create_study(store, clinic())
    study = studies.create_study(store, clinic(keep_weeks=4))
    for one in (kept, study):
        one_answer(store, one, "Ann")
        studies.leave(store, one, ["p1"])
    monkeypatch.setattr(studies, "open_store", lambda: store)
    clock.wait(4 * WEEKS - 1)
    cli.main(["retain", "--dry-run"])
    assert "nothing is due" in capsys.readouterr().out
    clock.wait(1)
    cli.main(["retain", "--dry-run"])
    assert f"{study}: 1 person who left: due" in capsys.readouterr().out
    assert studies.coming_config(store, study).arms[0].id == "p1"
    cli.main(["retain"])
    assert f"{study}: erased erased-1" in capsys.readouterr().out
    assert studies.coming_config(store, study).arms[0].id == "erased-1"
    assert studies.coming_config(store, kept).arms[0].id == "p1"
    studies.close_study(store, study)
    clock.wait(4 * WEEKS)
    [done] = studies.retain(store)
    assert (done.study, done.what) == (study, "everybody")
    assert {arm.label for arm in studies.coming_config(store, study).arms} == {
        f"person {n}" for n in range(1, 5)
    }
    assert studies.retain(store) == []
    check_replay(store, study)


def test_the_command_asks_first_and_prints_a_receipt_without_names(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = studies.create_study(sqlite_store, clinic())
    one_answer(sqlite_store, study, "Ann")
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    with pytest.raises(SystemExit, match="cannot be undone: add --yes"):
        cli.main(["erase", study, "--person", "p2"])
    cli.main(["erase", study, "--person", "p2", "--answers", "--yes"])
    said = capsys.readouterr().out
    assert "who is called erased-1 from now on" in said
    assert "no longer count from the next list on" in said
    assert "backups and exports made before" in said
    assert "p2" not in said
    assert "Bo" not in said
    cli.main(["erase", study, "--annotator", "Ann", "--yes"])
    assert "Ann" not in capsys.readouterr().out.replace("Annotator", "")
    cli.main(["erase", study, "--all", "--yes"])
    assert "keeps no names" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="leave --answers out"):
        cli.main(["erase", study, "--all", "--answers", "--yes"])
