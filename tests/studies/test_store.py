"""Opening a database: versions, several processes at once, full disks and other accidents."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import cpap, play

from dopl_core.studies import arrays, schema, service, statements
from dopl_core.studies import store as stores
from dopl_core.studies.service import Ask, Store, StoreError
from dopl_core.studies.turn import take_turn

ROOT = Path(__file__).resolve().parents[2]


def test_the_migrations_make_the_tables_that_the_code_expects(empty_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = service.open_store(empty_url)
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
    store.close()


def test_a_postgresql_database_of_version_1_is_brought_up_to_date(
    new_postgresql: object,
) -> None:
    url = new_postgresql()  # type: ignore[operator]
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        stores._migrate(connection, "0001")
        assert not sa.inspect(connection).has_table("snapshots")
    engine.dispose()
    store = service.open_store(url)
    study = service.create_study(store, cpap())
    assert play(store, study, 10) > 5
    store.close()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(empty_url: str) -> None:
    store = service.open_store(empty_url)
    with store.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0099'"))
    with pytest.raises(StoreError, match=r"newer version of dopl \(its schema is 0099"):
        service.open_store(empty_url)
    with store.read() as connection:
        version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    assert version == "0099"
    store.close()


def test_processes_that_start_together_make_the_tables_once(empty_url: str) -> None:
    code = """
        import sys
        from dopl_core.studies.store import open_store
        sys.stdin.readline()
        open_store(sys.argv[1])
    """
    command = [sys.executable, "-c", textwrap.dedent(code), empty_url]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command, stdin=pipe, stderr=pipe, text=True, cwd=ROOT) for _ in range(4)
    ]
    complaints = [process.communicate("go\n")[1] for process in started]
    assert [process.returncode for process in started] == [0] * 4, complaints
    assert service.list_studies(service.open_store(empty_url)) == []


def test_sqlite_keeps_its_promises(sqlite_store: Store) -> None:
    with sqlite_store.write() as connection:
        ask = connection.exec_driver_sql
        assert ask("PRAGMA journal_mode").scalar() == "wal"
        assert ask("PRAGMA synchronous").scalar() == 2  # FULL
        assert ask("PRAGMA foreign_keys").scalar() == 1
        assert ask("PRAGMA busy_timeout").scalar() == 30_000
    with sqlite_store.write(promise=False) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1  # NORMAL
    with sqlite_store.write() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_failed_turn_changes_nothing(store: Store) -> None:
    study = service.create_study(store, cpap())
    before = service.get_study(store, study)

    def fail() -> None:
        with take_turn(store, study) as turn:
            turn.append("paused")
            turn.status = "paused"
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert service.get_study(store, study) == before


def fill(store: Store, study: str) -> str:
    """Write until the disk takes no more; what is said then."""
    config = service.get_study(store, study).config
    with pytest.raises(StoreError) as told:  # noqa: PT012
        while True:
            service.create_study(store, config)
    with pytest.raises(StoreError):  # noqa: PT012
        while True:
            service.pause_study(store, study)
            service.reopen_study(store, study)
    return str(told.value)


def one_answer(store: Store, study: str, name: str) -> None:
    found = service.next_duel(store, study, name)
    assert isinstance(found, Ask)
    assert service.answer(store, found.impression, "left", too_fast_ms=0).saved


def test_a_full_disk_is_said_and_nothing_is_changed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        store = service.open_store(f"sqlite:///{disk}/dopl.db")
        study = service.create_study(store, cpap())
        one_answer(store, study, "Ann")
        learner = arrays.digest(service.load_learner(store, study).state())
        assert "the disk is full; nothing was changed" in fill(store, study)
        whole = service.list_studies(store)
        with pytest.raises(StoreError, match="disk is full"):
            service.create_study(store, cpap(title="One more"))
        assert service.list_studies(store) == whole
        assert arrays.digest(service.load_learner(store, study).state()) == learner
        # Room again, and it goes on.
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        service.reopen_study(store, study)
        one_answer(store, study, "Bob")
        assert service.replay_study(store, study).counts.total() == 2
        store.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_takes_no_more_is_said_too(sqlite_store: Store) -> None:
    """The same without the right to mount: files may not grow."""
    study = service.create_study(sqlite_store, cpap())
    one_answer(sqlite_store, study, "Ann")
    sqlite_store.close()
    size = Path(str(sqlite_store.engine.url.database)).stat().st_size

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        raise ValueError(fill(service.open_store(str(sqlite_store.engine.url)), study))

    told = as_nobody(full, rights=True)
    assert "the disk does not take it; nothing was changed" in told
    store = service.open_store(str(sqlite_store.engine.url))
    service.reopen_study(store, study)
    one_answer(store, study, "Bob")
    assert service.replay_study(store, study).counts.total() == 2
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
        store = service.open_store(url)
        study = service.create_study(store, cpap())
        store.close()
        before = (folder / "dopl.db").read_bytes()
        (folder / "dopl.db").chmod(0o444)
        folder.chmod(0o755)  # a file that may not be written ...
        told = as_nobody(lambda: service.next_duel(service.open_store(url), study, "Ann"))
        assert "it is read-only; nothing was changed" in told or "cannot be opened" in told
        (folder / "dopl.db").chmod(0o666)
        folder.chmod(0o555)  # ... or its folder
        told = as_nobody(lambda: service.next_duel(service.open_store(url), study, "Ann"))
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
        service.open_store(url)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("These are my notes, and they are longer than a header of SQLite is. " * 20)
    before = file.read_bytes()
    with pytest.raises(StoreError, match="not a database of dopl"):
        service.open_store(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_the_environment_names_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path}/new/named.db")
    store = service.open_store()
    assert store.name == f"{tmp_path}/new/named.db"
    store.close()
    monkeypatch.delenv("DOPL_DATABASE_URL")
    monkeypatch.setattr(stores, "KEPT", tmp_path / "data")
    store = service.open_store()
    assert store.name == f"{tmp_path}/data/dopl.db"
    store.close()


def test_a_password_is_never_shown() -> None:
    with pytest.raises(StoreError) as error:
        service.open_store("postgresql://ann:secret@localhost:1/none")
    assert "secret" not in str(error.value)


def test_the_lookups_behind_a_click_use_their_indexes(sqlite_store: Store) -> None:
    """Without them a click would take longer the more was answered before."""
    who = {"study": "s", "annotator": "Ann"}
    for query, values, index in (
        (statements.OPEN, who, "impressions_mine"),
        (statements.QUEUED, who | {"episode": 1}, "duels_free"),
        (statements.OVERDUE, {"study": "s", "now": 0, "latest": 9}, "impressions_open"),
    ):
        compiled = query.compile(sqlite_store.engine)
        given = tuple((compiled.params | values)[name] for name in compiled.positiontup or ())
        with sqlite_store.read() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", given).all()
        assert f"USING INDEX {index} " in str(plan)
        assert "SCAN" not in str(plan)
        assert "TEMP B-TREE" not in str(plan)


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
    study = service.create_study(sqlite_store, cpap())
    one_answer(sqlite_store, study, "Ann")
    ask = service.next_duel(sqlite_store, study, "Ann")
    assert isinstance(ask, Ask)
    file = Path(sqlite_store.name)
    accident(file)
    gone = "removed or replaced while it was open; nothing is saved any more"
    with pytest.raises(StoreError, match=gone):
        service.answer(sqlite_store, ask.impression, "left", too_fast_ms=0)
    with pytest.raises(StoreError, match=gone):
        service.next_duel(sqlite_store, study, "Bob")
    if accident is vanish:
        sqlite_store.close()  # new connections
        with pytest.raises(StoreError, match=gone):
            service.list_studies(sqlite_store)
        assert not file.exists()


def test_a_new_file_does_not_take_the_place_of_one_that_was_moved_away(sqlite_store: Store) -> None:
    study = service.create_study(sqlite_store, cpap())
    one_answer(sqlite_store, study, "Ann")
    file = Path(sqlite_store.name)
    moved = file.rename(file.with_name("elsewhere"))
    with pytest.raises(StoreError, match=r"is gone, but one\.db-wal, where the last answers are"):
        service.open_store(str(sqlite_store.engine.url))
    moved.rename(file)
    one_answer(sqlite_store, study, "Ann")
    other = service.open_store(str(sqlite_store.engine.url))
    assert service.get_study(other, study).answers == 2
    other.close()


def test_nor_of_one_that_was_only_just_opened(tmp_path: Path) -> None:
    """Else a plan process that starts late makes one, whose -wal would then overwrite the first."""
    url = f"sqlite:///{tmp_path}/dopl.db"
    service.open_store(url).close()
    store = service.open_store(url)
    (tmp_path / "dopl.db").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is gone, but"):
        service.open_store(url)
    (tmp_path / "elsewhere").rename(tmp_path / "dopl.db")
    assert service.list_studies(store) == []
    store.close()


def test_a_second_look_at_the_database_leaves_the_first_ones_locks(sqlite_store: Store) -> None:
    """POSIX releases a process's locks on a file when it closes any of its handles."""
    study = service.create_study(sqlite_store, cpap())
    stores._sqlite(sqlite_store.engine.url)
    other = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM studies')"
    subprocess.run([sys.executable, "-c", other, sqlite_store.name], check=True)
    one_answer(sqlite_store, study, "Ann")  # and the other did not remove the -wal on leaving


def test_an_answer_is_not_promised_when_the_file_vanishes_while_it_is_written(
    sqlite_store: Store,
) -> None:
    study = service.create_study(sqlite_store, cpap())

    def write() -> None:
        with take_turn(sqlite_store, study) as turn:
            turn.append("paused")
            Path(sqlite_store.name).unlink()

    with pytest.raises(StoreError, match="nothing is saved any more"):
        write()


def test_the_look_at_the_file_takes_microseconds(sqlite_store: Store) -> None:
    with sqlite_store.write() as connection:
        took = min(timeit.repeat(lambda: sqlite_store._check_file(connection), number=100)) / 100
    assert took < 100e-6  # some 5 on an idle machine


def test_nobody_else_on_the_computer_can_read_the_database(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        store = service.open_store(f"sqlite:///{tmp_path}/dopl.db")
        service.create_study(store, cpap())
        names = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        assert names == {"dopl.db": 0o600, "dopl.db-wal": 0o600, "dopl.db-shm": 0o600}
        store.close()
        (tmp_path / "dopl.db").chmod(0o644)
        service.open_store(f"sqlite:///{tmp_path}/dopl.db").close()
        assert (tmp_path / "dopl.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_a_server_that_never_answers_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(StoreError):
            service.open_store(f"postgresql://dopl@127.0.0.1:{port}/none")
        assert time.monotonic() - began < 15
