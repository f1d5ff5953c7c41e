"""Mappings: which column of an owner's files is which, remembered for the next file."""

from typing import Literal

import msgspec
import sqlalchemy as sa

from dopl_core.studies.model.roster import Columns, guess_columns
from dopl_core.studies.model.sheet import Sheet
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import study_row

FileKind = Literal["roster", "report"]
_kept = tables.mappings.c


def remember_columns(store: Store, study: str, kind: FileKind, columns: Columns) -> None:
    """Keep the columns that the owner chose for a kind of file."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        connection.execute(
            sa.delete(tables.mappings).where(_kept.study == study, _kept.kind == kind)
        )
        content = msgspec.json.encode(columns).decode()
        row = {"study": study, "kind": kind, "content": content}
        connection.execute(sa.insert(tables.mappings), row)


def remembered_columns(store: Store, study: str, kind: FileKind, sheet: Sheet) -> Columns | None:
    """The columns that the owner chose last, if this sheet has all of them.

    If none fit a report, those of the roster that it has, and the others by their names.
    """
    query = sa.select(_kept.kind, _kept.content).where(_kept.study == study)
    with store.read() as connection:
        chosen = {
            row.kind: msgspec.json.decode(row.content, type=Columns)
            for row in connection.execute(query)
        }
    columns, roster = chosen.get(kind), chosen.get("roster")
    if columns and {*columns.own, *(columns.shown or ())} - {""} <= set(sheet.columns):
        return columns
    if kind == "report" and roster and {roster.id, roster.state} <= set(sheet.columns):
        return guess_columns(sheet.columns, like=roster)
    return None
