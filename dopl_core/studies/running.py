"""A study's course: it is made, its world moves, its plans are made."""

import re
import secrets
import unicodedata
from collections.abc import Mapping

import numpy as np
import sqlalchemy as sa

from dopl_core.learning.bandit import IntArray
from dopl_core.studies import fold, rows, schema, statements
from dopl_core.studies.asking import release
from dopl_core.studies.config import StudyConfig, check_text, learner_of
from dopl_core.studies.episode import (
    Episode,
    Epoch,
    begin,
    first_states,
    open_epoch,
    plan_arrays,
    practice_duels,
)
from dopl_core.studies.reading import last_states, reported_columns, study_row
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, take_turn

PLANNER_LEASE = 20.0  # seconds; a plan that takes longer is made twice and counted once


def create_study(store: Store, config: StudyConfig) -> str:
    """Make a study with its first plan and its first duels; its id."""
    episode = begin(config, learner_of(config), first_states(config))
    plan = _plan_row(episode)
    study = f"{_slug(config.title)}-{secrets.token_hex(3)}"
    row = rows.study(study, config, store.now())
    with store.write() as connection:
        connection.execute(sa.insert(schema.studies), row)
        turn = Turn(store, connection, study_row(connection, study))
        turn.append("made", body={"config": row["config_digest"]})
        if config.practice:
            practice = _duel_rows(turn, (0, 0), practice_duels(config), "practice")
            rows.insert(connection, schema.duels, practice)
        _commit_plan(turn, episode, plan)
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
            release(turn, statements.OPEN_IN_EPISODE, study=study, episode=turn.episode)
            values = {"ratings": d.given, "free": 0}
            turn.connection.execute(sa.update(schema.duels).where(missing).values(values))
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
        _move_on(turn, _reported(config, states), _fresh(config, columns or {}))
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
                states = last_states(connection, study)
            episode = begin(config, learner, states)
            plan = _plan_row(episode)
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
                _commit_plan(turn, episode, plan)
                return True
        # An answer was taken back meanwhile, or somebody else was faster: look again.


def _plan_row(episode: Episode) -> rows.Row:
    """The row of a plan; packing its arrays takes a while, and needs no database."""
    return rows.plan(
        episode.learner,
        random_value=episode.random_value,
        changed=episode.changed,
        seconds=episode.seconds,
        arrays=plan_arrays(episode.learner),
    )


def _commit_plan(turn: Turn, episode: Episode, plan: rows.Row) -> None:
    """Write a plan, its epochs and its duels, and begin its episode."""
    p = schema.plans.c
    last = sa.and_(p.study == turn.study, p.plan == turn.episode)
    turn.connection.execute(sa.update(schema.plans).where(last).values(arrays=None))
    made = plan | {"study": turn.study, "made_at": turn.now}
    rows.insert(turn.connection, schema.plans, [made])
    turn.episode, turn.epoch, turn.asked, turn.given = plan["plan"], 0, 0, 0
    turn.append("planned", body={"plan": plan["plan"], "engine": plan["engine"]})
    fold.save_snapshot(turn, episode.learner)
    _open_epochs(turn, episode.epochs)


def _open_epochs(turn: Turn, epochs: list[Epoch]) -> None:
    """Ask the duels of the coming epochs; a simulated world has moved through them already."""
    opened: list[rows.Row] = []
    duels: list[rows.Row] = []
    for epoch in epochs:
        place, moved = (turn.episode, turn.epoch), epoch.next_states
        source = None if moved is None else "simulated"
        opened.append(rows.epoch(turn.study, place, epoch.states, epoch.arms, moved, source))
        duels += _duel_rows(turn, place, epoch.duels, "policy")
        turn.asked += len(epoch.duels) * turn.config.ratings
        if moved is not None:
            _observed(turn, "simulated")
    rows.insert(turn.connection, schema.epochs, opened)
    rows.insert(turn.connection, schema.duels, duels)


def _move_on(turn: Turn, next_states: IntArray, columns: dict[str, dict[str, str]]) -> None:
    """Close the epoch with what the owner reported, and open the next of the episode."""
    row = study_row(turn.connection, turn.study)
    known = reported_columns(turn.connection, turn.study, turn.episode, turn.epoch)
    known |= {arm: known.get(arm, {}) | new for arm, new in columns.items()}
    e = schema.epochs.c
    here = sa.and_(e.study == turn.study, e.episode == turn.episode, e.epoch == turn.epoch)
    report = rows.report(next_states, "owner", known if columns else None)
    turn.connection.execute(sa.update(schema.epochs).where(here).values(report))
    _observed(turn, "owner")
    if turn.epoch < turn.config.horizon:
        learner = fold.planned(turn.connection, turn.config, row)
        turn.asked, turn.given = turn.asked - turn.given, 0
        _open_epochs(turn, [open_epoch(learner, next_states, turn.epoch)])


def _observed(turn: Turn, source: str) -> None:
    turn.append("observed", body={"episode": turn.episode, "epoch": turn.epoch, "source": source})
    turn.epoch += 1


def _duel_rows(turn: Turn, place: tuple[int, int], duels: IntArray, purpose: str) -> list[rows.Row]:
    return [
        rows.duel(turn.study, (*place, number), purpose, sides, turn.config.ratings)
        for number, sides in enumerate(duels.tolist())
    ]


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


def _fresh(
    config: StudyConfig, columns: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Reported columns as text, or why they cannot be kept."""
    fresh = {arm: {str(k): str(v) for k, v in known.items()} for arm, known in columns.items()}
    for arm, known in fresh.items():
        config.arm_number(arm)
        for text in (*known.keys(), *known.values()):
            check_text(f'arm "{arm}"', text)
    return fresh


def _lease(turn: Turn) -> int:
    """Milliseconds until a planner is given up: five times the last plan's time, at least."""
    p = schema.plans.c
    query = sa.select(p.seconds).where(p.study == turn.study, p.plan == turn.episode)
    seconds = turn.connection.execute(query).scalar_one()
    return int(1000 * max(PLANNER_LEASE, 5 * seconds))


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:24].strip("-") or "study"
