"""One writer's turn on a study: it reads the study's row, appends events, and gives the row back.

Writers of one study take turns, on SQLite by BEGIN IMMEDIATE, on PostgreSQL by the lock of the
study's row. So whatever a turn reads stays true until it commits, and event numbers have no gaps.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, CursorResult

from dopl_core.studies import schema, statements
from dopl_core.studies.config import StudyConfig, from_json
from dopl_core.studies.store import Store, StudyError

Record = Any  # a row of the database: its columns are attributes

_HEARD = {"answered", "undone", "observed", "planned"}  # events that the learner counts
_EVENT = ("annotator", "impression", "duel", "outcome", "body")


class Turn:
    """What a writer knows and changes of a study; written back when the turn ends."""

    def __init__(self, store: Store, connection: Connection, row: Record) -> None:
        self.store, self.connection = store, connection
        self.config = config_of(store, connection, row)
        self.now = store.now()
        self.study: str = row.id
        self.status: str = row.status
        self.seq: int = row.seq
        self.heard: int = row.heard
        self.episode: int = row.episode
        self.epoch: int = row.epoch
        self.asked: int = row.asked
        self.given: int = row.given
        self.planner: str | None = row.planner
        self.planner_until: int | None = row.planner_until
        self._before = self._values()

    @property
    def plan_due(self) -> bool:
        """All moves and all ratings of the episode are in."""
        return is_plan_due(self, self.config)

    @property
    def planning(self) -> bool:
        """Somebody is making the plan, as far as is known."""
        return self.planner is not None and (self.planner_until or 0) > self.now

    def run(self, statement: Any, **values: Any) -> CursorResult[Any]:
        """Execute a statement of statements.py."""
        return self.connection.execute(statement, values)

    def append(self, kind: str, **columns: Any) -> None:
        """Add an event; `body` is written as JSON."""
        self.seq += 1
        if kind in _HEARD:
            self.heard = self.seq
        if "body" in columns:
            columns["body"] = to_text(columns["body"])
        values = {name: columns.get(name) for name in _EVENT}
        self.run(statements.EVENT, study=self.study, seq=self.seq, at=self.now, kind=kind, **values)

    def write_back(self) -> None:
        after = self._values()
        if after != self._before:
            self.run(statements.UPDATE_STUDY, at_study=self.study, **after)

    def _values(self) -> dict[str, Any]:
        names = "status seq heard episode epoch asked given planner planner_until"
        return {name: getattr(self, name) for name in names.split()}


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


def study_row(connection: Connection, study: str, lock: bool = False) -> Record:
    """The study's row without its configuration."""
    query = statements.LOCKED_STUDY if lock else statements.STUDY
    row = connection.execute(query, {"study": study}).one_or_none()
    if row is None:
        raise StudyError(f'there is no study "{study}"')
    return row


def config_of(store: Store, connection: Connection, row: Record) -> StudyConfig:
    """The configuration of a study, parsed once in a process."""
    key = (row.id, row.config_digest)
    if key not in store.configs:
        content = connection.execute(statements.CONFIG, {"study": row.id}).scalar_one()
        store.configs[key] = from_json(content)
    config: StudyConfig = store.configs[key]
    return config


def is_plan_due(row: Any, config: StudyConfig) -> bool:
    """All moves and all ratings of the episode are in, and there is to be another episode."""
    complete = row.epoch >= config.horizon and row.given >= row.asked
    return complete and not is_over(row, config)


def is_over(row: Any, config: StudyConfig) -> bool:
    """The last episode that was wanted has its answers."""
    complete = row.epoch >= config.horizon and row.given >= row.asked
    return complete and 0 < config.episodes <= row.episode


def reported_columns(
    connection: Connection, study: str, episode: int, epoch: int
) -> dict[str, dict[str, str]]:
    """What the owner had reported of the arms when an epoch began: arm id -> column -> text."""
    e = schema.epochs.c
    before = sa.tuple_(e.episode, e.epoch) < sa.tuple_(episode, epoch)
    query = sa.select(e.columns).where(e.study == study, before, e.columns.is_not(None))
    last = query.order_by(e.episode.desc(), e.epoch.desc()).limit(1)
    content = connection.execute(last).scalar()
    return {} if content is None else json.loads(content)


def to_text(body: Any) -> str:
    """JSON for the database, the same text each time."""
    return json.dumps(body, ensure_ascii=False, sort_keys=True)
