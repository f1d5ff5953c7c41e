"""Where studies are kept: SQLite or PostgreSQL, opened, brought up to date and written safely."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from dopl_core.places import KEPT
from dopl_core.studies import schema

MIGRATIONS = Path(__file__).resolve().parent / "migrations"

_BUSY_SECONDS = 30
_CONNECT_SECONDS = 5  # a server that does not answer is said to be down after that
_MIGRATION_LOCK = 0x646F706C  # "dopl": any number that no other program on the server uses


_GONE = (
    "{}: the database file was removed or replaced while it was open; nothing is saved any more: "
    "put it back and start dopl again"
)


class StoreError(ValueError):
    """The database cannot be used as it is: says what is wrong with it and what to do.

    Its words may name the server's hosts, users and folders: they are for the owner only.
    """


class StudyError(ValueError):
    """What was asked of a study makes no sense: says of which, and why."""


@dataclass(eq=False)
class Store:
    """An open database; share it between threads, never across a fork.

    clock: seconds since 1970; tests move it.
    configs: parsed configurations by study, digest of the first, and number of changes since.
    reports: columns last read of those that owners reported, by study's digest and epoch.
    """

    engine: Engine
    clock: Callable[[], float] = time.time
    configs: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    reports: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    # SQLite's writers poll for their turn, up to 100 ms apart; inside one process a lock is prompt.
    _turn: threading.Lock = field(default_factory=threading.Lock)
    # The SQLite file that was opened; see _check_file.
    _file: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The database in words that may be shown: no password."""
        url = self.engine.url.difference_update_query(["password", "sslpassword"])
        return str(url.database) if self.is_sqlite else url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self.clock() * 1000)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view of the database."""
        with self._plainly(), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                self._check_file(connection)
                yield connection

    @contextmanager
    def write(self, promise: bool = True) -> Iterator[Connection]:
        """One transaction, on disk when the block is left, undone when it fails.

        promise: False where nobody is told: a lease lost in a power cut is simply given again.
        Then SQLite does not wait for the disk; the next promise waits for both.
        """
        turn = self._turn if self.is_sqlite else nullcontext()
        with self._plainly(), turn, self.engine.connect() as connection:
            connection.execution_options(dopl_write="FULL" if promise else "NORMAL")
            with connection.begin():
                self._check_file(connection)
                yield connection
                self._check_file(connection)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """What the database complains of, in words for the person who can help it."""
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise StoreError(f"{self.name}: {_remedy(str(error.orig))}") from error
        except PoolTimeout as error:
            raise StoreError(f"{self.name}: too many wait for it at once: try again") from error

    def _check_file(self, connection: Connection) -> None:
        """Refuse to go on with a SQLite file that is not the one at its path any more.

        One that was removed or replaced takes every commit without a word, and all of them are gone
        with the process. So it is with the -wal beside it, where commits are first.
        """
        if self._file is not None and (
            _identity(self.name) != self._file
            or _identity(f"{self.name}-wal") != connection.info["wal"]
        ):
            raise StoreError(_GONE.format(self.name))

    def close(self) -> None:
        self.engine.dispose()


def open_store(url: str | None = None, *, clock: Callable[[], float] = time.time) -> Store:
    """Open a database and bring its tables up to date; safe when several processes start at once.

    url: a SQLAlchemy URL; else DOPL_DATABASE_URL, else dopl.db where things are kept
    """
    address = _address(url or os.environ.get("DOPL_DATABASE_URL") or "")
    connect = _sqlite if address.get_backend_name() == "sqlite" else _postgresql
    store = Store(connect(address), clock)
    _update(store)
    if store.is_sqlite:
        store.engine.dispose()  # connections made before the tables were
        store._file = _identity(store.name)

        @event.listens_for(store.engine, "do_connect")
        def before_connecting(*_: Any) -> None:
            if _identity(store.name) != store._file:  # SQLite would make a new, empty file
                raise StoreError(_GONE.format(store.name))

        with store.read():
            pass  # from now on there is a -wal, by which others see that the file is in use
    return store


def look_at(url: str | None = None) -> Store:
    """Open a database as it is: nothing is made, brought up to date, or kept from others.

    A SQLite file that is not there is a FileNotFoundError.
    """
    address = _address(url or os.environ.get("DOPL_DATABASE_URL") or "")
    if address.get_backend_name() != "sqlite":
        return Store(_postgresql(address))
    file = Path(str(address.database))
    _check_left(file)
    if not file.exists():
        raise FileNotFoundError(file)
    return Store(_sqlite_engine(address))


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at this path, if any: device and number. Takes microseconds."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def full_address(url: str) -> str:
    """An address that names the same database in whatever folder; it has the password in it."""
    address = _address(url)
    if address.get_backend_name() == "sqlite":
        address = address.set(database=os.path.abspath(str(address.database)))
    return address.render_as_string(hide_password=False)


def _address(url: str) -> URL:
    try:
        address = make_url(url or f"sqlite:///{KEPT / 'dopl.db'}")
    except ArgumentError:
        raise StoreError(
            "DOPL_DATABASE_URL is not a database URL: sqlite:///PATH or "
            "postgresql://USER:PASSWORD@HOST/DATABASE needed"
        ) from None
    backend = address.get_backend_name()
    if backend in ("postgres", "postgresql"):
        return address.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise StoreError(f'"{backend}" databases are not supported: sqlite or postgresql needed')
    if address.database in (None, "", ":memory:"):
        raise StoreError("a SQLite database in memory would lose every answer: name a file")
    return address


def _sqlite(address: URL) -> Engine:
    file = Path(str(address.database))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{file.parent}: the folder cannot be made: {error.strerror}") from None
    _check_left(file)
    _keep_private(file)
    return _sqlite_engine(address)


def _check_left(file: Path) -> None:
    left = Path(f"{file}-wal")
    if left.exists() and not file.exists():
        # A new file would be made, and the answers in there would be thrown away.
        raise StoreError(
            f"{file}: the database file is gone, but {left.name}, where the last answers are, is "
            "still there: put it back; or remove that too, to begin anew"
        )


def _sqlite_engine(address: URL) -> Engine:
    # Autocommit in the driver: transactions are begun below, and nowhere else.
    engine = sa.create_engine(
        address,
        connect_args={"timeout": _BUSY_SECONDS, "isolation_level": None},
        pool_size=20,
        max_overflow=100,
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # opens the -wal
        record.info["wal"] = _identity(f"{address.database}-wal")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # FULL: an answer is on disk before anyone is told that it is saved.
        synchronous = connection.get_execution_options().get("dopl_write")
        if synchronous and synchronous != connection.info.get("synchronous"):
            connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
            connection.info["synchronous"] = synchronous
        # A writer that begins as a reader can find the database changed under it, and fail.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if synchronous else "BEGIN")

    return engine


def _keep_private(file: Path) -> None:
    """Make the file, if there is none, and let nobody else on this computer read it.

    SQLite gives the files it makes beside it (-wal, -shm) the same rights.
    """
    # An existing file is not opened here: to close it again would, by the rules of POSIX, release
    # all locks that SQLite has on it in this process.
    with suppress(OSError):  # what is wrong with the file is said when it is opened
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with suppress(OSError):
        for one in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            if one.exists() and (mode := one.stat().st_mode) & 0o077:
                one.chmod(mode & 0o700)


def _postgresql(address: URL) -> Engine:
    waits = {} if "connect_timeout" in address.query else {"connect_timeout": _CONNECT_SECONDS}
    try:
        return sa.create_engine(
            address, pool_pre_ping=True, pool_size=20, max_overflow=60, connect_args=waits
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise StoreError(
            'PostgreSQL needs the driver psycopg: pip install "dopl[postgres]"'
        ) from None


def _update(store: Store) -> None:
    """Run the migrations that this database lacks, all or none."""
    with store.read() as connection:
        if schema_version(store, connection) == schema.VERSIONS[-1]:
            return
    if store.is_sqlite:
        with store._plainly(), store.engine.connect() as connection:
            # Cannot be changed inside a transaction, which SQLAlchemy would begin.
            connection.connection.cursor().execute("PRAGMA journal_mode = WAL").fetchall()
    with store.write() as connection:
        if not store.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        if schema_version(store, connection) != schema.VERSIONS[-1]:
            _migrate(connection)


def schema_version(store: Store, connection: Connection) -> str | None:
    """Which migration its tables are of; None where there are none yet."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    if version is not None and version not in schema.VERSIONS:
        raise StoreError(
            f"{store.name}: made by a newer version of dopl (its schema is {version}, this program "
            f"knows up to {schema.VERSIONS[-1]}): update dopl; nothing was changed"
        )
    return version


def _migrate(connection: Connection, to: str = "head") -> None:
    # Slow to import, and needed only here.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _remedy(complaint: str) -> str:
    for sign, remedy in (
        ("disk is full", "the disk is full; nothing was changed: free some space and try again"),
        ("No space left", "the disk is full; nothing was changed: free some space and try again"),
        (
            "disk I/O error",
            "the disk does not take it; nothing was changed: is it full, or broken?",
        ),
        ("readonly", "it is read-only; nothing was changed: allow writing to it and its folder"),
        ("read-only", "it is read-only; nothing was changed: allow writing to it and its folder"),
        ("unable to open", "it cannot be opened: is its folder there, and may we write to it?"),
        ("not a database", "it is not a database of dopl: name another file, or move this one"),
        ("database is locked", "another program keeps it locked; nothing was changed: try again"),
    ):
        if sign in complaint:
            return remedy
    return complaint.strip() or "the database does not answer"
