"""From the log to the learner: counts from the answers and moves, arrays from the last plan."""

import hashlib
import io
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from dopl_core.bandit import IntArray
from dopl_core.learner import Dopl
from dopl_core.studies import schema
from dopl_core.studies.config import StudyConfig, learner_of
from dopl_core.studies.store import Store
from dopl_core.studies.turn import Record, config_of, study_row
from dopl_core.world import TIE

Arrays = dict[str, NDArray[Any]]

_COUNTS = ("visits", "wins", "epoch")  # folded from the log; all else of a learner is its plan


def load_learner(store: Store, study: str) -> Dopl:
    """The learner as the log has it now; the same, to the bit, in every process."""
    with store.read() as connection:
        row = study_row(connection, study)
        return fold(connection, config_of(store, connection, row), row)


def fold(connection: Connection, config: StudyConfig, row: Record) -> Dopl:
    """The learner of a study whose row was read on this connection."""
    learner = planned(connection, config, row)
    duels, winners, times = _answers(connection, row.id)
    learner.record(duels[times > 0], winners[times > 0])
    learner.forget(duels[times < 0], winners[times < 0])
    add_moves(learner, _moves(connection, row.id))
    learner.epoch = row.epoch
    return learner


def planned(connection: Connection, config: StudyConfig, row: Record) -> Dopl:
    """The learner with its last plan, and no counts: enough to activate and to ask."""
    query = sa.select(schema.plans.c.arrays, schema.plans.c.digest).where(
        schema.plans.c.study == row.id, schema.plans.c.plan == row.episode
    )
    plan = connection.execute(query).one()
    learner = learner_of(config)
    empty = {"visits": learner.visits, "wins": learner.wins, "epoch": np.array(row.epoch)}
    learner.restore(unpack(plan.arrays) | empty)
    return learner


def add_moves(learner: Dopl, moves: list[tuple[IntArray, IntArray, IntArray]]) -> None:
    """Count moves (states [N], arms [B], next states [N]) of any episodes."""
    everyone = np.arange(learner.n_arms)
    for states, arms, next_states in moves:
        active = np.zeros(learner.n_arms, dtype=np.int64)
        active[arms] = 1
        learner.visits[everyone, states, active, next_states] += 1


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


def states_bytes(states: IntArray) -> bytes:
    return states.astype(np.uint8).tobytes()


def bytes_states(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype=np.uint8).astype(np.int64)


def arms_bytes(arms: IntArray) -> bytes:
    return arms.astype("<i4").tobytes()


def bytes_arms(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype="<i4").astype(np.int64)


def _answers(connection: Connection, study: str) -> tuple[IntArray, IntArray, IntArray]:
    """Duels [D, 4], winners [D], and +1 for answered or -1 for undone [D]; skips have no weight."""
    events, duels = schema.events.c, schema.duels.c
    query = (
        sa.select(
            duels.left_arm,
            duels.left_state,
            duels.right_arm,
            duels.right_state,
            sa.case((events.outcome == "left", 0), (events.outcome == "right", 1), else_=2),
            sa.case((events.kind == "answered", 1), else_=-1),
        )
        .join_from(schema.events, schema.duels, events.duel == duels.id)
        .where(
            events.study == study,
            events.kind.in_(("answered", "undone")),
            events.outcome.in_(("left", "right", "tie")),
            duels.purpose == "policy",
        )
    )
    rows = np.array([tuple(r) for r in connection.execute(query)], dtype=np.int64).reshape(-1, 6)
    winners = np.choose(rows[:, 4], [rows[:, 0], rows[:, 2], np.full(len(rows), TIE)])
    return rows[:, :4], winners, rows[:, 5]


def _moves(connection: Connection, study: str) -> list[tuple[IntArray, IntArray, IntArray]]:
    e = schema.epochs.c
    query = sa.select(e.states, e.arms, e.next_states).where(
        e.study == study, e.next_states.is_not(None)
    )
    return [
        (bytes_states(row.states), bytes_arms(row.arms), bytes_states(row.next_states))
        for row in connection.execute(query)
    ]
