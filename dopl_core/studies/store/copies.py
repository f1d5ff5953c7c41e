"""Copies of a database in one file, which has its name only when it is whole and on the disk."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dopl_core.studies.model.errors import StoreError


@contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """A file to fill that only its owner can read; it is renamed to `file` at the end.

    A process that is killed midway leaves a file whose name ends in .part.
    """
    if not file.parent.is_dir():
        raise StoreError(f"{file.parent}: there is no such folder: make it first")
    check_free(file)
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        _to_disk(part)
        check_free(file)
        part.rename(file)
        _to_disk(file.parent)
    finally:
        part.unlink(missing_ok=True)


def check_free(file: Path) -> None:
    """Refuse to overwrite a file."""
    if file.exists():
        raise StoreError(f"{file}: this file exists, and is not overwritten: name another one")


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database that others write to, as it is at one moment.

    All pages are copied in one read transaction, for which writers do not wait.
    """
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def copy_beside(file: Path, version: str) -> Path:
    """Copy a database beside itself before its tables change; where the copy is."""
    when = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}"
    copy = file.with_name(f"{file.name}.schema-{version}-{when}")
    try:
        with new_file(copy) as part:
            copy_sqlite(file, part)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"{file}: it could not be copied before its tables are brought up to date ({error}); "
            "nothing was changed: free some space and try again"
        ) from None
    return copy
