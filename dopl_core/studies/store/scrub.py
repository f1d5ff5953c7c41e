"""Free pages and the write-ahead log of a database, cleared of what was erased.

A database overwrites a row by writing a new one and keeps the old bytes until it needs the room.
"""

import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.time_limits import SLOW_SECONDS, slowly

_PAUSE_SECONDS = 0.05
_TABLES = [name for name in tables.metadata.tables if name not in ("keys", "sessions", "members")]
# Sessions of this database that may still see rows as they were before this transaction.
_OLDER_READERS = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL "
    "AND age(backend_xmin) > age(CAST(CAST(:now AS TEXT) AS XID))"
)


def note_unscrubbed(connection: Connection, now: int) -> None:
    """Say, with an erasure, that old bytes are still to be removed."""
    u = tables.unscrubbed
    if connection.execute(sa.select(u).where(u.c.since == now)).first() is None:
        connection.execute(sa.insert(u), {"since": now})


def needs_scrub(store: Store) -> bool:
    """Whether an erasure was committed whose old bytes may still be in the files."""
    with store.read() as connection:
        return connection.execute(sa.select(tables.unscrubbed)).first() is not None


@slowly()
def scrub(store: Store, seconds: float = SLOW_SECONDS) -> bool:
    """Remove all old bytes from the files; False if others read them for too long.

    Then the next erasure, or `dopl retain`, tries again.
    """
    if not needs_scrub(store):
        return True
    with store.read() as connection:
        done = connection.execute(sa.select(tables.unscrubbed.c.since)).scalars().all()
    until = time.monotonic() + seconds
    with store.explain_errors():
        if not (_scrub_sqlite if store.is_sqlite else _scrub_postgresql)(store, until):
            return False
    with store.write() as connection:
        u = tables.unscrubbed
        connection.execute(sa.delete(u).where(u.c.since.in_(done)))
    return True


def _scrub_sqlite(store: Store, until: float) -> bool:
    """Write all pages anew, and then all of them into the file."""
    with store.engine.connect() as connection:
        raw: Any = connection.connection.dbapi_connection
        raw.execute(f"PRAGMA busy_timeout = {int(1000 * max(until - time.monotonic(), 1))}")
        raw.execute("VACUUM")
        connection.info.pop("wait", None)  # set again where it matters
        while raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_SECONDS)
    return True


def _scrub_postgresql(store: Store, until: float) -> bool:
    """Write all tables anew, once nobody sees their old rows, and the planner's statistics."""
    engine = (store.slow or store.engine).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        now = connection.execute(sa.text("SELECT txid_current() % 4294967296")).scalar_one()
        while connection.execute(_OLDER_READERS, {"now": now}).scalar_one():
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_SECONDS)
        for table in _TABLES:
            _forget_statistics(connection, table)
        for table in (*_TABLES, "pg_statistic"):
            how = "FULL" if table == "pg_statistic" else "FULL, ANALYZE"
            connection.exec_driver_sql(f"VACUUM ({how}) {table}")
    return True


def _forget_statistics(connection: Connection, table: str) -> None:
    """Remove the planner's statistics of an empty table, which ANALYZE leaves as they are.

    They have values of its columns. A column that gets the type it has loses them; no row is
    written.
    """
    columns = tables.metadata.tables[table]
    if connection.execute(sa.select(sa.literal(1)).select_from(columns).limit(1)).first() is None:
        kinds = {one.name: one.type.compile(connection.dialect) for one in columns.columns}
        as_is = ", ".join(f"ALTER COLUMN {name} TYPE {kind}" for name, kind in kinds.items())
        connection.exec_driver_sql(f"ALTER TABLE {table} {as_is}")
