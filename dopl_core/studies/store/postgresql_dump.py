"""Dumps of a PostgreSQL database: made and restored by its own programs, and read without them."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import sqlalchemy as sa
from sqlalchemy.engine import URL

from dopl_core.studies.model.errors import StoreError
from dopl_core.studies.store import tables

SIGN = b"PGDMP"  # the first bytes of a dump

_COPY = re.compile(r"COPY (?:\S+\.)?(\S+) \((.*)\) FROM stdin;\n")
_ESCAPED = re.compile(r"\\(.)")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Cell = str | int | float | bool | bytes | None


def dump(address: URL, file: Path) -> None:
    """Write everything in a database, as it is at one moment, into a file."""
    _run("pg_dump", "--format=custom", f"--file={file}", address=address)


def restore(address: URL, file: Path) -> None:
    """Read a dump into a database without our tables, all of it or nothing."""
    _run("pg_restore", "--single-transaction", "--exit-on-error", str(file), address=address)


def _run(name: str, *words: str, address: URL) -> None:
    # The password goes by the environment: everybody can read the words of a command.
    password = address.password or address.query.get("password")
    there = address.set(drivername="postgresql", password=None)
    there = there.difference_update_query(["password"])
    environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
    command = [_program(name), *words, "--no-owner", "--no-privileges", f"--dbname={there}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoreError(f"{name} failed: {_first_line(done.stderr)}")


def _program(name: str) -> str:
    folder = os.environ.get("DOPL_PG_BIN")
    found = shutil.which(name, path=folder)
    if found is None:
        raise StoreError(
            f"{name} was not found {f'in {folder}' if folder else 'on the PATH'}: install the "
            "client programs of PostgreSQL (Debian: postgresql-client), or name their folder in "
            "DOPL_PG_BIN"
        )
    return found


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0].partition("error: ")[2] or lines[0] if lines else "it does not say why"


def load(file: Path, sqlite: Path) -> None:
    """Read the rows of a dump into a new SQLite file, whichever schema they are of.

    So a dump can be checked without a second database on the server.
    """
    command = [_program("pg_restore"), "--data-only", "--file=-", str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as reading:
        if reading.stdout is None or reading.stderr is None:
            raise ValueError("the program has no output")
        with closing(sqlite3.connect(sqlite)) as made, made:
            for line in reading.stdout:
                if found := _COPY.fullmatch(line):
                    columns = [name.strip('"') for name in found[2].split(", ")]
                    _load_table(made, found[1].strip('"'), columns, reading.stdout)
            made.execute("PRAGMA user_version = 1")
        said = reading.stderr.read()
    if reading.returncode:
        raise StoreError(f"{file}: the dump cannot be read: {_first_line(said)}")
    with closing(sqlite3.connect(sqlite)) as made:
        made.execute("PRAGMA journal_mode = WAL").fetchall()


def _load_table(made: sqlite3.Connection, table: str, columns: list[str], lines: IO[str]) -> None:
    known = tables.metadata.tables.get(table)
    types = [None if known is None else known.c.get(name) for name in columns]
    keys = (
        []
        if known is None
        else [column.name for column in known.primary_key if column.name in columns]
    )
    names = ", ".join(f'"{name}"' for name in columns)
    key = f", PRIMARY KEY ({', '.join(keys)})" if keys else ""
    made.execute(f'CREATE TABLE "{table}" ({names}{key})')
    places = ", ".join("?" * len(columns))
    rows = (
        [_cell(text, column) for text, column in zip(row, types, strict=True)]
        for row in _rows(lines)
    )
    made.executemany(f'INSERT INTO "{table}" VALUES ({places})', rows)  # noqa: S608


def _rows(lines: IO[str]) -> Iterator[list[str]]:
    """The rows of one table, to the line that ends it."""
    for line in lines:
        if line == "\\.\n":
            return
        yield line.rstrip("\n").split("\t")


def _cell(text: str, column: "sa.Column[object] | None") -> Cell:
    if text == "\\N":
        return None
    plain = _ESCAPED.sub(lambda found: _LETTERS.get(found[1], found[1]), text)
    kind = None if column is None else column.type
    if isinstance(kind, sa.Boolean):
        return plain == "t"
    if isinstance(kind, sa.Integer):
        return int(plain)
    if isinstance(kind, sa.Float):
        return float(plain)
    return bytes.fromhex(plain[2:]) if isinstance(kind, sa.LargeBinary) else plain
