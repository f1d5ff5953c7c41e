"""The entry of the audit trail that the next write transaction of a call takes along."""

from contextvars import ContextVar
from typing import Any

import sqlalchemy as sa

from dopl_core.studies.store import tables

Entry = dict[str, Any]

RECORD = sa.insert(tables.audit)
to_record: ContextVar[Entry | None] = ContextVar("to_record", default=None)


def make(at: int, study: str, who: str, act: str, about: str = "", refused: bool = False) -> Entry:
    """A row of the audit trail; about: which week, how many, never who."""
    row = {"at": at, "study": study[:200], "who": who, "act": act, "about": about[:200]}
    return row | {"refused": refused}
