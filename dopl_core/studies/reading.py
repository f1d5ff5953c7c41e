"""Reading a study from the database: its row, its configuration, and where it stands."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.environments import brief
from dopl_core.studies import schema, statements
from dopl_core.studies.changes import Change, changed
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.config_json import from_json, read_json
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.vocabulary import CHANGES

Record = Any  # a row of the database: its columns are attributes


def study_row(connection: Connection, study: str, lock: bool = False) -> Record:
    """The study's row without its configuration; `lock` makes other writers wait (turn.py)."""
    query = statements.LOCKED_STUDY if lock else statements.STUDY
    row = connection.execute(query, {"study": study}).one_or_none()
    if row is None:
        raise StudyError(f'there is no study "{study}"')
    return row


def now_of(store: Store, row: Record) -> int:
    """Milliseconds since 1970, by the database's own clock where it has one for all its writers."""
    return store.now() if row.now is None or store.clock is not time.time else int(row.now)


def config_of(store: Store, connection: Connection, row: Record) -> StudyConfig:
    """The configuration in force: with the changes that the last plan was made with."""
    return _with_changes(store, connection, row, in_force(row))


def in_force(row: Record) -> int:
    """How many changes hold: those of the last plan; before there is one, all."""
    return int(row.in_force if row.episode else row.changes)


def coming_config(store: Store, connection: Connection, row: Record) -> StudyConfig:
    """The configuration with all changes: that of the next plan."""
    return _with_changes(store, connection, row, row.changes)


def first_config(store: Store, connection: Connection, row: Record) -> StudyConfig:
    """The configuration as the study was made."""
    read_configs(store, connection, [row])
    found = store.configs[row.id, row.config_digest, 0]
    if isinstance(found, StudyError):
        raise found
    return cast(StudyConfig, found)


def read_configs(store: Store, connection: Connection, rows: Sequence[Record]) -> None:
    """Those configurations not parsed before in one query; or why one cannot be."""
    known = store.configs
    if missing := [row.id for row in rows if (row.id, row.config_digest, 0) not in known]:
        s, c = schema.studies.c, schema.configs.c
        query = (
            sa.select(s.id, s.config_digest, sa.func.coalesce(c.content, ""))
            .join_from(schema.studies, schema.configs, c.study == s.id, isouter=True)
            .where(s.id.in_(missing))
        )
        for study, digest, content in connection.execute(query):
            try:
                known[study, digest, 0] = from_json(content)
            except StudyError as error:
                known[study, digest, 0] = StudyError(f'study "{study}": {error}')


def _with_changes(store: Store, connection: Connection, row: Record, count: int) -> StudyConfig:
    key = (row.id, row.config_digest, count)
    if count == 0:
        return first_config(store, connection, row)
    if key not in store.configs:
        first = first_config(store, connection, row)
        store.configs[key] = changed(first, read_changes(connection, row.id)[:count])
    config: StudyConfig = store.configs[key]
    return config


def read_changes(connection: Connection, study: str) -> list[Change]:
    """All changes of a study's configuration, in order."""
    e = schema.events.c
    query = sa.select(e.kind, e.body).where(e.study == study, e.kind.in_(CHANGES))
    return [(kind, _object(body)) for kind, body in connection.execute(query.order_by(e.seq))]


def _object(body: str) -> dict[str, Any]:
    content = read_json(body)
    if not isinstance(content, dict):
        raise StudyError(f"a change is {brief(content)}: an object needed")
    return content


def is_plan_due(row: Any, config: StudyConfig) -> bool:
    """The next plan can be made, and there is to be one."""
    return _is_complete(row, config) and not is_over(row, config)


def is_over(row: Any, config: StudyConfig) -> bool:
    """The last episode that was wanted has its answers."""
    return _is_complete(row, config) and 0 < config.episodes <= row.episode


def _is_complete(row: Any, config: StudyConfig) -> bool:
    """What the next plan waits for is in.

    A first sitting and a simulated world wait for all ratings; an owner who has reported never
    waits: the next list is made with the answers there are.
    """
    answered = row.given >= row.asked
    if row.episode == 0:
        return bool(answered)
    return bool(row.epoch >= config.horizon and (answered or config.world == "observed"))


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


_KEPT_REPORTS = 4


def reported_columns(
    store: Store, connection: Connection, study: str, episode: int, epoch: int
) -> Mapping[str, dict[str, str]]:
    """What the owner had reported of the arms when an epoch began: arm id -> column -> text.

    Of many arms that is much to read, and a report stays as it is: the last ones read are kept.
    """
    e, s = schema.epochs.c, schema.studies.c
    before = sa.tuple_(e.episode, e.epoch) < sa.tuple_(episode, epoch)
    query = (
        sa.select(s.config_digest, e.episode, e.epoch)
        .join_from(schema.epochs, schema.studies, e.study == s.id)
        .where(e.study == study, before, e.columns.is_not(None))
        .order_by(e.episode.desc(), e.epoch.desc())
    )
    report = connection.execute(query.limit(1)).first()
    if report is None:
        return {}
    found: Mapping[str, dict[str, str]] | None = store.reports.get(tuple(report))
    if found is None:
        at = sa.and_(e.study == study, e.episode == report.episode, e.epoch == report.epoch)
        found = json.loads(connection.execute(sa.select(e.columns).where(at)).scalar_one())
        for old in list(store.reports)[: len(store.reports) - _KEPT_REPORTS + 1]:
            store.reports.pop(old, None)
        store.reports[tuple(report)] = found
    return found or {}
