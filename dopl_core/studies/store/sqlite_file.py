"""A SQLite file and the -wal beside it, watched for copies that take their place."""

import ctypes
import os
import sqlite3
import struct
import weakref
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from dopl_core.studies.model.errors import ReplacedError, StoreError

Identity = tuple[int, int]  # device and number of a file

_GONE = (
    "{}: the database file was removed or replaced while it was open; nothing is saved any more: "
    "put it back and start dopl again"
)
_OTHER_FILE = (
    "{0}: an older copy was put in its place while dopl was running; nothing is saved any more. "
    "Stop dopl. To go on from the copy, move {1}-wal and {1}-shm away and copy it again; answers "
    "that are not in the copy are lost. Else put the newer file back. Then start dopl"
)
_CUT_OFF = (
    "{0}-wal, where the last answers are, was cut off while dopl was running; nothing is saved any "
    "more. Stop dopl, put the whole {1}-wal back or restore a backup of both, then start dopl. "
    "Without it, the last answers are lost"
)
_FOREIGN_LOG = (
    "{0}: it does not belong to the {1}-wal beside it; opening both would damage it. If {1} is a "
    "restored backup, move {1}-wal and {1}-shm away. Else put the {1} back that was there"
)
_VERSION_AT, _LOG_HEADER, _FRAME = 60, 32, 24  # bytes: user_version, and the headers of a -wal
_LOG_MAGIC = (0x377F0682, 0x377F0683)
_LOOKS = 5  # at a -wal that another program is writing to


def identity(path: str) -> Identity | None:
    """Which file is at this path, if any. Takes microseconds."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Handles:
    """One handle on each file that is read beside SQLite.

    By the rules of POSIX, closing any handle releases all locks that SQLite has on the file in
    this process. So a handle stays open until the last store of its file is closed.
    """

    def __init__(self) -> None:
        self.open: dict[Identity, int] = {}
        self.users: Counter[Identity] = Counter()

    def take(self, path: str) -> tuple[Identity, int]:
        found = identity(path)
        if found is None or found not in self.open:
            handle = os.open(path, os.O_RDONLY)
            about = os.fstat(handle)
            found = about.st_dev, about.st_ino
            self.open[found] = handle
        self.users[found] += 1
        return found, self.open[found]

    def give_back(self, file: Identity) -> None:
        self.users[file] -= 1
        if not self.users[file]:
            os.close(self.open.pop(file))


_handles = _Handles()


@dataclass(eq=False)
class FileWatch:
    """Whether a SQLite file is still the one that was opened, with all that was written to it.

    `cp backup.db dopl.db` under a running program keeps the file's identity, and SQLite then mixes
    old and new pages. So every write transaction counts up `user_version`, a number at a fixed
    place of the first page. It may only grow: as SQLite reads it, and in the file itself, where
    pages arrive when the -wal beside it is checkpointed.

    count: the number of write transactions, as SQLite last had it
    in_file: that of the file itself;  log: size and salt of the -wal, which a restart changes
    """

    path: str
    count: int = 0
    in_file: int = 0
    log: tuple[int, bytes] = (0, b"")
    _changes: int = 0

    def __post_init__(self) -> None:
        self.file, self._handle = _handles.take(self.path)
        self.close = weakref.finalize(self, _handles.give_back, self.file)
        self.close.atexit = False

    def check_path(self) -> None:
        if identity(self.path) != self.file:
            raise StoreError(_GONE.format(self.path))

    def check(self, connection: Connection) -> None:
        """Refuse a file that is not at its path any more, or has an older content.

        A file that was removed or replaced accepts every commit silently, and loses them all when
        the process ends. The same holds for the -wal, where commits go first.
        """
        try:
            file, log = os.stat(self.path), os.stat(f"{self.path}-wal")
        except OSError:
            raise StoreError(_GONE.format(self.path)) from None
        expected = (*self.file, *(connection.info["wal"] or ()))
        if (file.st_dev, file.st_ino, log.st_dev, log.st_ino) != expected:
            raise StoreError(_GONE.format(self.path))
        before = self.in_file  # another thread may see a later one
        now = int.from_bytes(os.pread(self._handle, 4, _VERSION_AT), "big")
        if now < before:
            raise ReplacedError(_OTHER_FILE.format(self.path, Path(self.path).name))
        self.in_file = now

    def begin(self, connection: Connection) -> None:
        """Refuse to write where what was written before is gone."""
        self.check(connection)
        raw: Any = connection.connection.dbapi_connection
        now = raw.execute("PRAGMA user_version").fetchone()[0]
        if not max(self.count, self.in_file) <= now:
            raise ReplacedError(_OTHER_FILE.format(self.path, Path(self.path).name))
        with open(f"{self.path}-wal", "rb", buffering=0) as log:
            header = log.read(_LOG_HEADER)
            size, before = log.seek(0, os.SEEK_END), self.log
        self.log = (size, header[16:24])
        # It becomes smaller only when all of it is in the file, and then begins anew.
        if size < before[0] and not (
            (_is_log(header) and header[16:24] != before[1]) or (not size and self.in_file == now)
        ):
            raise ReplacedError(_CUT_OFF.format(self.path, Path(self.path).name))
        self.count, self._changes = now, raw.total_changes

    def commit(self, connection: Connection) -> None:
        """Count a transaction that changed something, before it is committed."""
        raw: Any = connection.connection.dbapi_connection
        if raw.total_changes != self._changes:
            raw.execute(f"PRAGMA user_version = {self.count + 1}")
        self.check(connection)

    def is_whole(self) -> bool:
        """Whether the file at the path can be the one that was written to."""
        now = int.from_bytes(os.pread(self._handle, 4, _VERSION_AT), "big")
        return identity(self.path) == self.file and now >= self.in_file


def _number(four: bytes) -> int:
    return int.from_bytes(four, "big") if len(four) == 4 else -1


def _is_log(header: bytes) -> bool:
    return len(header) == _LOG_HEADER and struct.unpack_from(">I", header)[0] in _LOG_MAGIC


def check_left(file: Path) -> None:
    """Refuse a file and a -wal that do not belong together, before SQLite joins them."""
    left = Path(f"{file}-wal")
    if not left.exists():
        return
    if not file.exists():
        # A new file would be made, and the answers in there would be thrown away.
        raise StoreError(
            f"{file}: the database file is gone, but {left.name}, where the last answers are, is "
            "still there: put it back; or remove that too, to begin anew"
        )
    known, handle = _handles.take(str(file))
    try:
        for _ in range(_LOOKS):
            before = _number(os.pread(handle, 4, _VERSION_AT))
            salt, counts, salt_after = _counts_in_log(left)
            if salt == salt_after:
                break
        else:
            return  # busy, so in use
        after = _number(os.pread(handle, 4, _VERSION_AT))
    finally:
        _handles.give_back(known)
    # The first transaction of a -wal follows the last one that its file had when it was begun.
    if counts and not (after >= counts[0] - 1 and before <= max(counts)):
        raise StoreError(_FOREIGN_LOG.format(file, file.name))


def _counts_in_log(log: Path) -> tuple[bytes, list[int], bytes]:
    """`user_version` in all first pages of a -wal; and its salt, before and after reading."""
    counts: list[int] = []
    with log.open("rb") as file:
        header = file.read(_LOG_HEADER)
        if not _is_log(header):
            return b"", [], b""
        page, salt = struct.unpack_from(">I", header, 8)[0], header[16:24]
        at = _LOG_HEADER
        while len(frame := file.read(_FRAME)) == _FRAME and frame[8:16] == salt:
            if struct.unpack_from(">I", frame)[0] == 1:
                file.seek(at + _FRAME + _VERSION_AT)
                counts.append(_number(file.read(4)))
            at += _FRAME + page
            file.seek(at)
        file.seek(0)
        return salt, [count for count in counts if count >= 0], file.read(_LOG_HEADER)[16:24]


def never_close(connection: sqlite3.Connection) -> None:
    """Keep a connection open as long as the process lives, and its lock on the file with it.

    SQLite writes the -wal into the file when its last connection is closed: into a restored backup
    if that has taken its place.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
