"""The SQLite file itself: moved, replaced, locked, and private."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import cpap, one_answer

from dopl_core import studies
from dopl_core.studies import Ask, Store, StoreError
from dopl_core.studies.store import database as stores
from dopl_core.studies.store import postgresql
from dopl_core.studies.store.transaction import write_study


def vanish(file: Path) -> None:
    file.unlink()


def replaced(file: Path) -> None:
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.replace(file)


def without_its_wal(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def another_wal(file: Path) -> None:
    without_its_wal(file)
    Path(f"{file}-wal").touch()


@pytest.mark.parametrize("accident", [vanish, replaced, without_its_wal, another_wal])
def test_nothing_is_saved_into_a_file_that_is_no_longer_at_its_path(
    sqlite_store: Store, accident: Callable[[Path], None]
) -> None:
    study = studies.create_study(sqlite_store, cpap())
    one_answer(sqlite_store, study, "Ann")
    ask = studies.next_duel(sqlite_store, study, "Ann")
    assert isinstance(ask, Ask)
    file = Path(sqlite_store.name)
    accident(file)
    gone = "removed or replaced while it was open; nothing is saved any more"
    with pytest.raises(StoreError, match=gone):
        studies.answer(sqlite_store, ask.impression, "left", too_fast_ms=0)
    with pytest.raises(StoreError, match=gone):
        studies.next_duel(sqlite_store, study, "Bob")
    if accident is vanish:
        sqlite_store.close()  # new connections
        with pytest.raises(StoreError, match=gone):
            studies.list_studies(sqlite_store)
        assert not file.exists()


def test_a_copy_that_another_program_made_opens_and_goes_on(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    copy = Path(sqlite_store.name).with_name("copy.db")
    with sqlite3.connect(sqlite_store.name) as raw:
        raw.execute("VACUUM INTO ?", [str(copy)])  # has no write-ahead log
    other = studies.open_store(f"sqlite:///{copy}")
    one_answer(other, study, "Ann")
    assert studies.get_study(other, study).answers == 1
    other.close()


def test_a_new_file_does_not_take_the_place_of_one_that_was_moved_away(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    one_answer(sqlite_store, study, "Ann")
    file = Path(sqlite_store.name)
    moved = file.rename(file.with_name("elsewhere"))
    with pytest.raises(StoreError, match=r"is gone, but one\.db-wal, where the last answers are"):
        studies.open_store(str(sqlite_store.engine.url))
    moved.rename(file)
    one_answer(sqlite_store, study, "Ann")
    other = studies.open_store(str(sqlite_store.engine.url))
    assert studies.get_study(other, study).answers == 2
    other.close()


def test_a_new_file_does_not_take_the_place_of_one_only_just_opened(tmp_path: Path) -> None:
    """Else a plan process that starts late makes one, whose -wal would then overwrite the first."""
    url = f"sqlite:///{tmp_path}/dopl.db"
    studies.open_store(url).close()
    store = studies.open_store(url)
    (tmp_path / "dopl.db").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is gone, but"):
        studies.open_store(url)
    (tmp_path / "elsewhere").rename(tmp_path / "dopl.db")
    assert studies.list_studies(store) == []
    store.close()


def test_a_second_look_at_the_database_leaves_the_first_ones_locks(sqlite_store: Store) -> None:
    """POSIX releases a process's locks on a file when it closes any of its handles."""
    study = studies.create_study(sqlite_store, cpap())
    stores._sqlite(sqlite_store.engine.url)
    other = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM studies')"
    subprocess.run([sys.executable, "-c", other, sqlite_store.name], check=True)
    one_answer(sqlite_store, study, "Ann")  # and the other did not remove the -wal on leaving


def test_an_answer_is_not_promised_when_the_file_vanishes_while_it_is_written(
    sqlite_store: Store,
) -> None:
    study = studies.create_study(sqlite_store, cpap())

    def write() -> None:
        with write_study(sqlite_store, study) as turn:
            turn.append("paused")
            Path(sqlite_store.name).unlink()

    with pytest.raises(StoreError, match="nothing is saved any more"):
        write()


def test_the_check_of_the_file_costs_a_few_calls_and_no_query(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    stat = os.stat

    def counted(name: str) -> os.stat_result:
        looked_at.append(name)
        return stat(name)

    assert sqlite_store._watch is not None
    with sqlite_store.write() as connection, monkeypatch.context() as patch:
        statements: list[str] = []
        sa.event.listen(
            sqlite_store.engine, "before_cursor_execute", lambda *sent: statements.append(sent[2])
        )
        patch.setattr(os, "stat", counted)
        sqlite_store._watch.check(connection)
    assert looked_at == [sqlite_store.name, f"{sqlite_store.name}-wal"]
    assert statements == []


def test_nobody_else_on_the_computer_can_read_the_database(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        store = studies.open_store(f"sqlite:///{tmp_path}/dopl.db")
        studies.create_study(store, cpap())
        names = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        assert names == {"dopl.db": 0o600, "dopl.db-wal": 0o600, "dopl.db-shm": 0o600}
        store.close()
        (tmp_path / "dopl.db").chmod(0o644)
        studies.open_store(f"sqlite:///{tmp_path}/dopl.db").close()
        assert (tmp_path / "dopl.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_a_server_that_never_answers_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(StoreError):
            studies.open_store(f"postgresql://dopl@127.0.0.1:{port}/none")
        assert time.monotonic() - began < 15
