"""A study's course: it is made, its world moves, its plans are made."""

import re
import secrets
import unicodedata
from collections.abc import Mapping

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.bandit import IntArray
from dopl_core.learner import Dopl
from dopl_core.studies import fold, queries, schema
from dopl_core.studies.asking import release
from dopl_core.studies.config import StudyConfig, check_text, digest_of, learner_of, to_json
from dopl_core.studies.episode import (
    Episode,
    Epoch,
    begin,
    first_states,
    open_epoch,
    practice_duels,
)
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, reported_columns, study_row, take_turn, to_text

PLANNER_LEASE = 20.0  # seconds; a plan that takes longer is made twice and counted once


def create_study(store: Store, config: StudyConfig) -> str:
    """Make a study with its first plan and its first duels; its id."""
    episode = begin(config, learner_of(config), first_states(config))
    study = f"{_slug(config.title)}-{secrets.token_hex(3)}"
    content = to_json(config)
    row = {
        "id": study,
        "title": config.title,
        "status": "running",
        "config": content,
        "config_digest": digest_of(content),
        "made_at": store.now(),
    } | dict.fromkeys(("seq", "heard", "episode", "epoch", "asked", "given"), 0)
    with store.write() as connection:
        connection.execute(sa.insert(schema.studies), row)
        turn = Turn(store, connection, study_row(connection, study))
        turn.append("made", body={"config": row["config_digest"]})
        if config.practice:
            _queue(turn, 0, 0, practice_duels(config), "practice")
        commit_plan(turn, episode)
        turn.write_back()
    return study


def close_duels(store: Store, study: str) -> bool:
    """Wait no longer for the ratings that are missing; whether a plan is now due.

    For the owner whose annotators have gone: the next plan is made with the answers there are.
    """
    with take_turn(store, study) as turn:
        if turn.given < turn.asked:
            d = schema.duels.c
            missing = sa.and_(d.study == study, d.episode == turn.episode, d.given < d.ratings)
            release(turn, queries.OPEN_IN_EPISODE, study=study, episode=turn.episode)
            turn.connection.execute(sa.update(schema.duels).where(missing).values(ratings=d.given))
            turn.append("duels_closed", body={"missing": turn.asked - turn.given})
            turn.asked = turn.given
        return turn.plan_due


def observe(
    store: Store,
    study: str,
    states: Mapping[str, str],
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> bool:
    """The owner reports where every arm is now (arm id -> state label); whether a plan is due.

    It may come before all duels of the epoch are rated: those stay open until the plan is made,
    for what was asked about is known and answers may come in any order.
    columns: what is newly known of some arms (arm id -> column -> text), for their cards
    """
    with take_turn(store, study) as turn:
        config = turn.config
        if config.world != "observed":
            raise StudyError(f'study "{study}" has a simulated world: it moves by itself')
        if turn.status == "closed":
            raise StudyError(f'study "{study}" is closed: open it again to report states')
        if turn.epoch >= config.horizon:
            raise StudyError(
                f"all {config.horizon} epochs of episode {turn.episode} are reported: "
                "the next plan comes first"
            )
        next_states = _reported(config, states)
        for arm, known in (columns or {}).items():
            config.arm_number(arm)
            check_text(f'arm "{arm}"', "".join([*known.keys(), *known.values()]))
        _move_on(turn, next_states, columns or {})
        return turn.plan_due


def advance(store: Store, study: str) -> bool:
    """Make the plan that is due, and open its epoch; whether this call did it.

    Whoever comes first does it; others return at once. The plan is made outside any transaction
    and written with its duels in one. A process that dies on the way is replaced by the next
    caller when its lease has run out.
    """
    me = secrets.token_hex(8)
    while True:
        with take_turn(store, study) as turn:
            if not turn.plan_due or turn.planning or turn.status == "closed":
                return False
            turn.planner, turn.planner_until = me, turn.now + _lease(turn)
            heard, config = turn.heard, turn.config
        try:
            with store.read() as connection:
                learner = fold.fold(connection, config, study_row(connection, study))
                states = last_states(connection, config, study)
            episode = begin(config, learner, states)
        except BaseException:
            with take_turn(store, study) as turn:
                if turn.planner == me:
                    turn.planner = turn.planner_until = None
            raise
        with take_turn(store, study) as turn:
            mine = turn.planner == me
            if mine:
                turn.planner = turn.planner_until = None
            if mine and turn.heard == heard and turn.status != "closed":
                commit_plan(turn, episode)
                return True
        # An answer was taken back meanwhile, or somebody else was faster: look again.


def commit_plan(turn: Turn, episode: Episode) -> None:
    """Write a plan, its epochs and its duels, and begin its episode."""
    learner, table = episode.learner, schema.plans
    plan = learner.plan
    assert plan is not None  # noqa: S101
    arrays = fold.plan_arrays(learner)
    mine = table.c.study == turn.study
    turn.connection.execute(sa.update(table).where(mine).values(arrays=None))
    turn.connection.execute(
        sa.insert(table),
        {
            "study": turn.study,
            "plan": learner.episode,
            "made_at": turn.now,
            "engine": plan.engine,
            "value": plan.value,
            "random_value": episode.random_value,
            "multiplier": plan.multiplier,
            "changed": episode.changed,
            "answers": int(learner.wins.sum()),
            "seconds": round(episode.seconds, 6),
            "digest": fold.digest(arrays),
            "arrays": fold.pack(arrays),
        },
    )
    turn.episode, turn.epoch, turn.asked, turn.given = learner.episode, 0, 0, 0
    turn.append("planned", body={"plan": learner.episode, "engine": plan.engine})
    fold.save_snapshot(turn, learner)
    for epoch in episode.epochs:
        queue_epoch(turn, epoch)
        if epoch.next_states is not None:
            _observed(turn, epoch.next_states, "simulated")


def queue_epoch(turn: Turn, epoch: Epoch) -> None:
    """Write the present epoch and ask its duels."""
    row = {
        "study": turn.study,
        "episode": turn.episode,
        "epoch": turn.epoch,
        "states": fold.states_bytes(epoch.states),
        "arms": fold.arms_bytes(epoch.arms),
    }
    turn.connection.execute(sa.insert(schema.epochs), row)
    _queue(turn, turn.episode, turn.epoch, epoch.duels, "policy")
    turn.asked += len(epoch.duels) * turn.config.ratings


def last_states(connection: Connection, config: StudyConfig, study: str) -> IntArray:
    """Where all arms are now [N]."""
    e = schema.epochs.c
    query = sa.select(e.states, e.next_states).where(e.study == study)
    row = connection.execute(query.order_by(e.episode.desc(), e.epoch.desc()).limit(1)).one()
    return fold.bytes_states(row.next_states if row.next_states is not None else row.states)


def _move_on(turn: Turn, next_states: IntArray, columns: Mapping[str, Mapping[str, str]]) -> None:
    """Close the epoch with what the owner reported, and open the next of the episode."""
    row = study_row(turn.connection, turn.study)
    known = reported_columns(turn.connection, turn.study, turn.episode, turn.epoch)
    for arm, new in columns.items():
        known[arm] = known.get(arm, {}) | {str(name): str(text) for name, text in new.items()}
    _observed(turn, next_states, "owner", to_text(known) if columns else None)
    if turn.epoch < turn.config.horizon:
        learner: Dopl = fold.planned(turn.connection, turn.config, row)
        learner.epoch = turn.epoch
        turn.asked, turn.given = turn.asked - turn.given, 0
        queue_epoch(turn, open_epoch(learner, next_states))


def _observed(turn: Turn, next_states: IntArray, source: str, columns: str | None = None) -> None:
    e = schema.epochs
    place = sa.and_(e.c.study == turn.study, e.c.episode == turn.episode, e.c.epoch == turn.epoch)
    values = {
        "next_states": fold.states_bytes(next_states),
        "source": source,
        "columns": columns,
    }
    turn.connection.execute(sa.update(e).where(place).values(values))
    turn.append("observed", body={"episode": turn.episode, "epoch": turn.epoch, "source": source})
    turn.epoch += 1


def _queue(turn: Turn, episode: int, epoch: int, duels: IntArray, purpose: str) -> None:
    rows = [
        {
            "study": turn.study,
            "episode": episode,
            "epoch": epoch,
            "number": number,
            "purpose": purpose,
            "left_arm": duel[0],
            "left_state": duel[1],
            "right_arm": duel[2],
            "right_state": duel[3],
            "ratings": turn.config.ratings if purpose == "policy" else 0,
            "given": 0,
            "held": 0,
        }
        for number, duel in enumerate(duels.tolist())
    ]
    if rows:
        turn.connection.execute(sa.insert(schema.duels), rows)


def _reported(config: StudyConfig, states: Mapping[str, str]) -> IntArray:
    """Reported states in the order of the arms [N], or why they cannot be used."""
    for given in states:
        config.arm_number(given)
    if missing := [arm.id for arm in config.arms if arm.id not in states]:
        raise StudyError(
            f'arm "{missing[0]}" has no state'
            + (f", nor have {len(missing) - 1} others" if len(missing) > 1 else "")
            + ": report all arms"
        )
    numbers = []
    for arm in config.arms:
        try:
            numbers.append(config.state_number(states[arm.id]))
        except StudyError as error:
            raise StudyError(f'arm "{arm.id}": {error}') from None
    return np.array(numbers, dtype=np.int64)


def _lease(turn: Turn) -> int:
    """Milliseconds until a planner is given up: five times the last plan's time, at least."""
    p = schema.plans.c
    query = sa.select(p.seconds).where(p.study == turn.study, p.plan == turn.episode)
    seconds = turn.connection.execute(query).scalar_one()
    return int(1000 * max(PLANNER_LEASE, 5 * seconds))


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:24].strip("-") or "study"
