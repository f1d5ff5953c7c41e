"""The tables of a database: made, or brought up to date. `store` is a database.Store."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateTable

from dopl_core.studies.model.errors import BackupNeededError, StoreError
from dopl_core.studies.store import copies, tables
from dopl_core.studies.store.time_limits import CLICK_SECONDS, slowly

MIGRATIONS = Path(__file__).resolve().parent / "migrations"
_MIGRATION_LOCK = 0x646F706C  # "dopl": any number that no other program on the server uses
_PAUSE_SECONDS = 0.02


@slowly()
def update(store: Any, *, backed_up: bool = False) -> None:
    """Make the tables, or run the migrations that this database lacks, all or none.

    A SQLite file is copied first. In PostgreSQL somebody has to say that there is a backup. A file
    that another program copied (VACUUM INTO) is up to date but may have no -wal.
    """
    with store.read() as connection:
        has_log = not store.is_sqlite or connection.info["wal"]
        if version_of(store, connection) == tables.VERSIONS[-1] and has_log:
            return
    if store.is_sqlite:
        with store.explain_errors(), store.engine.connect() as connection:
            _use_write_ahead_log(connection.connection.cursor())
    with store.write() as connection:
        if not store.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        version = version_of(store, connection)
        if version is None:
            _create_tables(connection)
        elif version != tables.VERSIONS[-1] and store.is_sqlite:
            copies.copy_beside(Path(store.name), version)
        elif version != tables.VERSIONS[-1]:
            _check_backed_up(store, version, backed_up)
        if version != tables.VERSIONS[-1]:
            _migrate(connection, new=version is None)


def _check_backed_up(store: Any, version: str, backed_up: bool) -> None:
    if not backed_up and os.environ.get("DOPL_MIGRATE") != "yes":
        raise BackupNeededError(
            f"{store.name}: its tables are of schema {version}, and this version of dopl needs "
            f"{tables.VERSIONS[-1]}; nothing was changed. Make a backup with `dopl backup FILE`. "
            "Then start dopl once with DOPL_MIGRATE=yes, or run a `dopl` command in a terminal and "
            "confirm"
        )


def _use_write_ahead_log(cursor: Any) -> None:
    """Switch a new file to a -wal. Cannot be done in a transaction, which SQLAlchemy would begin.

    SQLite does not wait here for another process that does the same: it refuses at once.
    """
    until = time.monotonic() + CLICK_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)


def _create_tables(connection: Connection) -> None:
    """Create tables, and their indexes by name: SQLite takes the last of two that fit alike."""
    for table in tables.metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            index.create(connection)


def version_of(store: Any, connection: Connection) -> str | None:
    """Which migration its tables are of; None where there are none yet."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    if version is not None and version not in tables.VERSIONS:
        raise StoreError(
            f"{store.name}: made by another version of dopl (its schema is {version}, this program "
            f"opens {tables.VERSIONS[0]} to {tables.VERSIONS[-1]}): use a version of dopl that "
            "knows it; nothing was changed"
        )
    return version


def _migrate(connection: Connection, new: bool) -> None:
    """Bring the tables up to date; those of a new database only need their version."""
    # Slow to import, and needed only here.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    (command.stamp if new else command.upgrade)(config, "head")
