"""A study as one connection reads it: its row, its configurations and its epochs."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies.model.config_changes import CHANGES, Change, changed
from dopl_core.studies.model.config_json import from_json
from dopl_core.studies.model.corrections import corrected, own_list
from dopl_core.studies.model.errors import LogError, ReplacedError, StudyError
from dopl_core.studies.model.event_kinds import REVISIONS, Numbered, body_of, read_body, standing
from dopl_core.studies.model.log_values import Epoch, Event, week_of
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.store import queries, tables
from dopl_core.studies.store.blobs import unpack_arms, unpack_states
from dopl_core.studies.store.database import Store

_KEPT_REPORTS = 4


@dataclass
class StudyRow:
    """The row of a study in the database; tables.studies says what each column means."""

    id: str
    title: str
    status: str
    config_digest: str
    made_at: int
    seq: int
    heard: int
    episode: int
    epoch: int
    asked: int
    given: int
    changes: int
    in_force: int
    changes_chain: str
    in_force_chain: str
    chain: str | None
    planner: str | None
    planner_until: int | None
    planner_step: str | None
    now: int | None = None
    table: int | None = None


class StudyReader:
    """What one read or write transaction knows of a study; use `read_study` or `write_study`."""

    def __init__(self, store: Store, connection: Connection, row: StudyRow) -> None:
        self.store, self.connection, self.row, self.id = store, connection, row, row.id
        self.before = dict(vars(row))  # as it was read

    @cached_property
    def now(self) -> int:
        """Milliseconds since 1970, by the clock of the database where it has one."""
        on_tests_clock = self.store.clock is not time.time
        if self.row.now is not None and not on_tests_clock:
            return self.row.now
        return int(self.store.clock() * 1000)

    @property
    def first_config(self) -> StudyConfig:
        """The configuration as the study was made."""
        return self._with_changes(0, "")

    @property
    def config(self) -> StudyConfig:
        """The configuration in force: with the changes that the last plan was made with."""
        if not self.row.episode:
            return self.next_config
        return self._with_changes(self.row.in_force, self.row.in_force_chain)

    @property
    def next_config(self) -> StudyConfig:
        """The configuration with all changes: that of the next plan."""
        return self._with_changes(self.row.changes, self.row.changes_chain)

    def _with_changes(self, count: int, last: str) -> StudyConfig:
        """last: the chain of the last of these changes"""
        key = (self.id, self.row.config_digest, last)
        found: StudyConfig | None = self.store.configs.get(key)
        if found is None:
            try:
                found = self._read_config(count)
            except (StudyError, LogError) as error:
                raise StudyError(f'study "{self.id}": {error}') from None
            for old in [one for one in self.store.configs if one[:2] != key[:2]]:
                if old[0] == self.id:  # somebody was erased since
                    self.store.configs.pop(old, None)
            self.store.configs[key] = found
        return found

    def _read_config(self, changes: int) -> StudyConfig:
        if changes:
            return changed(self.first_config, self.changes[:changes])
        return from_json(self.config_text())

    def config_text(self) -> str:
        """The configuration as the study was made, as JSON."""
        c = tables.configs.c
        query = sa.select(c.content).where(c.study == self.id)
        return self.connection.execute(query).scalar() or ""

    @cached_property
    def changes(self) -> list[Change]:
        """All changes of the configuration, in order."""
        e = tables.events.c
        query = sa.select(e.kind, e.body).where(e.study == self.id, e.kind.in_(CHANGES))
        found = self.connection.execute(query.order_by(e.seq))
        return [(kind, read_body(kind, body)) for kind, body in found]

    @property
    def epochs(self) -> list[Epoch]:
        """All epochs, as corrected by now, with the lists as the owner changed them."""
        bodies = [body_of(event) for _, event in self.standing(*REVISIONS)]
        return corrected(read_epochs(self.connection, self.id), bodies, self.next_config)

    def standing(self, *kinds: str, after: int = 0, bodies: bool = True) -> list[Numbered]:
        """The events of some kinds that count, with their numbers: see event_kinds.standing.

        after: leave out events up to this number;  bodies: False leaves out what they say
        """
        e = tables.events.c
        body = e.body if bodies else sa.case((e.kind == "report_undone", e.body))
        here = sa.or_(e.kind == "report_undone", sa.and_(e.kind.in_(kinds), e.seq > after))
        query = sa.select(e.seq, e.at, e.kind, body).where(e.study == self.id, here)
        rows = self.connection.execute(query.order_by(e.seq))
        found = standing((seq, Event(at, kind, body=text)) for seq, at, kind, text in rows)
        return [(seq, event) for seq, event in found if event.kind in kinds]

    @property
    def week(self) -> int:
        """The number of the open epoch, as owners count."""
        return week_of(self.config, self.row.episode, self.row.epoch)

    @property
    def plan_due(self) -> bool:
        """The next plan can be made, and the study wants one."""
        return self._is_complete() and not self.is_over

    @property
    def is_over(self) -> bool:
        """The last episode of the study has its answers."""
        return 0 < self.config.episodes <= self.row.episode and self._is_complete()

    def _is_complete(self) -> bool:
        """Whether everything is there that the next plan waits for.

        A first round and a simulated world wait for all answers. An owner who has reported never
        waits: the next list is made with the answers that there are.
        """
        row, config = self.row, self.config
        answered = row.given >= row.asked
        if row.episode == 0:
            return answered
        return row.epoch >= config.horizon and (answered or config.world == "observed")

    def present_epoch(self) -> Epoch:
        """The epoch that is going on.

        In an observed world the one that the owner reports next; in a simulated one the first
        whose duels still ask for answers.
        """
        e, d = tables.epochs.c, tables.duels.c
        query = sa.select(tables.epochs).where(e.study == self.id, e.episode == self.row.episode)
        if self.config.world == "observed":
            query = query.order_by(e.epoch.desc()).limit(1)
        else:
            first = sa.select(sa.func.min(d.epoch)).where(
                d.study == self.id, d.episode == self.row.episode, d.given < d.ratings
            )
            missing = self.connection.execute(first).scalar()
            query = query.where(
                e.epoch == (self.config.horizon - 1 if missing is None else missing)
            )
        return self._with_own_list(_epoch(self.connection.execute(query).one()))

    def _with_own_list(self, epoch: Epoch) -> Epoch:
        """The present epoch with its list as the owner changed it."""
        for _, event in self.standing("list_changed"):
            change = body_of(event)
            if change.week == week_of(self.config, epoch.episode, epoch.epoch):
                epoch = epoch.with_own(own_list(epoch, change, self.next_config))
        return epoch

    def reported_columns(self, episode: int, epoch: int) -> Mapping[str, dict[str, str]]:
        """What the owner had reported when an epoch began: arm id -> column -> text.

        With many arms that is much to read, and a report never changes, so the last few are kept.
        """
        e = tables.epochs.c
        before = sa.tuple_(e.episode, e.epoch) < sa.tuple_(episode, epoch)
        query = (
            sa.select(e.episode, e.epoch, e.digest)
            .where(e.study == self.id, before, e.columns.is_not(None))
            .order_by(e.episode.desc(), e.epoch.desc())
        )
        report = self.connection.execute(query.limit(1)).first()
        if report is None:
            return {}
        reports, key = self.store.reports, (self.row.config_digest, *report)
        found: Mapping[str, dict[str, str]] | None = reports.get(key)
        if found is None:
            here = sa.and_(e.study == self.id, e.episode == report[0], e.epoch == report[1])
            found = json.loads(
                self.connection.execute(sa.select(e.columns).where(here)).scalar_one()
            )
            for old in list(reports)[: len(reports) - _KEPT_REPORTS + 1]:
                reports.pop(old, None)
            reports[key] = found
        return found or {}


@contextmanager
def read_study(store: Store, study: str) -> Iterator[StudyReader]:
    """One consistent view of a study, which is not older than what this process has saved."""
    table = store.table
    heads = {key: head for key, head in list(store.heads.items()) if key[0] == study}
    with store.read() as connection:
        row = study_row(connection, study)
        head = heads.get((row.id, row.config_digest))
        # Where others have added events, the next write looks the last one known here up.
        check_head(None, store, row, table, head)
        yield StudyReader(store, connection, row)


def check_head(
    connection: Connection | None,
    store: Store,
    row: StudyRow,
    table: int | None,
    head: tuple[int, str | None] | None,
) -> None:
    """Refuse to go on where events are gone, or differ from those that this process has seen.

    connection: looks up the last event known here, if others have added events since
    table: the table of studies;  head: number and chain of the last event of the study; both as
        this process knew them before the transaction
    """
    sign = "its tables were made anew" if table not in (None, row.table) else ""
    seq, known = head or (0, row.chain)
    chain = row.chain if row.seq == seq else known
    if connection is not None and 0 < seq < row.seq:
        chain = connection.execute(queries.CHAIN, {"study": row.id, "seq": seq}).scalar()
    if row.seq < seq or chain != known:
        sign = f'event {seq} of study "{row.id}" is not what was saved'
    if sign:
        raise ReplacedError(
            f"{store.name}: an older state was restored while dopl was running ({sign}); nothing "
            "is saved any more. Start dopl again to go on from the restored state; answers that "
            "are not in it are lost. Or restore the newer state first"
        )


def study_row(
    connection: Connection, study: str | None, impression: int | None = None, *, lock: bool = False
) -> StudyRow:
    """The row of a study, or of the study of an impression; `lock` makes other writers wait."""
    query = queries.LOCKED_STUDY if lock else queries.STUDY
    where: dict[str, str | int | None] = {"study": study}
    missing = f'there is no study "{study}"'
    if impression is not None:
        findable = 0 < impression < 2**63  # by the databases
        query, where = queries.LOCKED_STUDY_OF, {"impression": impression if findable else 0}
        missing = f"impression {impression} was never shown"
    row = connection.execute(query, where).one_or_none()
    if row is None:
        raise StudyError(missing)
    return StudyRow(**row._mapping)


def study_of_impression(store: Store, impression: int) -> str:
    """The study of an impression that another process may have shown; "" if nobody did."""
    shown = tables.impressions.c
    with store.read() as connection:
        query = sa.select(shown.study).where(shown.id == impression)
        return connection.execute(query).scalar() or ""


def read_epochs(connection: Connection, study: str) -> list[Epoch]:
    """All epochs as they were reported, in order."""
    e = tables.epochs.c
    query = sa.select(tables.epochs).where(e.study == study).order_by(e.episode, e.epoch)
    return [_epoch(row) for row in connection.execute(query)]


def _epoch(row: Any) -> Epoch:
    return Epoch(
        episode=row.episode,
        epoch=row.epoch,
        states=unpack_states(row.states),
        arms=unpack_arms(row.arms),
        next_states=None if row.next_states is None else unpack_states(row.next_states),
        source=row.source,
        columns=None if row.columns is None else json.loads(row.columns),
        helped=None if row.helped is None else unpack_arms(row.helped),
        by_lot=unpack_arms(row.by_lot or b""),
    )


def prefetch_configs(store: Store, connection: Connection, rows: Sequence[StudyRow]) -> None:
    """Read the configurations that are not cached in one query, and leave out damaged ones."""
    digests = {row.id: row.config_digest for row in rows}
    missing = [i for i, digest in digests.items() if (i, digest, "") not in store.configs]
    c = tables.configs.c
    query = sa.select(c.study, c.content).where(c.study.in_(missing))
    for study, content in connection.execute(query) if missing else ():
        try:
            store.configs[study, digests[study], ""] = from_json(content)
        except StudyError:
            continue  # the reader says what is wrong with it
