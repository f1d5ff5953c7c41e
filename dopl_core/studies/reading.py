"""Reading a study from the database: its row, its configuration, and where it stands."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.learning.bandit import IntArray
from dopl_core.studies import schema, statements
from dopl_core.studies.arrays import unpack_states
from dopl_core.studies.config import StudyConfig, from_json
from dopl_core.studies.store import Store, StudyError

Record = Any  # a row of the database: its columns are attributes


def study_row(connection: Connection, study: str, lock: bool = False) -> Record:
    """The study's row without its configuration; `lock` makes other writers wait (turn.py)."""
    query = statements.LOCKED_STUDY if lock else statements.STUDY
    row = connection.execute(query, {"study": study}).one_or_none()
    if row is None:
        raise StudyError(f'there is no study "{study}"')
    return row


def config_of(store: Store, connection: Connection, row: Record) -> StudyConfig:
    """The configuration of a study, parsed once in a process."""
    return configs_of(store, connection, [row])[0]


def configs_of(store: Store, connection: Connection, rows: Sequence[Record]) -> list[StudyConfig]:
    """The configurations of studies; those not parsed before are read in one query."""
    known = store.configs
    if missing := [row.id for row in rows if (row.id, row.config_digest) not in known]:
        s = schema.studies.c
        query = sa.select(s.id, s.config_digest, s.config).where(s.id.in_(missing))
        for study, digest, content in connection.execute(query):
            known[study, digest] = from_json(content)
    return [known[row.id, row.config_digest] for row in rows]


def is_plan_due(row: Any, config: StudyConfig) -> bool:
    """All moves and all ratings of the episode are in, and there is to be another episode."""
    return _is_complete(row, config) and not is_over(row, config)


def is_over(row: Any, config: StudyConfig) -> bool:
    """The last episode that was wanted has its answers."""
    return _is_complete(row, config) and 0 < config.episodes <= row.episode


def _is_complete(row: Any, config: StudyConfig) -> bool:
    return bool(row.epoch >= config.horizon and row.given >= row.asked)


def present_epoch(connection: Connection, config: StudyConfig, row: Record) -> Record:
    """The states and arms of the epoch that is going on.

    In an observed world that is the one whose moves the owner reports next; in a simulated one the
    first whose duels still want ratings.
    """
    e, d = schema.epochs.c, schema.duels.c
    query = sa.select(e.states, e.arms).where(e.study == row.id, e.episode == row.episode)
    if config.world == "observed":
        return connection.execute(query.order_by(e.epoch.desc()).limit(1)).one()
    first = sa.select(sa.func.min(d.epoch)).where(
        d.study == row.id, d.episode == row.episode, d.given < d.ratings
    )
    missing = connection.execute(first).scalar()
    epoch = config.horizon - 1 if missing is None else missing
    return connection.execute(query.where(e.epoch == epoch)).one()


def last_states(connection: Connection, study: str) -> IntArray:
    """Where all arms are now [N]."""
    e = schema.epochs.c
    query = sa.select(e.states, e.next_states).where(e.study == study)
    row = connection.execute(query.order_by(e.episode.desc(), e.epoch.desc()).limit(1)).one()
    return unpack_states(row.next_states if row.next_states is not None else row.states)


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
