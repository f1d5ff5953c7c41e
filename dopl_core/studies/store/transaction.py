"""The write transaction of a study: reads its row, appends events, writes the row back.

Writers of one study wait for each other: on SQLite by BEGIN IMMEDIATE, on PostgreSQL by the lock of
the study's row. What a transaction reads stays true until it commits, and event numbers have no
gaps.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.engine import CursorResult

from dopl_core.studies.model.config_changes import CHANGES
from dopl_core.studies.model.event_kinds import EFFECTIVE
from dopl_core.studies.store import inserts, queries
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, check_head, study_row


class StudyTransaction(StudyReader):
    """What a writer knows and changes of a study; changes of `row` are written at the end."""

    def planning(self, lease: float) -> bool:
        """Whether a process is making the plan; lease: the most seconds that may be left.

        More is left only if the clock was put back, and says nothing.
        """
        left = (self.row.planner_until or 0) - self.now
        return self.row.planner is not None and 0 < left <= 1000 * lease

    def run(self, query: sa.Executable, **values: Any) -> CursorResult[Any]:
        """Execute one of queries.py."""
        return self.connection.execute(query, values)

    def append(self, kind: str, body: Struct | None = None, /, **columns: Any) -> None:
        """Add an event; columns: annotator, impression, duel, outcome."""
        row = self.row
        row.seq += 1
        if kind in EFFECTIVE:
            row.heard = row.seq
        columns["salt"] = os.urandom(16).hex()
        event = inserts.event(self.id, row.seq, self.now, kind, row.chain, body, **columns)
        row.chain = event["chain"]
        if kind in CHANGES:
            row.changes, row.changes_chain = row.changes + 1, event["chain"]
            self.__dict__.pop("changes", None)  # read again when needed
        self.run(queries.EVENT, **event)

    def write_back(self) -> None:
        after = vars(self.row)
        if after != self.before:
            changing = {name: after[name] for name in queries.CHANGING}
            self.run(queries.UPDATE_STUDY, at_study=self.id, **changing)


@contextmanager
def write_study(
    store: Store, study: str | None = None, *, impression: int | None = None, durable: bool = True
) -> Iterator[StudyTransaction]:
    """Be the only writer of a study, or of the study of an impression.

    durable: False skips fsync, see Store.write
    """
    whose = study if impression is None else store.shown_in.get(impression)
    with store.write(durable, whose) as connection:
        row = study_row(connection, study, impression, lock=True)
        table, store.table = store.table, row.table
        check_head(connection, store, row, table, store.heads.get((row.id, row.config_digest)))
        transaction = StudyTransaction(store, connection, row)
        yield transaction
        transaction.write_back()
    store.heads[row.id, row.config_digest] = (row.seq, row.chain)  # on disk by now
