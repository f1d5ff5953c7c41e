"""One writer's turn on a study: it reads the study's row, appends events, and gives the row back.

Writers of one study take turns, on SQLite by BEGIN IMMEDIATE, on PostgreSQL by the lock of the
study's row. So whatever a turn reads stays true until it commits, and event numbers have no gaps.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies import schema
from dopl_core.studies.config import StudyConfig, from_json
from dopl_core.studies.store import Store, StudyError

Record = Any  # a row of the database: its columns are attributes

COUNTED = ("left", "right", "tie", "skip")  # outcomes that are answers

_HEARD = {"answered", "undone", "observed", "planned"}  # events that the learner counts

_COLUMNS = [c for c in schema.studies.c if c.name != "config"]


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

    def append(self, kind: str, **columns: Any) -> None:
        """Add an event; `body` is written as JSON."""
        self.seq += 1
        if kind in _HEARD:
            self.heard = self.seq
        if "body" in columns:
            columns["body"] = to_text(columns["body"])
        values = {"study": self.study, "seq": self.seq, "at": self.now, "kind": kind} | columns
        self.connection.execute(sa.insert(schema.events), values)

    def write_back(self) -> None:
        after = self._values()
        changed = {name: after[name] for name in after if after[name] != self._before[name]}
        if changed:
            table = schema.studies
            where = table.c.id == self.study
            self.connection.execute(sa.update(table).where(where).values(changed))

    def _values(self) -> dict[str, Any]:
        names = "status seq heard episode epoch asked given planner planner_until"
        return {name: getattr(self, name) for name in names.split()}


@contextmanager
def take_turn(store: Store, study: str) -> Iterator[Turn]:
    """Be the only writer of a study; what was done is on disk when the block is left."""
    with store.write() as connection:
        turn = Turn(store, connection, study_row(connection, study, lock=True))
        yield turn
        turn.write_back()


def study_row(connection: Connection, study: str, lock: bool = False) -> Record:
    """The study's row without its configuration."""
    query = sa.select(*_COLUMNS).where(schema.studies.c.id == study)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise StudyError(f'there is no study "{study}"')
    return row


def config_of(store: Store, connection: Connection, row: Record) -> StudyConfig:
    """The configuration of a study, parsed once in a process."""
    key = (row.id, row.config_digest)
    if key not in store.configs:
        query = sa.select(schema.studies.c.config).where(schema.studies.c.id == row.id)
        store.configs[key] = from_json(connection.execute(query).scalar_one())
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
