"""Backups of the whole database: made while the app runs, checked by replay, and restored."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL

from dopl_core.studies.exchange.import_export import replay_study
from dopl_core.studies.model.errors import StoreError
from dopl_core.studies.operate.lifecycle import list_studies, list_unreadable
from dopl_core.studies.store import copies, postgresql_dump, schema, tables
from dopl_core.studies.store.database import address_of, look_at, open_store

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Contents:
    """What a backup holds; damaged: for each study that replay refuses, why."""

    studies: int
    answers: int
    damaged: list[str]


def back_up(file: Path, url: str | None = None) -> Contents:
    """Copy the database into a new file, while others go on writing to it.

    Everything that was saved before this call is in it. The copy is opened and every study in it
    is replayed. A study that replay refuses is named, and kept: its last state is in the file.
    url: as in open_store; a database of an older schema is copied as it is
    """
    address = address_of(url)
    with copies.new_file(file) as part:
        if address.get_backend_name() == "sqlite":
            source = Path(str(address.database))
            if not source.is_file():
                raise StoreError(f"{source}: there is no database here")
            look_at(url).close()  # refuses a -wal that does not belong to it
            copies.copy_sqlite(source, part)
        else:
            postgresql_dump.dump(address, part)
        return check_backup(part)


def check_backup(file: Path) -> Contents:
    """Open a copy of a backup and replay every study in it."""
    with tempfile.TemporaryDirectory(prefix=".dopl-check-", dir=file.parent) as folder:
        copy = Path(folder) / "copy.db"
        if _is_dump(file):
            postgresql_dump.load(file, copy)
        else:
            shutil.copyfile(file, copy)
            with closing(sqlite3.connect(copy)) as raw:
                [found] = raw.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise StoreError(f"{file}: the backup is damaged ({found}): use another one")
        return _replay_all(f"sqlite:///{copy}")


def _is_dump(file: Path) -> bool:
    with file.open("rb") as opened:
        start = opened.read(len(_SQLITE))
    if not start.startswith((_SQLITE, postgresql_dump.SIGN)):
        raise StoreError(f"{file}: not a backup of dopl: a file of `dopl backup` needed")
    return start.startswith(postgresql_dump.SIGN)


def _replay_all(url: str) -> Contents:
    store = open_store(url, backed_up=True)
    try:
        found = list_studies(store)
        damaged = [f"{one.id}: {one.why}" for one in list_unreadable(store)]
        for study in found:
            try:
                replay_study(store, study.id)
            except ValueError as error:
                damaged.append(f"{study.id}: {error}")
        return Contents(len(found), sum(study.answers for study in found), damaged)
    finally:
        store.close()


def restore(file: Path, url: str | None = None) -> Contents:
    """Put a backup where no studies are; it is checked first, so a damaged one changes nothing."""
    address = address_of(url)
    server = address.get_backend_name() != "sqlite"
    if _is_dump(file) != server:
        made, here = ("PostgreSQL", "SQLite") if _is_dump(file) else ("SQLite", "PostgreSQL")
        raise StoreError(
            f"{file}: a backup of {made}, but DOPL_DATABASE_URL names a database of {here}: set it "
            f"to an empty database of {made}"
        )
    if server:
        _check_empty(url)
        contents = check_backup(file)
        _restore_dump(file, address, url)
        return contents
    target = Path(str(address.database))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        _check_empty(url)
    contents = check_backup(file)
    for left in (target, Path(f"{target}-wal"), Path(f"{target}-shm")):
        left.unlink(missing_ok=True)
    with copies.new_file(target) as part:
        shutil.copyfile(file, part)
    return contents


def _check_empty(url: str | None) -> None:
    """Refuse a database that has studies."""
    store = look_at(url)
    try:
        with store.read() as connection:
            found = 0
            if schema.version_of(store, connection) is not None:
                count = sa.select(sa.func.count()).select_from(tables.studies)
                found = connection.execute(count).scalar_one()
        if found:
            raise StoreError(
                f"{store.name}: not empty (studies: {found}), and nothing was changed. Stop dopl. "
                "Then restore into another database: set DOPL_DATABASE_URL to an empty one, or "
                "move this one away"
            )
    finally:
        store.close()


def _restore_dump(file: Path, address: URL, url: str | None) -> None:
    """Our own empty tables, of a database that dopl has opened before, give way to the dump's."""
    store = look_at(url)
    try:
        with store.write() as connection:
            tables.metadata.drop_all(connection)
            connection.execute(sa.text("DROP TABLE IF EXISTS alembic_version"))
    finally:
        store.close()
    postgresql_dump.restore(address, file)
