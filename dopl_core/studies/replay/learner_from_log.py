"""From the log in the database to the learner: its last plan, and the answers and moves counted."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.learning.bandit import Arrays
from dopl_core.learning.counts import COUNTED as COUNTED_ARRAYS
from dopl_core.learning.learner import Learner
from dopl_core.studies.model.event_kinds import COUNTED, EXCLUSIONS, apply
from dopl_core.studies.model.factories import learner_of
from dopl_core.studies.model.outcomes import ANSWERS
from dopl_core.studies.model.progress import Progress
from dopl_core.studies.replay.episode import planned_learner, restore_plan
from dopl_core.studies.replay.replay import replay
from dopl_core.studies.store import tables
from dopl_core.studies.store.blobs import digest, pack, unpack_whole
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.log_reader import (
    annotator_numbers,
    effective_events,
    last_arrays,
    log_of,
)
from dopl_core.studies.store.study_reader import StudyReader, read_epochs, read_study
from dopl_core.studies.store.time_limits import slowly
from dopl_core.studies.store.transaction import StudyTransaction


@slowly()
def load_learner(store: Store, study: str) -> Learner:
    """The learner as the log has it now; the same, to the bit, in every process."""
    with read_study(store, study) as reader:
        return learner_now(reader)


def learner_now(reader: StudyReader) -> Learner:
    """The learner of a study that is being read."""
    return progress_now(reader).learner


def progress_now(reader: StudyReader) -> Progress:
    """The fold of the log of a study that is being read."""
    snapshot = _read_snapshot(reader)
    seq = 0 if snapshot is None else snapshot.seq
    events, shown = effective_events(reader.connection, reader.id, seq)
    progress = Progress(reader.first_config, read_epochs(reader.connection, reader.id), shown)
    progress.annotators = annotator_numbers(reader.connection, reader.id)
    if snapshot is not None:
        progress.learner.counts.restore(snapshot.arrays)
    for event in events:
        apply(progress, event)
    if reader.row.episode:
        restore_plan(progress.learner, _plan_arrays(reader))
    progress.count()
    return progress


def planned(reader: StudyReader) -> Learner:
    """The learner with its last plan and no counts: enough to activate and to ask."""
    if reader.row.episode == 0:
        return learner_of(reader.config)
    return planned_learner(reader.config, _plan_arrays(reader))


@slowly()
def keep_plan(store: Store, study: str) -> None:
    """Keep the arrays of the last plan again, if they are lost: computing them takes long."""
    with read_study(store, study) as reader:
        if not reader.row.episode or last_arrays(reader) is not None:
            return
        plan, arrays = reader.row.episode, _plan_arrays(reader)
    p = tables.plans.c
    with store.write() as connection:
        lost = sa.and_(p.study == study, p.plan == plan, p.arrays.is_(None))
        found = {"arrays": pack(arrays), "digest": digest(arrays)}
        connection.execute(sa.update(tables.plans).where(lost).values(found))


def _plan_arrays(reader: StudyReader) -> Arrays:
    """The arrays of the last plan; made again where they are damaged or lost."""
    arrays = last_arrays(reader)
    return replay(log_of(reader)).plan_state() if arrays is None else arrays


def excluded(connection: Connection, study: str) -> list[str]:
    """The annotators whose answers do not count in the next plan, by name."""
    e = tables.events.c
    query = sa.select(e.kind, e.annotator).where(e.study == study, e.kind.in_(EXCLUSIONS))
    last = {name: kind for kind, name in connection.execute(query.order_by(e.seq))}
    return sorted(name for name, kind in last.items() if kind == "person_excluded")


# --- snapshots: counts of answers up to an event, so that opening a study reads only later ones


def save_snapshot(transaction: StudyTransaction, learner: Learner, seq: int) -> None:
    """Keep the answers up to an event, which a learner has counted; it replaces the last one."""
    connection, study = transaction.connection, transaction.id
    arrays = learner.counts.state()
    row = {
        "study": study,
        "seq": seq,
        "log": _checksum(connection, study, seq),
        "digest": digest(arrays),
        "arrays": pack(arrays),
    }
    table = tables.snapshots
    connection.execute(sa.delete(table).where(table.c.study == study))
    connection.execute(sa.insert(table), row)


class Snapshot(NamedTuple):
    """Counts of all answers up to event `seq`."""

    seq: int
    arrays: Arrays


def _read_snapshot(reader: StudyReader) -> Snapshot | None:
    """The snapshot, if it is whole and of this log."""
    table = tables.snapshots
    query = sa.select(table).where(table.c.study == reader.id)
    row = reader.connection.execute(query).one_or_none()
    if row is None or row.seq > reader.row.seq:
        return None
    arrays = unpack_whole(row.arrays, row.digest)
    if (
        arrays is None
        or not arrays.keys() >= set(COUNTED_ARRAYS)
        or row.log != _checksum(reader.connection, reader.id, row.seq)
    ):
        return None
    return Snapshot(row.seq, arrays)


def _checksum(connection: Connection, study: str, seq: int) -> str:
    """A checksum of the answers up to an event.

    The database computes it, several times faster than it could hand the rows over.
    """
    e = tables.events.c
    numbers = {outcome: number for number, outcome in enumerate(ANSWERS, start=1)}
    said = sa.case(numbers, value=e.outcome, else_=5)
    done = sa.case((e.kind == "answered", 1), else_=2)
    at = sa.cast(e.seq, sa.BigInteger)
    # Times the number of the event: exchanging the outcomes of two duels changes the sum.
    mixed = (((e.duel % 1_000_003) * 5 + said) * 2 + done) * (at % 1_000_003) % 2_147_483_647
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(mixed), 0)).where(
        e.study == study, e.seq <= seq, e.kind.in_(COUNTED)
    )
    count, total = connection.execute(query).one()
    return f"{count} {int(total)}"
