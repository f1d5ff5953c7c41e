"""Older states that take the place of a database under a running app are noticed and said."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import Clock, answer_open, check_replay, clinic, cpap, everyone, one_answer, play

from dopl_core import studies
from dopl_core.studies import Ask, Store, StoreError, StudyError, diagnostics
from dopl_core.studies.model.errors import ReplacedError
from dopl_core.studies.store import queries, tables

STOPPED = "nothing is saved any more"


def checkpoint(file: Path, how: str = "PASSIVE") -> None:
    with sqlite3.connect(file) as raw:
        raw.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
    raw.close()


def copied(file: Path) -> bytes:
    """A copy of the file as `cp` makes it, with everything in it."""
    checkpoint(file)
    return file.read_bytes()


def overwrite(file: Path, content: bytes) -> None:
    """As `cp` does: the file keeps its number."""
    with file.open("r+b") as opened:
        opened.write(content)
        opened.truncate()


def killed(file: Path, folder: Path) -> Path:
    """The file and its -wal as a killed app leaves them."""
    folder.mkdir()
    for name in (file.name, f"{file.name}-wal"):
        shutil.copy(file.with_name(name), folder)
    return folder / file.name


def lived(store: Store, answers: int = 5) -> tuple[str, Path]:
    study = studies.create_study(store, cpap(ratings=3))
    for number in range(answers):
        one_answer(store, study, f"Ann {number}")
    return study, Path(store.name)


def check_stopped(store: Store, study: str, reason: str = STOPPED) -> None:
    """Nobody writes or reads any more, and everybody is told why."""
    with pytest.raises(ReplacedError, match=reason) as error:
        studies.next_duel(store, study, "Eve")
    assert "Nothing is saved until the owner starts the app again" in error.value.public
    for do in (studies.list_studies, lambda store: studies.pause_study(store, study)):
        with pytest.raises(ReplacedError, match=STOPPED):
            do(store)


def test_a_backup_copied_over_the_file_of_a_running_app_stops_it(sqlite_store: Store) -> None:
    study, file = lived(sqlite_store)
    backup = copied(file)
    one_answer(sqlite_store, study, "Bob")
    checkpoint(file)
    one_answer(sqlite_store, study, "Cy")
    overwrite(file, backup)
    check_stopped(sqlite_store, study, "an older copy was put in its place while dopl was running")
    sqlite_store.close()
    assert file.read_bytes() == backup  # the -wal of the newer file was not written into it


def test_the_way_out_that_it_names_works(sqlite_store: Store, clock: Clock, tmp_path: Path) -> None:
    study, file = lived(sqlite_store)
    backup = copied(file)
    one_answer(sqlite_store, study, "Bob")
    checkpoint(file)
    one_answer(sqlite_store, study, "Cy")
    overwrite(file, backup)
    check_stopped(sqlite_store, study)
    again = killed(file, tmp_path / "again")
    with pytest.raises(StoreError, match=r"move one\.db-wal and one\.db-shm away"):
        studies.open_store(f"sqlite:///{again}")
    Path(f"{again}-wal").unlink()
    store = studies.open_store(f"sqlite:///{again}", clock=clock)
    assert studies.get_study(store, study).answers == 5
    one_answer(store, study, "Dee")
    check_replay(store, study)
    store.close()


def test_a_copy_of_what_the_file_has_now_changes_nothing(sqlite_store: Store) -> None:
    study, file = lived(sqlite_store)
    overwrite(file, copied(file))
    one_answer(sqlite_store, study, "Bob")
    check_replay(sqlite_store, study)


@pytest.mark.parametrize("left", [0, 4000])
def test_a_write_ahead_log_that_was_cut_off_stops_the_app(sqlite_store: Store, left: int) -> None:
    study, file = lived(sqlite_store)
    os.truncate(f"{file}-wal", left)
    check_stopped(sqlite_store, study, "was cut off while dopl was running")


@pytest.mark.parametrize("how", ["PASSIVE", "RESTART", "TRUNCATE"])
def test_an_administrators_checkpoint_is_no_accident(sqlite_store: Store, how: str) -> None:
    study, file = lived(sqlite_store)
    for name in ("Bob", "Cy"):
        checkpoint(file, how)
        one_answer(sqlite_store, study, name)
        other = studies.open_store(str(sqlite_store.engine.url))
        one_answer(other, study, f"{name} elsewhere")
        other.close()
        one_answer(sqlite_store, study, f"{name} again")
    check_replay(sqlite_store, study)


def test_a_backup_beside_a_left_over_log_is_refused(sqlite_store: Store, tmp_path: Path) -> None:
    study, file = lived(sqlite_store)
    backup = copied(file)
    one_answer(sqlite_store, study, "Bob")
    checkpoint(file, "RESTART")
    one_answer(sqlite_store, study, "Cy")
    left = killed(file, tmp_path / "killed")
    newer = left.read_bytes()
    left.write_bytes(backup)
    url = f"sqlite:///{left}"
    with pytest.raises(StoreError, match=r"does not belong to the one\.db-wal beside it"):
        studies.open_store(url)
    [check] = [one for one in diagnostics.run_checks(url) if one.failed]
    assert "If one.db is a restored backup, move one.db-wal and one.db-shm away" in check.result
    assert left.read_bytes() == backup
    left.write_bytes(newer)
    store = studies.open_store(url)
    assert studies.get_study(store, study).answers == 7
    store.close()


def test_a_file_that_is_newer_than_its_log_is_refused(sqlite_store: Store, tmp_path: Path) -> None:
    study, file = lived(sqlite_store)
    left = killed(file, tmp_path / "killed")
    one_answer(sqlite_store, study, "Bob")
    checkpoint(file)
    left.write_bytes(file.read_bytes())
    with pytest.raises(StoreError, match="does not belong to"):
        studies.open_store(f"sqlite:///{left}")


def test_an_index_that_lacks_rows_is_found_by_the_doctor(sqlite_store: Store) -> None:
    """As a mixture of an old file and newer pages has."""
    lived(sqlite_store)
    url = str(sqlite_store.engine.url)
    sqlite_store.close()
    with sqlite3.connect(sqlite_store.name) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_master SET sql = replace(sql, 'free > 0', 'free >= 0')")
    raw.close()
    failed = {one.name: one.result for one in diagnostics.run_checks(url) if one.failed}
    assert "stop dopl and restore a backup" in failed["file"]


def test_a_log_that_ends_otherwise_than_its_study_says_is_found_by_the_doctor(
    store: Store, url: str
) -> None:
    study, _ = lived(store)
    e, s = tables.events.c, tables.studies.c
    with store.write() as connection:
        last = sa.select(s.seq).where(s.id == study).scalar_subquery()
        connection.execute(sa.delete(tables.events).where(e.study == study, e.seq == last))
    failed = {one.name: one.result for one in diagnostics.run_checks(url) if one.failed}
    assert f"{study}: its last events are missing: restore a whole backup" in failed["logs"]


def rows_of(store: Store) -> dict[sa.Table, list[dict[str, object]]]:
    with store.read() as connection:
        return {
            table: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
            for table in tables.metadata.sorted_tables
        }


def put_back(store: Store, rows: dict[sa.Table, list[dict[str, object]]]) -> None:
    """As a dump of the data that is restored, or SQLite's own restore."""
    with store.engine.connect() as connection, connection.begin():
        for table in reversed(tables.metadata.sorted_tables):
            connection.execute(sa.delete(table))
        for table, some in rows.items():
            if some:
                connection.execute(sa.insert(table), some)


def test_an_older_dump_restored_under_a_running_app_stops_it(store: Store) -> None:
    study, _ = lived(store)
    rows = rows_of(store)
    one_answer(store, study, "Bob")
    put_back(store, rows)
    check_stopped(store, study, "an older state was restored while dopl was running")


def test_an_older_dump_that_others_went_on_from_stops_the_app(store: Store, url: str) -> None:
    study, _ = lived(store)
    rows = rows_of(store)
    one_answer(store, study, "Bob")
    put_back(store, rows)
    other = studies.open_store(url)
    for name in ("Cy", "Di", "Ed"):
        one_answer(other, study, name)
    other.close()
    check_stopped(store, study, rf'event \d+ of study "{study}" is not what was saved')


def test_tables_made_anew_stop_the_app(
    new_postgresql: Callable[..., str], template: str, clock: Clock
) -> None:
    """As `pg_restore --clean` makes them, even with everything in them."""
    store = studies.open_store(new_postgresql(template), clock=clock)
    study, _ = lived(store)
    rows = rows_of(store)
    with store.engine.connect() as connection, connection.begin():
        tables.metadata.drop_all(connection)
        tables.metadata.create_all(connection)
    put_back(store, rows)
    check_stopped(store, study, "its tables were made anew")
    store.close()


def test_two_processes_that_write_in_turn_are_no_accident(store: Store, url: str) -> None:
    study, _ = lived(store)
    other = studies.open_store(url)
    for number in range(3):
        one_answer(store, study, f"here {number}")
        one_answer(other, study, f"there {number}")
        one_answer(other, study, f"there again {number}")
    other.close()
    check_replay(store, study)


def test_a_study_that_is_deleted_and_imported_is_another_one(store: Store, url: str) -> None:
    study, _ = lived(store)
    older = studies.export_bundle(store, study)
    one_answer(store, study, "Bob")
    other = studies.open_store(url)
    studies.delete_study(other, study)
    with pytest.raises(StudyError, match="there is no study"):
        studies.next_duel(store, study, "Cy")
    studies.import_bundle(other, older)
    other.close()
    one_answer(store, study, "Dee")
    check_replay(store, study)


def test_configurations_are_known_by_their_content_and_not_by_how_often_they_changed(
    store: Store, url: str
) -> None:
    """A dump with as many changes, but others, does not get the cached configuration."""
    study = studies.create_study(store, clinic())
    rows = rows_of(store)
    studies.change_settings(store, study, question="First?")
    assert studies.coming_config(store, study).question == "First?"
    put_back(store, rows)
    store.heads.clear()  # as of a process that reads only, and cannot know
    other = studies.open_store(url)
    studies.change_settings(other, study, question="Second?")
    other.close()
    assert studies.coming_config(store, study).question == "Second?"


def test_reported_columns_are_known_by_their_content(store: Store, url: str) -> None:
    study = studies.create_study(store, clinic())
    answer_open(store, study)
    rows = rows_of(store)
    studies.observe(store, study, everyone(), {"p1": {"hours": "first"}})
    assert studies.read_cards(store, study)["p1"]["hours"] == "first"
    put_back(store, rows)
    store.heads.clear()
    other = studies.open_store(url)
    studies.observe(other, study, everyone(), {"p1": {"hours": "second"}})
    other.close()
    assert studies.read_cards(store, study)["p1"]["hours"] == "second"


def test_a_click_costs_one_more_read_only_if_others_have_written(store: Store, url: str) -> None:
    study, _ = lived(store)
    ask = studies.next_duel(store, study, "Bob")
    assert isinstance(ask, Ask)
    looked: list[str] = []
    chain = str(queries.CHAIN.compile(store.engine))
    sa.event.listen(
        store.engine,
        "before_cursor_execute",
        lambda *sent: looked.append(sent[2]) if sent[2] == chain else None,
    )
    studies.answer(store, ask.impression, "left", too_fast_ms=0)
    assert looked == []
    other = studies.open_store(url)
    play(other, study, 2)
    other.close()
    one_answer(store, study, "Cy")
    assert looked == [chain]
