"""One writer's turn on a study: it reads the study's row, appends events, and gives the row back.

Writers of one study take turns, on SQLite by BEGIN IMMEDIATE, on PostgreSQL by the lock of the
study's row. So whatever a turn reads stays true until it commits, and event numbers have no gaps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.engine import Connection, CursorResult

from dopl_core.studies import rows, statements
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.history import week_of
from dopl_core.studies.reading import (
    Record,
    coming_config,
    config_of,
    is_plan_due,
    now_of,
    study_row,
)
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.vocabulary import CHANGES, EVENTS


class Turn:
    """What a writer knows and changes of a study; written back when the turn ends."""

    def __init__(self, store: Store, connection: Connection, row: Record) -> None:
        self.store, self.connection = store, connection
        self.config = config_of(store, connection, row)
        self.now: int = now_of(store, row)
        self.study: str = row.id
        self.id: str = row.id
        self.config_digest: str = row.config_digest
        self.title: str = row.title
        self.status: str = row.status
        self.seq: int = row.seq
        self.heard: int = row.heard
        self.episode: int = row.episode
        self.epoch: int = row.epoch
        self.asked: int = row.asked
        self.given: int = row.given
        self.changes: int = row.changes
        self.in_force: int = row.in_force
        self.chain: str | None = row.chain
        self.planner: str | None = row.planner
        self.planner_until: int | None = row.planner_until
        self.planner_step: str | None = row.planner_step
        self._before = self._values()

    @property
    def plan_due(self) -> bool:
        """The next plan can be made."""
        return is_plan_due(self, self.config)

    @property
    def coming(self) -> StudyConfig:
        """The configuration with all changes so far, which holds from the next plan on."""
        return coming_config(self.store, self.connection, self)

    @property
    def week(self) -> int:
        """The epoch that is open, as owners count."""
        return week_of(self.config, self.episode, self.epoch)

    def planning(self, lease: float) -> bool:
        """Somebody is making the plan, as far as is known; lease: seconds that may be left of it.

        More than that is left only if the clock was put back, and says nothing.
        """
        left = (self.planner_until or 0) - self.now
        return self.planner is not None and 0 < left <= 1000 * lease

    def run(self, statement: Any, **values: Any) -> CursorResult[Any]:
        """Execute one of statements.py."""
        return self.connection.execute(statement, values)

    def append(self, kind: str, **columns: Any) -> None:
        """Add an event; see rows.event."""
        self.seq += 1
        if EVENTS[kind]:
            self.heard = self.seq
        self.changes += kind in CHANGES
        row = rows.event(self.study, self.seq, self.now, kind, self.chain, **columns)
        self.chain = row["chain"]
        self.run(statements.EVENT, **row)

    def write_back(self) -> None:
        after = self._values()
        if after != self._before:
            self.run(statements.UPDATE_STUDY, at_study=self.study, **after)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in statements.CHANGING}


@contextmanager
def take_turn(
    store: Store, study: str | None = None, *, impression: int | None = None, promise: bool = True
) -> Iterator[Turn]:
    """Be the only writer of a study, or of an impression's; see Store.write for `promise`."""
    with store.write(promise) as connection:
        if impression is None:
            row = study_row(connection, str(study), lock=True)
        else:
            row = _study_of(connection, impression)
        turn = Turn(store, connection, row)
        yield turn
        turn.write_back()


def _study_of(connection: Connection, impression: int) -> Record:
    row = None
    if 0 < impression < 2**63:  # what the databases can look for
        values = {"impression": impression}
        row = connection.execute(statements.LOCKED_STUDY_OF, values).one_or_none()
    if row is None:
        raise StudyError(f"impression {impression} was never shown")
    return row
