"""From the log to the learner: its last plan, and the answers and moves counted."""

import json

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import archive, records, schema
from dopl_core.studies.arrays import digest, pack, unpack_whole
from dopl_core.studies.config import StudyConfig, learner_of
from dopl_core.studies.episode import planned_learner
from dopl_core.studies.history import Move, corrected, moves_counted
from dopl_core.studies.reading import (
    Record,
    coming_config,
    config_of,
    first_config,
    read_changes,
    study_row,
)
from dopl_core.studies.replay import replay
from dopl_core.studies.store import Store
from dopl_core.studies.turn import Turn
from dopl_core.studies.vocabulary import ANSWERS, CREDIT, LEARNT, SAID, TRUST


def load_learner(store: Store, study: str) -> Dopl:
    """The learner as the log has it now; the same, to the bit, in every process."""
    with store.read() as connection:
        return fold(store, connection, study_row(connection, study))


def fold(store: Store, connection: Connection, row: Record) -> Dopl:
    """The learner of a study whose row was read on this connection."""
    learner = planned(store, connection, row)
    out = excluded(connection, row.id)
    seq = _count_snapshot(connection, row, learner, out)
    answers = _answers(connection, row.id, seq, out)
    learner.count_duels(answers[:, :4], answers[:, 4] / 2, answers[:, 5], answers[:, 6])
    config = coming_config(store, connection, row)
    for kind, body in read_changes(connection, row.id) if row.changes else ():
        if kind == "history_added":
            past = records.moves(body["records"], config)
            states, helped, after = (part[:, : learner.n_arms] for part in past)
            learner.count_moves(states, helped, after)
    moves = moves_so_far(connection, row, config)
    learner.count_moves(*moves_counted(moves, learner.n_arms))
    return learner


def moves_so_far(connection: Connection, row: Record, config: StudyConfig) -> list[Move]:
    """All epochs, as corrected by now; config: with all changes."""
    moves = archive.read_moves(connection, row.id)
    return corrected(moves, archive.read_corrections(connection, row.id), config)


def planned(store: Store, connection: Connection, row: Record) -> Dopl:
    """The learner with its last plan, and no counts: enough to activate and to ask."""
    config = config_of(store, connection, row)
    if row.episode == 0:
        return learner_of(config)
    arrays = archive.last_arrays(connection, row)
    if arrays is None:
        first = first_config(store, connection, row)
        arrays = replay(archive.read_row(connection, first, row)).state()
    return planned_learner(config, arrays)


def save_snapshot(turn: Turn, learner: Dopl, seq: int) -> None:
    """Keep the answers up to an event, which a learner has counted; it replaces the last.

    Nobody was excluded since that event, or included: the plan would not hold.
    """
    out = excluded(turn.connection, turn.study)
    arrays = learner.counts.state()
    row = {
        "study": turn.study,
        "seq": seq,
        "log": _checksum(turn.connection, turn.study, seq, out),
        "digest": digest(arrays),
        "arrays": pack(arrays),
    }
    table = schema.snapshots
    turn.connection.execute(sa.delete(table).where(table.c.study == turn.study))
    turn.connection.execute(sa.insert(table), row)


def _count_snapshot(connection: Connection, row: Record, learner: Dopl, out: list[str]) -> int:
    """Start from the snapshot, if it is whole and the log is still its own; the event it is at.

    out: those excluded now; if others were, it is not believed
    """
    table = schema.snapshots
    query = sa.select(table).where(table.c.study == row.id)
    snapshot = connection.execute(query).one_or_none()
    if snapshot is None or snapshot.seq > row.seq:
        return 0
    arrays = unpack_whole(snapshot.arrays, snapshot.digest)
    if arrays is None or snapshot.log != _checksum(connection, row.id, snapshot.seq, out):
        return 0
    if "duels.at" not in arrays:  # of an earlier version, which did not count who said what
        return 0
    learner.counts.restore(arrays)
    return int(snapshot.seq)


def people(connection: Connection, study: str) -> dict[str, int]:
    """The numbers of those who answered, in the order of their first answers (as in replay)."""
    e = schema.events.c
    query = (
        sa.select(e.annotator)
        .where(e.study == study, e.kind == "answered")
        .group_by(e.annotator)
        .order_by(sa.func.min(e.seq))
    )
    return {name: number for number, name in enumerate(connection.execute(query).scalars())}


def excluded(connection: Connection, study: str) -> list[str]:
    """Those whose answers do not count in the next plan, in the order of their names."""
    e = schema.events.c
    query = sa.select(e.kind, e.annotator).where(e.study == study, e.kind.in_(TRUST))
    last = {name: kind for kind, name in connection.execute(query.order_by(e.seq))}
    return sorted(name for name, kind in last.items() if kind == "person_excluded")


def _checksum(connection: Connection, study: str, seq: int, out: list[str]) -> str:
    """A number of the answers up to an event that any change of one of them changes, and `out`.

    The database computes it, several times faster than it could hand the rows over.
    """
    e = schema.events.c
    numbers = {outcome: number for number, outcome in enumerate(ANSWERS, start=1)}
    said = sa.case(numbers, value=e.outcome, else_=5)
    done = sa.case((e.kind == "answered", 1), else_=2)
    at = sa.cast(e.seq, sa.BigInteger)
    # Times the event's number: exchanging what was said of two duels changes the sum.
    mixed = (((e.duel % 1_000_003) * 5 + said) * 2 + done) * (at % 1_000_003) % 2_147_483_647
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(mixed), 0)).where(
        e.study == study, e.seq <= seq, e.kind.in_(SAID)
    )
    count, total = connection.execute(query).one()
    return " ".join([f"{count} {int(total)}", *([json.dumps(out)] if out else ())])


def _answers(connection: Connection, study: str, after: int, out: list[str]) -> IntArray:
    """Answers past an event, and undone ones [D, 7].

    Left arm and state, right arm and state; 2, 1 or 0 halves for the left; +1 or -1 if undone; who,
    by number. Skips have no weight, and those who are out (excluded) have none.
    """
    e, d = schema.events.c, schema.duels.c
    halves = sa.case({said: int(2 * credit) for said, credit in CREDIT.items()}, value=e.outcome)
    times = sa.case((e.kind == "answered", 1), else_=-1)
    query = (
        sa.select(d.left_arm, d.left_state, d.right_arm, d.right_state, halves, times, e.annotator)
        .join_from(schema.events, schema.duels, e.duel == d.id)
        .where(e.study == study, e.seq > after, e.kind.in_(SAID))
        .where(e.outcome.in_(CREDIT), d.purpose.in_(LEARNT), e.annotator.not_in(out))
    )
    numbers = people(connection, study)
    rows = [(*said, numbers[name]) for *said, name in connection.execute(query)]
    return np.array(rows, dtype=np.int64).reshape(-1, 7)
