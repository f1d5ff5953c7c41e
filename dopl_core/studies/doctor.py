"""What a bug report should say of a computer: each thing that dopl needs, and whether it works.

Nothing is changed by looking, and nothing that is found is secret.
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

from dopl_core.learning.arithmetic import fingerprint
from dopl_core.learning.planning import PlanningError, plan
from dopl_core.places import IS_CHECKOUT, KEPT
from dopl_core.studies import catalogue, schema
from dopl_core.studies.store import Store, StoreError, look_at, schema_version

LEAST_SPACE = 500 << 20  # bytes
CLOCK_SECONDS = 5.0  # that two clocks may differ

_PARTS = (
    *("streamlit", "numpy", "scipy", "pandas", "sqlalchemy", "alembic", "pulp", "joblib"),
    *("matplotlib", "tqdm", "platformdirs", "psycopg"),
)


@dataclass(frozen=True)
class Finding:
    """What was looked at, and what it is like; the remedy too, if that is wrong."""

    thing: str
    found: str
    is_wrong: bool = False


def examine(url: str | None = None) -> list[Finding]:
    """Everything, with or without a database that can be used.

    url: as `open_store` takes it
    """
    return [*_program(), _cbc(), *_database(url), *_disk(url)]


def _program() -> Iterator[Finding]:
    where = "a checkout" if IS_CHECKOUT else "installed"
    yield Finding(
        "dopl",
        f"{_version('dopl')}, {where}; Python {platform.python_version()} on {platform.platform()}",
    )
    parts = ", ".join(f"{name} {_version(name)}" for name in _PARTS)
    yield Finding("parts", f"{parts}; arithmetic {fingerprint()}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cbc() -> Finding:
    """Whether CBC runs, and finds what another engine finds."""
    reward = np.array([[0.0, 1.0], [0.0, 0.5]])
    rows = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]])  # [S, A, S']
    boxes = np.stack([rows, rows])
    try:
        values = [plan(reward, boxes, boxes, 1, engine=name).value for name in ("cbc", "highs")]
    except PlanningError as error:
        return Finding("CBC", f"{error}: pip install --force-reinstall pulp", is_wrong=True)
    if abs(values[0] - values[1]) > 1e-6:
        found = f"finds {values[0]:.6f} where HiGHS finds {values[1]:.6f}: report it as a bug"
        return Finding("CBC", found, is_wrong=True)
    return Finding("CBC", "runs, and agrees with HiGHS")


def _database(url: str | None) -> Iterator[Finding]:
    try:
        store = look_at(url)
    except FileNotFoundError as error:
        yield Finding("database", f"{error}: not there yet; it is made when first needed")
        return
    except StoreError as error:
        yield _trouble("database", error)
        return
    try:
        with store.read() as connection:
            version = schema_version(store, connection)
        yield _of_schema(store, version)
    except StoreError as error:
        yield _trouble("database", error, store)
        store.close()
        return
    looks: list[Callable[[Store], Finding]] = [_writing, _sound, _clock]
    if version == schema.VERSIONS[-1]:
        looks += [_last_event, _owner, _studies, _plans]
    for look in looks:
        try:
            yield look(store)
        except StoreError as error:
            yield _trouble(look.__name__.strip("_"), error)
    store.close()


def _trouble(thing: str, error: StoreError, store: Store | None = None) -> Finding:
    """A StoreError has the remedy in it, but where a server speaks for itself."""
    said = " ".join(str(error).split())
    if store is not None and not store.is_sqlite:
        said += " (is DOPL_DATABASE_URL right?)"
    return Finding(thing, said, is_wrong=True)


def _of_schema(store: Store, version: str | None) -> Finding:
    found, newest = f"{store.name}, schema {version or 'none yet'}", schema.VERSIONS[-1]
    if version != newest:
        found += f" (this program's is {newest}: brought up to date when dopl next opens it)"
    return Finding("database", found)


def _writing(store: Store) -> Finding:
    """Whether it can be written to, by a change that is taken back."""
    with suppress(_TakenBackError), store.write() as connection:
        if schema_version(store, connection) is None:
            connection.execute(sa.text("CREATE TABLE dopl_doctor (x INTEGER)"))
        else:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))
        raise _TakenBackError
    if not store.is_sqlite:
        return Finding("writing", "works")
    file = Path(store.name)
    mode = file.stat().st_mode & 0o777
    found = f"works; file mode {mode:o}, {file.stat().st_size / 1e6:,.1f} MB"
    if mode & 0o077:
        return Finding("writing", f"{found}; others may read it: chmod 600 {file}", is_wrong=True)
    return Finding("writing", found)


class _TakenBackError(Exception):
    """Ends a transaction of which nothing is to stay."""


def _sound(store: Store) -> Finding:
    if not store.is_sqlite:
        with store.read() as connection:
            server = connection.execute(sa.text("SHOW server_version")).scalar()
        return Finding("server", f"PostgreSQL {server}")
    with store.read() as connection:
        said = connection.execute(sa.text("PRAGMA quick_check(1)")).scalar()
    if said != "ok":
        found = f"damaged, {said}: stop dopl, and put a copy in its place"
        return Finding("file", found, is_wrong=True)
    return Finding("file", "undamaged")


def _clock(store: Store) -> Finding:
    here = store.now() / 1000
    words = f"{np.datetime64(int(here), 's')} UTC"
    if store.is_sqlite:
        return Finding("clock", words)
    with store.read() as connection:
        query = sa.text("SELECT extract(epoch FROM clock_timestamp())")
        there = float(connection.execute(query).scalar_one())
    apart = there - here
    if abs(apart) > CLOCK_SECONDS:
        direction = "ahead of" if apart > 0 else "behind"
        found = f"{words}; the database's is {abs(apart):,.0f} s {direction} it"
        return Finding("clock", f"{found}: set both by network time (NTP)", is_wrong=True)
    return Finding("clock", f"{words}, as the database's")


def _last_event(store: Store) -> Finding:
    """Whether the clock was put back since something was last written."""
    s, e = schema.studies.c, schema.events.c
    query = sa.select(sa.func.max(e.at)).join_from(
        schema.studies, schema.events, sa.and_(e.study == s.id, e.seq == s.seq)
    )
    with store.read() as connection:
        last = connection.execute(query).scalar()
        ahead = 0.0 if last is None else (last - _now(store, connection)) / 1000
    if last is None:
        return Finding("last event", "none yet")
    words = f"{np.datetime64(last // 1000, 's')} UTC"
    if ahead > CLOCK_SECONDS:
        found = f"{words}, {ahead:,.0f} s from now; the clock was put back: set it right"
        return Finding("last event", found, is_wrong=True)
    return Finding("last event", words)


def _now(store: Store, connection: Connection) -> int:
    """By the clock that events are dated with."""
    if store.is_sqlite:
        return store.now()
    query = sa.text("SELECT extract(epoch FROM clock_timestamp()) * 1000")
    return int(connection.execute(query).scalar_one())


def _owner(store: Store) -> Finding:
    with store.read() as connection:
        made = connection.execute(sa.select(schema.keys.c.made_at)).scalar()
        running = sa.select(sa.func.count()).where(schema.sessions.c.until > store.now())
        sessions = connection.execute(running).scalar_one()
    asked = "asked for everywhere" if os.environ.get("DOPL_ASK_FOR_KEY") else "asked for elsewhere"
    if made is None:
        return Finding("owner", "whoever sits at this computer; no key was made yet")
    since = np.datetime64(made // 1000, "s")
    return Finding("owner", f"has a key since {since} UTC, {asked}; {sessions} sessions run")


def _studies(store: Store) -> Finding:
    known, broken = catalogue.list_studies(store), catalogue.list_unreadable(store)
    answers = sum(one.answers for one in known)
    found = f"{len(known)} with {answers:,} answers"
    if broken:
        names = ", ".join(one.id for one in broken)
        found += f"; damaged: {names}: put back a copy of the database, or delete on Studies"
        return Finding("studies", found, is_wrong=True)
    return Finding("studies", found)


def _plans(store: Store) -> Finding:
    """Plans that are due, and the leases of those who make them."""
    due = {one.id for one in catalogue.list_studies(store) if one.plan_due}
    s = schema.studies.c
    with store.read() as connection:
        query = sa.select(s.id, s.planner_until).where(s.planner.is_not(None))
        leases = {row.id: row.planner_until for row in connection.execute(query)}
        now = _now(store, connection)
    making = {study for study, until in leases.items() if until > now}
    dead = leases.keys() - making
    found = f"{len(due | making)} due, {len(making)} being made"
    if dead:
        found += f"; whoever made {', '.join(sorted(dead))} has ended: the next visit goes on"
    elif due - making:
        found += "; the app makes them when somebody looks"
    return Finding("plans", found)


def _disk(url: str | None) -> Iterator[Finding]:
    """Room where the database, simulations and CBC's files are."""
    places = [KEPT, Path(tempfile.gettempdir())]
    with suppress(ArgumentError):  # said already
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
        yield Finding("disk", found + ": free some" * little, is_wrong=little)
