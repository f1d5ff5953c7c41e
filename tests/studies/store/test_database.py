"""Opening a database: versions, several processes at once, full disks and other accidents."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import cpap

from dopl_core import studies
from dopl_core.studies import Ask, Store, StoreError
from dopl_core.studies.store import blobs, queries, tables
from dopl_core.studies.store import database as stores
from dopl_core.studies.store.transaction import write_study

ROOT = Path(__file__).resolve().parents[3]


def test_a_new_database_has_the_tables_that_the_code_expects(empty_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = studies.open_store(empty_url)
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []
    store.close()


@pytest.mark.parametrize("other", ["0099", "0009"])
def test_a_database_of_another_version_is_refused_and_left_alone(
    empty_url: str, other: str
) -> None:
    store = studies.open_store(empty_url)
    with store.write() as connection:
        query = sa.text("UPDATE alembic_version SET version_num = :other")
        connection.execute(query, {"other": other})
    with pytest.raises(StoreError, match=rf"another version of dopl \(its schema is {other}"):
        studies.open_store(empty_url)
    with store.read() as connection:
        version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    assert version == other
    store.close()


def test_processes_that_start_together_make_the_tables_once(empty_url: str) -> None:
    """Four children of one process: they begin at the same moment, and import nothing anew."""
    code = """
        import os, sys
        from dopl_core.studies import open_store
        children = []
        for _ in range(4):
            children.append(os.fork())
            if not children[-1]:
                open_store(sys.argv[1])
                os._exit(0)
        sys.exit(any(os.waitpid(child, 0)[1] for child in children))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), empty_url]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert studies.list_studies(studies.open_store(empty_url)) == []


def test_a_new_file_that_another_process_is_writing_to_is_waited_for(tmp_path: Path) -> None:
    """SQLite refuses to switch such a file to a write-ahead log at once, whatever its timeout."""
    file = tmp_path / "new.db"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, other.rollback).start()
    store = studies.open_store(f"sqlite:///{file}")
    assert studies.list_studies(store) == []
    store.close()


def test_sqlite_keeps_its_promises(sqlite_store: Store) -> None:
    with sqlite_store.write() as connection:
        ask = connection.exec_driver_sql
        assert ask("PRAGMA journal_mode").scalar() == "wal"
        assert ask("PRAGMA synchronous").scalar() == 2  # FULL
        assert ask("PRAGMA foreign_keys").scalar() == 1
        assert ask("PRAGMA busy_timeout").scalar() == 3_500  # of a click
    with sqlite_store.write(durable=False) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1  # NORMAL
    with sqlite_store.write() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_failed_turn_changes_nothing(store: Store) -> None:
    study = studies.create_study(store, cpap())
    before = studies.get_study(store, study)

    def fail() -> None:
        with write_study(store, study) as turn:
            turn.append("paused")
            turn.status = "paused"
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert studies.get_study(store, study) == before


def fill(store: Store, study: str) -> str:
    """Write until the disk is full; the error then."""
    config = studies.get_study(store, study).config
    with pytest.raises(StoreError) as told:  # noqa: PT012
        while True:
            studies.create_study(store, config)
    with pytest.raises(StoreError):  # noqa: PT012
        while True:
            studies.pause_study(store, study)
            studies.reopen_study(store, study)
    return str(told.value)


def one_answer(store: Store, study: str, name: str) -> None:
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask)
    assert studies.answer(store, found.impression, "left", too_fast_ms=0).saved


def test_a_full_disk_is_said_and_nothing_is_changed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        store = studies.open_store(f"sqlite:///{disk}/dopl.db")
        study = studies.create_study(store, cpap())
        one_answer(store, study, "Ann")
        learner = blobs.digest(studies.load_learner(store, study).state())
        assert "the disk is full; nothing was changed" in fill(store, study)
        whole = studies.list_studies(store)
        with pytest.raises(StoreError, match="disk is full"):
            studies.create_study(store, cpap(title="One more"))
        assert studies.list_studies(store) == whole
        assert blobs.digest(studies.load_learner(store, study).state()) == learner
        # Room again, and it goes on.
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        studies.reopen_study(store, study)
        one_answer(store, study, "Bob")
        assert studies.replay_study(store, study).counts.total() == 2
        store.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_takes_no_more_is_said_too(sqlite_store: Store) -> None:
    """The same without the right to mount: files may not grow."""
    study = studies.create_study(sqlite_store, cpap())
    one_answer(sqlite_store, study, "Ann")
    sqlite_store.close()
    size = Path(str(sqlite_store.engine.url.database)).stat().st_size

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        raise ValueError(fill(studies.open_store(str(sqlite_store.engine.url)), study))

    told = as_nobody(full, rights=True)
    assert "the disk does not take it; nothing was changed" in told
    store = studies.open_store(str(sqlite_store.engine.url))
    studies.reopen_study(store, study)
    one_answer(store, study, "Bob")
    assert studies.replay_study(store, study).counts.total() == 2
    store.close()


def as_nobody(act: Callable[[], object], rights: bool = False) -> str:
    """What another process is told; one without rights, for root may write anything."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0 and not rights:
                os.setegid(65534)
                os.seteuid(65534)
            act()
        except ValueError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return told.read()


def test_a_read_only_database_is_said_and_nothing_is_changed() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/dopl.db"
        store = studies.open_store(url)
        study = studies.create_study(store, cpap())
        store.close()
        before = (folder / "dopl.db").read_bytes()
        (folder / "dopl.db").chmod(0o444)
        folder.chmod(0o755)  # a file that may not be written ...
        told = as_nobody(lambda: studies.next_duel(studies.open_store(url), study, "Ann"))
        assert "it is read-only; nothing was changed" in told or "cannot be opened" in told
        (folder / "dopl.db").chmod(0o666)
        folder.chmod(0o555)  # ... or its folder
        told = as_nobody(lambda: studies.next_duel(studies.open_store(url), study, "Ann"))
        assert "it is read-only; nothing was changed" in told or "cannot be opened" in told
        folder.chmod(0o700)
        assert (folder / "dopl.db").read_bytes() == before


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://", "in memory would lose every answer"),
        ("sqlite:///:memory:", "in memory would lose every answer"),
        ("mysql://localhost/dopl", '"mysql" databases are not supported'),
        ("nonsense", "not a database URL"),
        ("postgresql://nobody@/none?host=/nowhere", "nowhere"),
        ("sqlite:////proc/none/dopl.db", "cannot be made"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        studies.open_store(url)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("These are my notes, and they are longer than a header of SQLite is. " * 20)
    before = file.read_bytes()
    with pytest.raises(StoreError, match="not a database of dopl"):
        studies.open_store(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_the_environment_names_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path}/new/named.db")
    store = studies.open_store()
    assert store.name == f"{tmp_path}/new/named.db"
    store.close()
    monkeypatch.delenv("DOPL_DATABASE_URL")
    monkeypatch.setattr(stores, "KEPT", tmp_path / "data")
    store = studies.open_store()
    assert store.name == f"{tmp_path}/data/dopl.db"
    store.close()


def test_a_password_is_never_shown() -> None:
    with pytest.raises(StoreError) as error:
        studies.open_store("postgresql://ann:secret@localhost:1/none")
    assert "secret" not in str(error.value)


def test_the_lookups_behind_a_click_use_their_indexes(sqlite_store: Store) -> None:
    """Without them a click would take longer the more was answered before."""
    who = {"study": "s", "annotator": "Ann"}
    for query, values, index in (
        (queries.OPEN, who, "impressions_mine"),
        (queries.QUEUED, who | {"episode": 1}, "duels_free"),
        (queries.OVERDUE, {"study": "s", "now": 0, "latest": 9}, "impressions_open"),
    ):
        compiled = query.compile(sqlite_store.engine)
        given = tuple((compiled.params | values)[name] for name in compiled.positiontup or ())
        with sqlite_store.read() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", given).all()
        assert f"USING INDEX {index} " in str(plan)
        assert "SCAN" not in str(plan)
        assert "TEMP B-TREE" not in str(plan)
