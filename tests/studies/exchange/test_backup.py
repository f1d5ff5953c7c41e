"""Backups hold everything saved before they began, are whole or absent, and can be restored."""

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from own_postgresql import _binaries
from playing import Clock, check_replay, clinic, cpap, one_answer

from dopl_core import cli, studies
from dopl_core.studies import Store, StoreError
from dopl_core.studies.model.errors import BackupNeededError, ReplacedError
from dopl_core.studies.store import tables


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tests' own server: older ones refuse to dump it."""
    monkeypatch.setenv("DOPL_PG_BIN", str(_binaries()))


@pytest.fixture
def empty(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Another database of the same kind, without our tables."""
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path}/elsewhere/new.db"
    return str(request.getfixturevalue("new_postgresql")())


def lived(store: Store) -> str:
    """A study with texts, photos and arrays that are hard to copy."""
    study = studies.create_study(store, clinic(ratings=9, why="tab\there, back\\slash,\nline, \\N"))
    studies.keep_photos(store, study, {"p1": bytes(range(256))})
    for name in ("Ann", "Bob", "Zoë\u2028Quist"):
        one_answer(store, study, name.replace("\u2028", " "))
    studies.close_duels(store, study)
    studies.advance(store, study)
    return study


def test_a_backup_is_restored_with_everything(
    store: Store, url: str, empty: str, tmp_path: Path, clock: Clock
) -> None:
    study = lived(store)
    bundle = studies.export_bundle(store, study)
    file = tmp_path / "one.backup"
    assert studies.back_up(file, url) == studies.Contents(1, 3, [])
    assert file.stat().st_mode & 0o777 == 0o600
    assert studies.restore(file, empty) == studies.Contents(1, 3, [])
    again = studies.open_store(empty, clock=clock)
    assert studies.export_bundle(again, study) == bundle
    assert studies.count_photos(again, study) == 1
    check_replay(again, study)
    again.close()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_everything_saved_before_the_backup_began_is_in_it(
    store: Store, url: str, tmp_path: Path
) -> None:
    """While others go on to write."""
    study = studies.create_study(store, cpap(ratings=1_000))
    for number in range(5):
        one_answer(store, study, f"before {number}")
    stop, more = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            one_answer(store, study, f"during {len(more)}")
            more.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not more:
            stop.wait(0.01)
        at_least = 5 + len(more)
        found = studies.back_up(tmp_path / "one.backup", url)
    finally:
        stop.set()
        writer.join()
    assert found.damaged == []
    assert at_least <= found.answers <= studies.get_study(store, study).answers


def test_a_backup_never_overwrites_a_file(store: Store, url: str, tmp_path: Path) -> None:
    file = tmp_path / "one.backup"
    file.write_bytes(b"of yesterday")
    with pytest.raises(StoreError, match="this file exists, and is not overwritten"):
        studies.back_up(file, url)
    assert file.read_bytes() == b"of yesterday"
    with pytest.raises(StoreError, match="there is no such folder"):
        studies.back_up(tmp_path / "none" / "one.backup", url)


KILLED = """
import os, signal, sys
from dopl_core.studies.exchange import backup
backup.check_backup = lambda part: os.kill(os.getpid(), signal.SIGKILL)
backup.back_up(backup.Path(sys.argv[1]), sys.argv[2])
"""


def test_a_backup_that_is_killed_never_has_its_name(sqlite_store: Store, tmp_path: Path) -> None:
    store, url = sqlite_store, str(sqlite_store.engine.url)
    study = studies.create_study(store, cpap())
    file = tmp_path / "one.backup"
    done = subprocess.run([sys.executable, "-c", KILLED, file, url], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not file.exists()
    [part] = tmp_path.glob(".one.backup.*.part")
    assert part.stat().st_mode & 0o777 == 0o600
    one_answer(store, study, "Ann")
    assert studies.back_up(file, url).answers == 1


def test_a_study_that_replay_refuses_is_named_and_kept(
    store: Store, url: str, tmp_path: Path
) -> None:
    study = lived(store)
    sound = studies.create_study(store, cpap())
    with store.write() as connection:
        e = tables.events.c
        connection.execute(
            sa.update(tables.events).where(e.study == study, e.seq == 2).values(at=1)
        )
    found = studies.back_up(tmp_path / "one.backup", url)
    assert found.studies == 2
    assert [one.partition(":")[0] for one in found.damaged] == [study]
    assert sound not in found.damaged[0]
    assert (tmp_path / "one.backup").exists()


def test_a_database_with_studies_is_not_restored_over(
    store: Store, url: str, tmp_path: Path
) -> None:
    study = lived(store)
    studies.back_up(tmp_path / "one.backup", url)
    one_answer(store, studies.create_study(store, cpap()), "Ann")
    with pytest.raises(
        StoreError, match=r"not empty \(studies: 2\), and nothing was changed\. Stop dopl"
    ):
        studies.restore(tmp_path / "one.backup", url)
    assert studies.get_study(store, study).answers == 3


def test_a_damaged_backup_changes_nothing(
    store: Store, url: str, empty: str, tmp_path: Path
) -> None:
    lived(store)
    file = tmp_path / "one.backup"
    studies.back_up(file, url)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises((StoreError, sqlite3.DatabaseError)):
        studies.restore(file, empty)
    file.write_bytes(b"PK of something else")
    with pytest.raises(StoreError, match="not a backup of dopl"):
        studies.restore(file, empty)
    fresh = studies.open_store(empty)
    assert studies.list_studies(fresh) == []
    fresh.close()


def test_an_app_that_runs_on_an_empty_database_notices_what_is_restored_into_it(
    store: Store, url: str, empty: str, tmp_path: Path, clock: Clock
) -> None:
    study = lived(store)
    studies.back_up(tmp_path / "one.backup", url)
    running = studies.open_store(empty, clock=clock)
    other = studies.create_study(running, cpap())
    studies.pause_study(running, other)
    studies.delete_study(running, other)
    studies.restore(tmp_path / "one.backup", empty)
    for look in (studies.read_lists, lambda *who: studies.next_duel(*who, "Ann")):
        with pytest.raises(StoreError, match=r"replaced while it was open|tables were made anew"):
            look(running, study)
    running.close()
    again = studies.open_store(empty, clock=clock)
    check_replay(again, study)
    again.close()


def test_reads_notice_an_older_state_too(store: Store, url: str) -> None:
    study = studies.create_study(store, cpap(ratings=3))
    rows = []
    for table in tables.metadata.sorted_tables:
        with store.read() as connection:
            found = connection.execute(sa.select(table)).mappings()
            rows.append((table, [dict(row) for row in found]))
    one_answer(store, study, "Ann")
    with store.engine.connect() as connection, connection.begin():
        for table, _ in reversed(rows):
            connection.execute(sa.delete(table))
        for table, some in rows:
            if some:
                connection.execute(sa.insert(table), some)
    with pytest.raises(ReplacedError, match="an older state was restored"):
        studies.last_event(store, study)


# --- before a migration


def make_older(url: str) -> str:
    """Take the last migration back; the version that is then."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE annotators DROP COLUMN consented"))
        version = tables.VERSIONS[-2]
        older = sa.text("UPDATE alembic_version SET version_num = :version")
        connection.execute(older, {"version": version})
    engine.dispose()
    return version


def test_a_sqlite_file_is_copied_beside_itself_before_a_migration(
    sqlite_store: Store, clock: Clock
) -> None:
    study = lived(sqlite_store)
    url, file = str(sqlite_store.engine.url), Path(sqlite_store.name)
    sqlite_store.close()
    version = make_older(url)
    studies.open_store(url, clock=clock).close()
    [copy] = file.parent.glob(f"{file.name}.schema-{version}-*Z")
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as raw:
        assert raw.execute("SELECT version_num FROM alembic_version").fetchone() == (version,)
    studies.open_store(url).close()
    assert len(list(file.parent.glob(f"{file.name}.schema-*"))) == 1
    assert studies.restore(copy, f"sqlite:///{file.parent}/again.db").answers == 3
    again = studies.open_store(f"sqlite:///{file.parent}/again.db", clock=clock)
    check_replay(again, study)
    again.close()


@pytest.fixture
def older(new_postgresql: Callable[..., str], template: str, clock: Clock) -> str:
    """A PostgreSQL database of the schema before this one."""
    url = new_postgresql(template)
    store = studies.open_store(url, clock=clock)
    lived(store)
    store.close()
    make_older(url)
    return url


def test_tables_in_postgresql_change_only_when_there_is_a_backup(
    older: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BackupNeededError, match=r"nothing was changed\. Make a backup with"):
        studies.open_store(older)
    assert studies.back_up(tmp_path / "one.backup", older) == studies.Contents(1, 3, [])
    monkeypatch.setenv("DOPL_DATABASE_URL", older)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for said, done in (("no", False), ("yes", True)):
        monkeypatch.setattr("builtins.input", lambda _, said=said: said)
        monkeypatch.setenv("DOPL_MIGRATE", "")
        if done:
            cli.main(["studies"])
            assert "3 answers" in capsys.readouterr().out
        else:
            with pytest.raises(SystemExit, match="nothing was changed"):
                cli.main(["studies"])
    monkeypatch.setenv("DOPL_MIGRATE", "")
    studies.open_store(older).close()  # up to date by now


def test_a_service_migrates_if_its_environment_says_that_there_is_a_backup(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOPL_MIGRATE", "yes")
    studies.open_store(older).close()


# --- the commands


def test_the_commands_back_up_and_restore(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lived(sqlite_store)
    file = str(tmp_path / "one.backup")
    monkeypatch.setenv("DOPL_DATABASE_URL", str(sqlite_store.engine.url))
    cli.main(["backup", file])
    assert capsys.readouterr().out == f"{file} holds 1 study with 3 answers\n"
    with pytest.raises(SystemExit, match="Stop dopl"):
        cli.main(["restore", file])
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path}/new.db")
    cli.main(["restore", file])
    assert capsys.readouterr().out == f"{file} restored: 1 study with 3 answers\n"


def test_missing_programs_and_the_wrong_kind_of_database_are_named(
    new_postgresql: Callable[..., str],
    template: str,
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = new_postgresql(template)
    studies.back_up(tmp_path / "sqlite.backup", str(sqlite_store.engine.url))
    with pytest.raises(StoreError, match="a backup of SQLite, but DOPL_DATABASE_URL names"):
        studies.restore(tmp_path / "sqlite.backup", server)
    monkeypatch.setenv("DOPL_PG_BIN", str(tmp_path))
    with pytest.raises(StoreError, match=r"pg_dump was not found in .* DOPL_PG_BIN"):
        studies.back_up(tmp_path / "server.backup", server)
    assert not (tmp_path / "server.backup").exists()
    with pytest.raises(StoreError, match="there is no database here"):
        studies.back_up(tmp_path / "other.backup", f"sqlite:///{tmp_path}/none.db")
