"""A database turned into a History, and a History into a database."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from dopl_core.studies import rows, schema
from dopl_core.studies.arrays import Arrays, digest, pack, unpack_arms, unpack_states, unpack_whole
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.episode import planned_learner, practice_duels
from dopl_core.studies.history import History, Impression, Move, Person, Place, PlanMade, Sides
from dopl_core.studies.reading import Record, config_of, study_row
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn
from dopl_core.studies.vocabulary import ANSWERS, LEARNT

_Key = tuple[Place, str]  # where a duel stands, and its purpose


def read(store: Store, study: str) -> History:
    """The history of a study as it is now."""
    with store.read() as connection:
        row = study_row(connection, study)
        return read_row(connection, config_of(store, connection, row), row)


def read_row(connection: Connection, config: StudyConfig, row: Record) -> History:
    """The history of a study whose row was read on this connection."""
    return History(
        study=row.id,
        status=row.status,
        made_at=row.made_at,
        config=config,
        asked=row.asked,
        given=row.given,
        annotators=_read_people(connection, row.id),
        impressions=list(read_impressions(connection, row.id)),
        moves=_read_moves(connection, row.id),
        plans=read_plans(connection, row.id),
        arrays=last_arrays(connection, row),
        closed=_read_closed(connection, config, row),
    )


def read_impressions(
    connection: Connection, study: str, annotator: str | None = None
) -> Iterator[Impression]:
    """All impressions, or one person's, in the order they were shown."""
    d, i = schema.duels.c, schema.impressions.c
    query = (
        sa.select(schema.impressions, *(c for c in d if c.name not in ("id", "study")))
        .join_from(schema.impressions, schema.duels, i.duel == d.id)
        .where(i.study == study)
        .order_by(i.id)
    )
    if annotator is not None:
        query = query.where(i.annotator == annotator)
    for row in connection.execute(query):
        yield Impression(
            annotator=row.annotator,
            session=row.session,
            place=(row.episode, row.epoch, row.number),
            purpose=row.purpose,
            sides=(row.left_arm, row.left_state, row.right_arm, row.right_state),
            outcome=row.outcome,
            shown_at=row.shown_at,
            answered_at=row.answered_at,
            response_ms=row.response_ms,
        )


def read_plans(connection: Connection, study: str) -> list[PlanMade]:
    """All plans, the first first."""
    p = schema.plans.c
    columns = [c for c in p if c.name not in ("study", "arrays")]
    query = sa.select(*columns).where(p.study == study).order_by(p.plan)
    made = (dict(row) for row in connection.execute(query).mappings())
    return [PlanMade(**(row | {"digest": row["digest"] or None})) for row in made]


def last_arrays(connection: Connection, row: Record) -> Arrays | None:
    """What the learner held after the last plan; None where that is damaged."""
    p = schema.plans.c
    query = sa.select(p.arrays, p.digest).where(p.study == row.id, p.plan == row.episode)
    kept = connection.execute(query).one()
    return unpack_whole(kept.arrays, kept.digest)


def _read_people(connection: Connection, study: str) -> list[Person]:
    a = schema.annotators.c
    columns = (a.name, a.joined_at, a.practised, a.repeats)
    query = sa.select(*columns).where(a.study == study).order_by(a.joined_at, a.name)
    return [
        Person(name, joined_at, bool(practised), repeats)
        for name, joined_at, practised, repeats in connection.execute(query)
    ]


def _read_moves(connection: Connection, study: str) -> list[Move]:
    e = schema.epochs.c
    query = sa.select(schema.epochs).where(e.study == study).order_by(e.episode, e.epoch)
    return [
        Move(
            episode=row.episode,
            epoch=row.epoch,
            states=unpack_states(row.states),
            arms=unpack_arms(row.arms),
            next_states=None if row.next_states is None else unpack_states(row.next_states),
            source=row.source,
            columns=None if row.columns is None else json.loads(row.columns),
        )
        for row in connection.execute(query)
    ]


def _read_closed(connection: Connection, config: StudyConfig, row: Record) -> dict[Place, int]:
    d = schema.duels.c
    query = sa.select(d.episode, d.epoch, d.number, d.ratings).where(
        d.study == row.id,
        d.episode == row.episode,
        d.purpose.in_(LEARNT),
        d.ratings < config.ratings,
    )
    found = connection.execute(query.order_by(d.epoch, d.number))
    return {(k, h, n): ratings for k, h, n, ratings in found}


# --- and back


def write(store: Store, history: History) -> None:
    """Insert a study, ready to go on, all or nothing; its history has arrays."""
    counters = {name: getattr(history, name) for name in ("status", "episode", "epoch")}
    counters |= {"asked": history.asked, "given": history.given}
    row = rows.study(history.study, history.config, history.made_at, **counters)
    with store.write() as connection:
        try:
            connection.execute(sa.insert(schema.studies), row)
        except IntegrityError:
            raise StudyError(
                f'study "{history.study}" is here already: delete it first, then import'
            ) from None
        turn = Turn(store, connection, study_row(connection, history.study))
        _write_plans(turn, history)
        _write_moves(turn, history)
        duels = _write_duels(turn, history)
        impressions = _write_impressions(turn, history, duels)
        _write_people(turn, history, impressions)
        _write_events(turn, history, duels, impressions)
        _check_missing(turn, history)
        turn.write_back()


def _write_plans(turn: Turn, history: History) -> None:
    if history.arrays is None:
        raise ValueError("a history without arrays: see replay.with_arrays")
    made = [
        vars(plan) | {"study": turn.study, "digest": plan.digest or "", "arrays": None}
        for plan in history.plans
    ]
    made[-1] |= {"arrays": pack(history.arrays), "digest": digest(history.arrays)}
    rows.insert(turn.connection, schema.plans, made)


def _write_moves(turn: Turn, history: History) -> None:
    made = [
        rows.epoch(
            turn.study,
            (move.episode, move.epoch),
            move.states,
            move.arms,
            move.next_states,
            move.source,
            move.columns,
        )
        for move in history.moves
    ]
    rows.insert(turn.connection, schema.epochs, made)


def _write_duels(turn: Turn, history: History) -> dict[_Key, int]:
    """Every duel that was shown, and those of the last episode that were not; their ids."""
    sides = _last_duels(history)
    given: Counter[_Key] = Counter()
    held: Counter[_Key] = Counter()
    for shown in history.impressions:
        key = (shown.place, shown.purpose)
        if sides.setdefault(key, shown.sides) != shown.sides:
            raise StudyError(f"duels.csv: {shown.place} is not what the last plan asks")
        if shown.purpose in LEARNT:
            given[key] += shown.outcome in ANSWERS
            held[key] += shown.outcome is None
    keys = sorted(sides)
    made = []
    for key in keys:
        place, purpose = key
        wanted = history.config.ratings if place[0] == history.episode else given[key]
        wanted = history.closed.get(place, wanted)
        made.append(
            rows.duel(turn.study, place, purpose, sides[key], wanted, given[key], held[key])
        )
    return dict(zip(keys, rows.insert_numbered(turn.connection, schema.duels, made), strict=True))


def _last_duels(history: History) -> dict[_Key, Sides]:
    """All duels of the last episode, shown or not, and the practice ones."""
    learner = planned_learner(history.config, history.arrays or {})
    if learner.episode != history.episode:
        raise StudyError("arrays.npz is of another plan than the last of plans.csv")
    duels: dict[_Key, Sides] = {}
    if history.config.practice:
        for number, duel in enumerate(practice_duels(history.config).tolist()):
            duels[(0, 0, number), "practice"] = tuple(duel)
    for move in history.moves:
        if move.episode == history.episode:
            asked = learner.duels(move.states, move.arms, move.epoch).tolist()
            for number, duel in enumerate(asked):
                duels[(move.episode, move.epoch, number), "policy"] = tuple(duel)
    return duels


def _write_impressions(turn: Turn, history: History, duels: dict[_Key, int]) -> list[int]:
    lease = int(1000 * history.config.lease_seconds)
    made = [
        rows.impression(
            turn.study,
            duels[shown.place, shown.purpose],
            shown.annotator,
            shown.session,
            shown.shown_at,
            lease,
            outcome=shown.outcome,
            answered_at=shown.answered_at,
            response_ms=shown.response_ms,
        )
        for shown in history.impressions
    ]
    return rows.insert_numbered(turn.connection, schema.impressions, made)


def _write_people(turn: Turn, history: History, impressions: list[int]) -> None:
    answers: Counter[str] = Counter()
    last: dict[str, tuple[int, int]] = {}
    for shown, impression in zip(history.impressions, impressions, strict=True):
        name = shown.annotator
        if shown.outcome in ANSWERS and shown.answered_at is not None:
            answers[name] += shown.purpose in LEARNT
            last[name] = max(last.get(name, (0, 0)), (shown.answered_at, impression))
    made = [
        rows.annotator(
            turn.study,
            person.name,
            person.joined_at,
            practised=person.practised,
            answers=answers[person.name],
            repeats=person.repeats,
            last=last.get(person.name, (0, None))[1],
        )
        for person in history.annotators
    ]
    rows.insert(turn.connection, schema.annotators, made)


def _write_events(
    turn: Turn, history: History, duels: dict[_Key, int], impressions: list[int]
) -> None:
    """The log as far as a history tells it, in the order of time; what was undone has no outcome.

    Of what has the same time: who and what there is, then plans, moves, and duels shown, answered.
    """
    log: list[tuple[int, int, str, dict[str, Any]]] = [(history.made_at, 0, "made", {})]
    for person in history.annotators:
        log.append((person.joined_at, 1, "joined", {"annotator": person.name}))
    for plan in history.plans:
        body = {"plan": plan.plan, "engine": plan.engine}
        log.append((plan.made_at, 3, "planned", {"body": body}))
    for move in history.moves:
        if move.next_states is not None:
            body = {"episode": move.episode, "epoch": move.epoch, "source": move.source}
            order = 4 if move.source == "simulated" else 2
            log.append((_known_at(history, move), order, "observed", {"body": body}))
    for shown, impression in zip(history.impressions, impressions, strict=True):
        what: dict[str, Any] = {"annotator": shown.annotator, "impression": impression}
        what["duel"] = duels[shown.place, shown.purpose]
        log.append((shown.shown_at, 5, "shown", what))
        at = shown.answered_at or shown.shown_at
        if shown.outcome in ANSWERS:
            log.append((at, 6, "answered", what | {"outcome": shown.outcome}))
        elif shown.outcome is not None:
            log.append((at, 6, shown.outcome, what))
    log.sort(key=lambda entry: entry[:2])
    log.append((turn.now, 7, "imported", {}))
    made = [
        rows.event(turn.study, seq, at, kind, **columns)
        for seq, (at, _, kind, columns) in enumerate(log, start=1)
    ]
    rows.insert(turn.connection, schema.events, made)
    turn.seq = turn.heard = len(made)


def _known_at(history: History, move: Move) -> int:
    """When an owner reported is not in a bundle: at the latest when the next plan was made."""
    if move.source == "simulated":
        return history.plans[move.episode - 1].made_at
    if move.episode < history.episode:
        return history.plans[move.episode].made_at
    return max(plan.made_at for plan in history.plans)


def _check_missing(turn: Turn, history: History) -> None:
    d = schema.duels.c
    query = sa.select(sa.func.coalesce(sa.func.sum(d.ratings - d.given), 0))
    here = query.where(d.study == turn.study, d.episode == turn.episode, d.purpose.in_(LEARNT))
    missing = int(turn.connection.execute(here).scalar_one())
    if missing != history.asked - history.given:
        raise StudyError(
            f"study.json: {history.asked - history.given} ratings are missing by its count, "
            f"{missing} by duels.csv"
        )
