"""From the log to the learner: counts from the answers and moves, arrays from the last plan."""

import hashlib
import io
import zipfile
import zlib
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.learner import Dopl
from dopl_core.studies import schema
from dopl_core.studies.config import StudyConfig, learner_of
from dopl_core.studies.store import Store
from dopl_core.studies.turn import Record, Turn, config_of, study_row

Arrays = dict[str, NDArray[Any]]

_SAID = ("answered", "undone")
_COUNTS = ("visits", "wins", "epoch")  # folded from the log; all else of a learner is its plan


def load_learner(store: Store, study: str) -> Dopl:
    """The learner as the log has it now; the same, to the bit, in every process."""
    with store.read() as connection:
        row = study_row(connection, study)
        return fold(connection, config_of(store, connection, row), row)


def fold(connection: Connection, config: StudyConfig, row: Record) -> Dopl:
    """The learner of a study whose row was read on this connection."""
    learner = planned(connection, config, row)
    seq = _restore_wins(connection, row, learner)
    _add_wins(learner, _answers(connection, row.id, seq))
    _add_moves(learner, _moves(connection, row.id))
    return learner


def planned(connection: Connection, config: StudyConfig, row: Record) -> Dopl:
    """The learner with its last plan, and no counts: enough to activate and to ask."""
    query = sa.select(schema.plans.c.arrays, schema.plans.c.digest).where(
        schema.plans.c.study == row.id, schema.plans.c.plan == row.episode
    )
    plan = connection.execute(query).one()
    arrays = _sound(plan.arrays, plan.digest)
    if arrays is None:
        from dopl_core.studies.bundle import remade_plan  # which folds, too

        arrays = plan_arrays(remade_plan(connection, config, row))
    learner = learner_of(config)
    empty = {"visits": learner.visits, "wins": learner.wins, "epoch": np.array(row.epoch)}
    learner.restore(arrays | empty)
    return learner


def plan_arrays(learner: Dopl) -> Arrays:
    """What a learner holds beside its counts."""
    return {name: array for name, array in learner.state().items() if name not in _COUNTS}


def digest(arrays: Arrays) -> str:
    """The same for equal arrays and only for them: names, types, shapes and every bit."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def pack(arrays: Arrays) -> bytes:
    """Arrays as npz bytes, the same each time."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: arrays[name] for name in sorted(arrays)})  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(content: bytes) -> Arrays:
    """The arrays of npz bytes; nothing in them is ever run."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _sound(content: bytes, expected: str) -> Arrays | None:
    """The arrays, if they are those that were kept."""
    try:
        arrays = unpack(content)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    return arrays if digest(arrays) == expected else None


def states_bytes(states: IntArray) -> bytes:
    return states.astype(np.uint8).tobytes()


def bytes_states(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype=np.uint8).astype(np.int64)


def arms_bytes(arms: IntArray) -> bytes:
    return arms.astype("<i4").tobytes()


def bytes_arms(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype="<i4").astype(np.int64)


def save_snapshot(turn: Turn, learner: Dopl) -> None:
    """Keep the answers that a plan was made from, counted; it replaces the study's last."""
    at = np.flatnonzero(learner.wins)
    arrays = {"at": at, "wins": learner.wins.ravel()[at]}
    row = {
        "study": turn.study,
        "seq": turn.seq,
        "log": _checksum(turn.connection, turn.study, turn.seq),
        "digest": digest(arrays),
        "arrays": pack(arrays),
    }
    table = schema.snapshots
    turn.connection.execute(sa.delete(table).where(table.c.study == turn.study))
    turn.connection.execute(sa.insert(table), row)


def _restore_wins(connection: Connection, row: Record, learner: Dopl) -> int:
    """Start from the snapshot, if it is whole and the log is still its own; the event it is at."""
    table = schema.snapshots
    query = sa.select(table).where(table.c.study == row.id)
    snapshot = connection.execute(query).one_or_none()
    if snapshot is None or snapshot.seq > row.seq:
        return 0
    arrays = _sound(snapshot.arrays, snapshot.digest)
    if arrays is None or snapshot.log != _checksum(connection, row.id, snapshot.seq):
        return 0
    learner.wins.ravel()[arrays["at"]] = arrays["wins"]
    return int(snapshot.seq)


def _checksum(connection: Connection, study: str, seq: int) -> str:
    """A number of the answers up to an event that any change of one of them changes.

    The database computes it, several times faster than it could hand the rows over.
    """
    e = schema.events.c
    said = sa.case({"left": 1, "right": 2, "tie": 3, "skip": 4}, value=e.outcome, else_=5)
    done = sa.case((e.kind == "answered", 1), else_=2)
    at = sa.cast(e.seq, sa.BigInteger)
    mixed = ((e.duel * 5 + said) * 1_000_003 + at * 7_919 + done) % 2_147_483_647
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(mixed), 0)).where(
        e.study == study, e.seq <= seq, e.kind.in_(_SAID)
    )
    count, total = connection.execute(query).one()
    return f"{count} {int(total)}"


def _answers(connection: Connection, study: str, after: int) -> IntArray:
    """Answers past an event, and undone ones [D, 6].

    Left arm and state, right arm and state; 2, 1 or 0 halves for the left; +1 or -1 if undone.
    Skips have no weight.
    """
    e, d = schema.events.c, schema.duels.c
    halves = sa.case({"left": 2, "tie": 1}, value=e.outcome, else_=0)
    times = sa.case((e.kind == "answered", 1), else_=-1)
    query = (
        sa.select(d.left_arm, d.left_state, d.right_arm, d.right_state, halves, times)
        .join_from(schema.events, schema.duels, e.duel == d.id)
        .where(e.study == study, e.seq > after, e.kind.in_(_SAID))
        .where(e.outcome != "skip", d.purpose == "policy")
    )
    rows = [tuple(row) for row in connection.execute(query)]
    return np.array(rows, dtype=np.int64).reshape(-1, 6)


def _add_wins(learner: Dopl, answers: IntArray) -> None:
    left = answers[:, 0] * learner.n_states + answers[:, 1]
    right = answers[:, 2] * learner.n_states + answers[:, 3]
    credit, times = answers[:, 4] / 2, answers[:, 5]
    np.add.at(learner.wins, (left, right), times * credit)
    np.add.at(learner.wins, (right, left), times * (1 - credit))


def _moves(connection: Connection, study: str) -> tuple[IntArray, IntArray, IntArray]:
    """All moves known: states [E, N], the arms helped [E, B], next states [E, N]."""
    e = schema.epochs.c
    known = sa.and_(e.study == study, e.next_states.is_not(None))
    rows = connection.execute(sa.select(e.states, e.arms, e.next_states).where(known)).all()
    joined = [b"".join(row[column] for row in rows) for column in range(3)]
    E = max(1, len(rows))
    return (
        bytes_states(joined[0]).reshape(E, -1),
        bytes_arms(joined[1]).reshape(E, -1),
        bytes_states(joined[2]).reshape(E, -1),
    )


def _add_moves(learner: Dopl, moves: tuple[IntArray, IntArray, IntArray]) -> None:
    states, arms, next_states = moves
    action = np.zeros(states.shape, dtype=np.int64)
    np.put_along_axis(action, arms, 1, axis=1)
    arm = np.broadcast_to(np.arange(states.shape[1]), states.shape)
    np.add.at(learner.visits, (arm, states, action, next_states), 1)
