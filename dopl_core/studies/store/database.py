"""The database of studies: SQLite or PostgreSQL, opened, migrated and written safely."""

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from dopl_core.paths import KEPT
from dopl_core.studies.model.actors import Actor
from dopl_core.studies.model.errors import LockedError, ReplacedError, StoreError
from dopl_core.studies.store import postgresql, schema, time_limits
from dopl_core.studies.store.audit_entry import RECORD, to_record
from dopl_core.studies.store.sqlite_file import FileWatch, check_left, identity, never_close
from dopl_core.studies.store.time_limits import is_slow

LOCKED = "another program keeps it locked; nothing was changed: try again"


class _Bound:
    """Who acts; not among the attributes that the views of a store share."""

    __slots__ = ("actor",)
    actor: Actor | None


@dataclass(eq=False)
class Store(_Bound):
    """An open database; share it between threads, never across a fork.

    actor: for whom it acts; None for a program, which may do everything.

    clock: seconds since 1970; tests move it.
    configs: parsed configurations by study, digest of the first and chain of the last change.
    reports: columns last read of those that owners reported, by their digest.
    heads: the last event of each study that this process knows: its number and its chain.
    table: the table of studies in PostgreSQL; a restored one has another number.
    stopped: why nothing is read or written any more.
    slow: connections for slow work, so that it takes none from clicks.
    shown_in: the studies of impressions that this process has shown lately.
    noted: when this process last recorded a look or a refusal, by what is recorded.
    """

    engine: Engine
    clock: Callable[[], float] = time.time
    slow: Engine | None = None
    shown_in: dict[int, str] = field(default_factory=dict)
    configs: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    reports: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    heads: dict[tuple[str, str], tuple[int, str | None]] = field(default_factory=dict)
    table: int | None = None
    stopped: ReplacedError | None = None
    # Of those who write, by study; see _turn.
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _thread: threading.local = field(default_factory=threading.local)
    _watch: FileWatch | None = None  # of a SQLite file
    noted: dict[tuple[Any, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.actor = None

    def acting_as(self, actor: Actor) -> "Store":
        """The same database for somebody, who may do what their roles allow.

        All views share their attributes: pools, caches, and whether the database was replaced.
        """
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        view.actor = actor
        return view

    @cached_property
    def name(self) -> str:
        """The database in words that may be shown: no password."""
        url = self.engine.url.difference_update_query(["password", "sslpassword"])
        return str(url.database) if self.is_sqlite else url.render_as_string(hide_password=True)

    @cached_property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self.clock() * 1000)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view of the database."""
        engine = self.slow if self.slow is not None and is_slow.get() else self.engine
        with self.explain_errors(), engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                if self._watch is not None:
                    self._watch.check(connection)
                yield connection

    @contextmanager
    def write(self, durable: bool = True, study: str | None = None) -> Iterator[Connection]:
        """One transaction, on disk when the block is left, undone when it fails.

        What the gate wants recorded in the audit trail is part of the transaction.
        durable: False skips fsync on SQLite, where nobody is told that anything was saved: a lease
        lost in a power cut is given again. The next durable transaction waits for both.
        study: whose row is locked, where that is known: its writers take turns
        """
        engine = self.slow if self.slow is not None and is_slow.get() else self.engine
        turn = self._turn("" if self.is_sqlite else study)
        with self.explain_errors(), turn as until, engine.connect() as connection:
            mode = "FULL" if durable else "NORMAL"
            connection.execution_options(dopl_write=mode, dopl_until=until)
            with connection.begin():
                if self._watch is not None:
                    self._watch.begin(connection)
                yield connection
                if (entry := to_record.get()) is not None:
                    connection.execute(RECORD, entry)
                if self._watch is not None:
                    self._watch.commit(connection)
            if entry is not None:
                to_record.set(None)

    @contextmanager
    def _turn(self, what: str | None) -> Iterator[float]:
        """Be the only thread that writes this; the deadline of the transaction.

        Those who wait here have no connection, so one locked study takes none from the others.
        Everyone has a deadline of their own, so waits do not add up. Also, SQLite polls for its
        lock up to 100 ms apart, and turns are prompt.
        """
        began = time.monotonic()
        refused = began - getattr(self._thread, "refused_at", -1e9) < time_limits.CLICK_SECONDS
        seconds = time_limits.AGAIN_SECONDS if refused else time_limits.CLICK_SECONDS
        seconds = time_limits.SLOW_SECONDS if is_slow.get() else seconds
        mine = threading.Lock()
        lock = mine if what is None else self._locks.setdefault(what, mine)
        if not lock.acquire(timeout=seconds):
            raise LockedError(f"{self.name}: {LOCKED}")
        try:
            yield began + seconds
        finally:
            lock.release()

    @contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Turn errors of the database into a sentence with a remedy."""
        if self.stopped is not None:
            raise self.stopped
        try:
            yield
        except IntegrityError:
            raise
        except ReplacedError as error:
            self._stop(error)
            raise
        except DBAPIError as error:
            self._thread.refused_at = time.monotonic()
            remedy = _remedy(str(error.orig))
            kind = LockedError if remedy == LOCKED else StoreError
            raise kind(f"{self.name}: {remedy}") from error
        except LockedError:
            self._thread.refused_at = time.monotonic()
            raise
        except PoolTimeout as error:
            self._thread.refused_at = time.monotonic()
            raise StoreError(f"{self.name}: too many wait for it at once: try again") from error

    def _stop(self, error: ReplacedError) -> None:
        """Read and write nothing more: another database has taken the place of this one."""
        if self.is_sqlite and self.stopped is None:
            with suppress(DBAPIError, StoreError), self.engine.connect() as connection:
                never_close(connection.connection.dbapi_connection)  # type: ignore[arg-type]
        self.stopped = error

    def close(self) -> None:
        self.keep_backup()
        self.engine.dispose(close=self.stopped is None)
        if self.slow is not None:
            self.slow.dispose()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def keep_backup(self) -> None:
        """Before the end: let SQLite not write the -wal into a backup in the place of the file."""
        if self._watch and not self._watch.is_whole() and self.stopped is None:
            with suppress(StoreError), self.read():
                pass  # notices it


def open_store(
    url: str | None = None, *, clock: Callable[[], float] = time.time, backed_up: bool = False
) -> Store:
    """Open a database and bring its tables up to date; safe when several processes start at once.

    url: a SQLAlchemy URL; else DOPL_DATABASE_URL, else dopl.db where things are kept
    backed_up: there is a backup, without which tables in PostgreSQL are not changed
    """
    address = address_of(url)
    if address.get_backend_name() == "sqlite":
        store = Store(_sqlite(address), clock)
    else:
        store = Store(
            postgresql.connect(address), clock, slow=postgresql.connect(address, slow=True)
        )
    schema.update(store, backed_up=backed_up)
    if store.is_sqlite:
        store.engine.dispose()  # connections made before the tables were
        store._watch = watch = FileWatch(store.name)
        _watched.add(store)

        @event.listens_for(store.engine, "do_connect")
        def before_connecting(*_: Any) -> None:
            watch.check_path()  # SQLite would make a new, empty file

        with store.read():
            pass  # from now on there is a -wal, by which others see that the file is in use
    return store


_watched: weakref.WeakSet[Store] = weakref.WeakSet()


@atexit.register
def _keep_backups() -> None:
    for store in list(_watched):
        store.keep_backup()


def look_at(url: str | None = None) -> Store:
    """Open a database as it is: nothing is made, brought up to date, or kept from others.

    A SQLite file that is not there is a FileNotFoundError.
    """
    address = address_of(url)
    if address.get_backend_name() != "sqlite":
        return Store(postgresql.connect(address))
    file = Path(str(address.database))
    check_left(file)
    if not file.exists():
        raise FileNotFoundError(file)
    return Store(_sqlite_engine(address))


def address_of(url: str | None) -> URL:
    """The address of a database, as open_store finds it."""
    return _address(url or os.environ.get("DOPL_DATABASE_URL") or "")


def full_address(url: str) -> str:
    """An address that names the same database in whatever folder; it has the password in it."""
    address = _address(url)
    if address.get_backend_name() == "sqlite":
        address = address.set(database=os.path.abspath(str(address.database)))
    return address.render_as_string(hide_password=False)


def _address(url: str) -> URL:
    if url.startswith("postgres") and url.partition("?")[0].count("@") > 1:
        # Read otherwise, a part of the password would be the host, and be shown.
        raise StoreError("DOPL_DATABASE_URL: write @ in a user name or a password as %40")
    try:
        address = make_url(url or f"sqlite:///{KEPT / 'dopl.db'}")
    except (ArgumentError, ValueError):
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
    check_left(file)
    _keep_private(file)
    return _sqlite_engine(address)


def _sqlite_engine(address: URL) -> Engine:
    # Autocommit in the driver: transactions are begun below, and nowhere else.
    engine = sa.create_engine(
        address,
        connect_args={"timeout": time_limits.CLICK_SECONDS, "isolation_level": None},
        pool_size=20,
        max_overflow=100,
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # opens the -wal
        record.info["wal"] = identity(f"{address.database}-wal")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # FULL: an answer is on disk before anyone is told that it is saved.
        synchronous = connection.get_execution_options().get("dopl_write")
        if synchronous and synchronous != connection.info.get("synchronous"):
            connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
            connection.info["synchronous"] = synchronous
        if (until := connection.get_execution_options().get("dopl_until")) is not None:
            wait = 100 * max(int(10 * (until - time.monotonic()) + 1), 1)  # rounded: seldom anew
            if wait != connection.info.get("wait"):
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait}")
                connection.info["wait"] = wait
        # A writer that begins as a reader can find the database changed under it, and fail.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if synchronous else "BEGIN")

    return engine


def _keep_private(file: Path) -> None:
    """Make the file, if there is none, and let nobody else on this computer read it.

    SQLite gives the files it makes beside it (-wal, -shm) the same rights.
    """
    # An existing file is not opened here: to close it again would, by the rules of POSIX, release
    # all locks that SQLite has on it in this process.
    with suppress(OSError):  # opening the file reports what is wrong with it
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with suppress(OSError):
        for one in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            if one.exists() and (mode := one.stat().st_mode) & 0o077:
                one.chmod(mode & 0o700)


_FULL = "the disk is full; nothing was changed: free some space and try again"
_READ_ONLY = "it is read-only; nothing was changed: allow writing to it and its folder"
# What a database complains of, and what to do; the first that fits.
_REMEDIES = {
    "disk is full": _FULL,
    "No space left": _FULL,
    "disk I/O error": "the disk does not take it; nothing was changed: is it full, or broken?",
    "readonly": _READ_ONLY,
    "read-only": _READ_ONLY,
    "unable to open": "it cannot be opened: is its folder there, and may we write to it?",
    "not a database": "it is not a database of dopl: name another file, or move this one",
    "malformed": "it is damaged: stop dopl and restore a backup; `dopl doctor` says more",
    "database is locked": LOCKED,
    "lock timeout": LOCKED,
    "statement timeout": "it is too slow at the moment; nothing was changed: try again",
    "idle-in-transaction": "this took too long; nothing was changed: try again",
}


def _remedy(complaint: str) -> str:
    found = (remedy for sign, remedy in _REMEDIES.items() if sign in complaint)
    return next(found, complaint.strip() or "the database does not answer")
