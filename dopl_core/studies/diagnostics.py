"""Checks of everything that dopl needs on a computer, for `dopl doctor` and for bug reports.

The checks change nothing, and their results contain no secret.
"""

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import ArgumentError

from dopl_core.learning.planning import PlanningError, plan
from dopl_core.learning.reproducibility import fingerprint
from dopl_core.paths import IS_CHECKOUT, KEPT
from dopl_core.studies.model.errors import StoreError
from dopl_core.studies.operate import lifecycle
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store, look_at
from dopl_core.studies.store.schema import version_of

LEAST_SPACE = 500 << 20  # bytes
CLOCK_SECONDS = 5.0  # tolerated difference of two clocks

_PACKAGES = (
    "streamlit",
    "numpy",
    "scipy",
    "pandas",
    "sqlalchemy",
    "alembic",
    "pulp",
    "joblib",
    "matplotlib",
    "tqdm",
    "platformdirs",
    "psycopg",
)


@dataclass(frozen=True)
class Check:
    """One check and its result; if it failed, the result says what to do."""

    name: str
    result: str
    failed: bool = False


def run_checks(url: str | None = None) -> list[Check]:
    """Run all checks, with or without a usable database.

    url: of the database, as in `open_store`
    """
    return [*_program(), _cbc(), *_database(url), *_disk(url)]


def _program() -> Iterator[Check]:
    where = "a checkout" if IS_CHECKOUT else "installed"
    yield Check(
        "dopl",
        f"{_version('dopl')}, {where}; Python {platform.python_version()} on {platform.platform()}",
    )
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    yield Check("packages", f"{versions}; arithmetic {fingerprint()}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cbc() -> Check:
    """Whether CBC runs and gives the same value as another engine."""
    reward = np.array([[0.0, 1.0], [0.0, 0.5]])
    rows = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]])  # [S, A, S']
    boxes = np.stack([rows, rows])
    try:
        values = [plan(reward, boxes, boxes, 1, engine=name).value for name in ("cbc", "highs")]
    except PlanningError as error:
        return Check("CBC", f"{error}: pip install --force-reinstall pulp", failed=True)
    if abs(values[0] - values[1]) > 1e-6:
        found = f"gives {values[0]:.6f}, HiGHS gives {values[1]:.6f}: please report this as a bug"
        return Check("CBC", found, failed=True)
    return Check("CBC", "runs and agrees with HiGHS")


def _database(url: str | None) -> Iterator[Check]:
    try:
        store = look_at(url)
    except FileNotFoundError as error:
        yield Check(
            "database", f"{error}: does not exist yet; dopl creates it when it is first needed"
        )
        return
    except StoreError as error:
        yield _failure("database", error)
        return
    try:
        with store.read() as connection:
            version = version_of(store, connection)
        yield _schema(store, version)
    except StoreError as error:
        yield _failure("database", error, store)
        store.close()
        return
    checks: list[Callable[[Store], Check]] = [_writing, _file_or_server, _clock]
    if version == tables.VERSIONS[-1]:
        checks += [_last_event, _owner, _studies, _logs, _plans]
    for check in checks:
        try:
            yield check(store)
        except StoreError as error:
            yield _failure(check.__name__.strip("_"), error)
    store.close()


def _failure(name: str, error: StoreError, store: Store | None = None) -> Check:
    """A failed check. StoreErrors name the remedy, except those that come from a server."""
    result = " ".join(str(error).split())
    if store is not None and not store.is_sqlite:
        result += " (is DOPL_DATABASE_URL right?)"
    return Check(name, result, failed=True)


def _schema(store: Store, version: str | None) -> Check:
    found, newest = f"{store.name}, schema {version or 'none yet'}", tables.VERSIONS[-1]
    if version != newest:
        when = "when it opens it" if store.is_sqlite else "once you say that there is a backup"
        found += f" (this version of dopl uses {newest} and will migrate it {when})"
    return Check("database", found)


def _writing(store: Store) -> Check:
    """Whether the database can be written to, by a change that is rolled back."""
    with suppress(_RollbackError), store.write() as connection:
        if version_of(store, connection) is None:
            connection.execute(sa.text("CREATE TABLE dopl_doctor (x INTEGER)"))
        else:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))
        raise _RollbackError
    if not store.is_sqlite:
        return Check("writing", "works")
    file = Path(store.name)
    mode = file.stat().st_mode & 0o777
    found = f"works; file mode {mode:o}, {file.stat().st_size / 1e6:,.1f} MB"
    if mode & 0o077:
        return Check("writing", f"{found}; other users can read it: chmod 600 {file}", failed=True)
    return Check("writing", found)


class _RollbackError(Exception):
    """Rolls a transaction back."""


def _file_or_server(store: Store) -> Check:
    if not store.is_sqlite:
        with store.read() as connection:
            server = connection.execute(sa.text("SHOW server_version")).scalar()
        return Check("server", f"PostgreSQL {server}")
    with store.read() as connection:
        answer = connection.execute(sa.text("PRAGMA integrity_check(1)")).scalar()
    if answer != "ok":
        found = f"damaged, {answer}: stop dopl and restore a backup"
        return Check("file", found, failed=True)
    return Check("file", "undamaged")


def _clock(store: Store) -> Check:
    here = store.now() / 1000
    words = f"{np.datetime64(int(here), 's')} UTC"
    if store.is_sqlite:
        return Check("clock", words)
    with store.read() as connection:
        query = sa.text("SELECT extract(epoch FROM clock_timestamp())")
        there = float(connection.execute(query).scalar_one())
    apart = there - here
    if abs(apart) > CLOCK_SECONDS:
        direction = "ahead of" if apart > 0 else "behind"
        found = f"{words}; the database's clock is {abs(apart):,.0f} s {direction} it"
        return Check("clock", f"{found}: synchronise both by NTP", failed=True)
    return Check("clock", f"{words}, same as the database's clock")


def _last_event(store: Store) -> Check:
    """Whether the clock was set back since the last event."""
    s, e = tables.studies.c, tables.events.c
    query = sa.select(sa.func.max(e.at)).join_from(
        tables.studies, tables.events, sa.and_(e.study == s.id, e.seq == s.seq)
    )
    with store.read() as connection:
        last = connection.execute(query).scalar()
        ahead = 0.0 if last is None else (last - _now(store, connection)) / 1000
    if last is None:
        return Check("last event", "none yet")
    words = f"{np.datetime64(last // 1000, 's')} UTC"
    if ahead > CLOCK_SECONDS:
        found = f"{words}, {ahead:,.0f} s in the future: the clock was set back; correct it"
        return Check("last event", found, failed=True)
    return Check("last event", words)


def _now(store: Store, connection: Connection) -> int:
    """The time by the clock that dates events."""
    if store.is_sqlite:
        return store.now()
    query = sa.text("SELECT extract(epoch FROM clock_timestamp()) * 1000")
    return int(connection.execute(query).scalar_one())


def _owner(store: Store) -> Check:
    with store.read() as connection:
        made = connection.execute(sa.select(tables.keys.c.made_at)).scalar()
        running = sa.select(sa.func.count()).where(tables.sessions.c.until > store.now())
        sessions = connection.execute(running).scalar_one()
    always = os.environ.get("DOPL_ASK_FOR_KEY")
    needed = "needed everywhere" if always else "not needed on this computer"
    if made is None:
        return Check("owner", "no key yet; anybody at this computer is the owner")
    since = np.datetime64(made // 1000, "s")
    return Check("owner", f"key made {since} UTC, {needed}; active sessions: {sessions}")


def _studies(store: Store) -> Check:
    known, broken = lifecycle.list_studies(store), lifecycle.list_unreadable(store)
    answers = sum(study.answers for study in known)
    found = f"{len(known)} with {answers:,} answers"
    if broken:
        names = ", ".join(study.id for study in broken)
        found += f"; damaged: {names}: restore a backup, or delete them on the Studies page"
        return Check("studies", found, failed=True)
    return Check("studies", found)


def _logs(store: Store) -> Check:
    """Whether the log of each study ends with the event that its row names."""
    s, e = tables.studies.c, tables.events.c
    last = sa.select(sa.func.max(e.seq)).where(e.study == s.id).scalar_subquery()
    chain = sa.select(e.chain).where(e.study == s.id, e.seq == s.seq).scalar_subquery()
    with store.read() as connection:
        found = connection.execute(sa.select(s.id, s.seq, s.chain, last, chain)).all()
    broken = [id for id, seq, head, most, there in found if (most or 0) != seq or head != there]
    if broken:
        remedy = "restore a whole backup, or delete the study and import its last bundle"
        names = ", ".join(broken)
        return Check("logs", f"{names}: its last events are missing: {remedy}", failed=True)
    return Check("logs", "complete; `dopl replay STUDY` checks every event")


def _plans(store: Store) -> Check:
    """Plans that are due or being made, and leases left by processes that ended."""
    due = {study.id for study in lifecycle.list_studies(store) if study.plan_due}
    s = tables.studies.c
    with store.read() as connection:
        query = sa.select(s.id, s.planner_until).where(s.planner.is_not(None))
        leases = {row.id: row.planner_until for row in connection.execute(query)}
        now = _now(store, connection)
    making = {study for study, until in leases.items() if until > now}
    dead = leases.keys() - making
    found = f"{len(due | making)} due, {len(making)} being made"
    if dead:
        found += f"; interrupted: {', '.join(sorted(dead))}; the next visit resumes them"
    elif due - making:
        found += "; the app makes them at the next visit"
    return Check("plans", found)


def _disk(url: str | None) -> Iterator[Check]:
    """Free space for the database, simulations and CBC's files."""
    places = [KEPT, Path(tempfile.gettempdir())]
    with suppress(ArgumentError, ValueError):  # the check of the database reports it
        address = sa.make_url(url or os.environ.get("DOPL_DATABASE_URL") or "sqlite://")
        if address.get_backend_name() == "sqlite" and address.database:
            places.insert(0, Path(address.database).parent)
    seen = set()
    for place in places:
        there = next(one for one in (place, *place.absolute().parents) if one.exists())
        if there.stat().st_dev in seen:
            continue
        seen.add(there.stat().st_dev)
        free = shutil.disk_usage(there).free
        found = f"{free / 1e9:,.1f} GB free in {there}"
        little = free < LEAST_SPACE
        yield Check("disk", found + ": free some space" * little, failed=little)
