"""A database turned into a History, and a History into a database."""

import json
import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from dopl_core.studies import rows, schema
from dopl_core.studies.arrays import Arrays, digest, pack, unpack_arms, unpack_states, unpack_whole
from dopl_core.studies.changes import changed
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.episode import planned_learner, practice_duels, sitting_duels
from dopl_core.studies.history import (
    Event,
    History,
    HistoryError,
    Impression,
    Move,
    Person,
    Place,
    PlanMade,
    Sides,
)
from dopl_core.studies.reading import Record, first_config, in_force, read_changes, study_row
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.vocabulary import ANSWERS, LEARNT

_Key = tuple[Place, str]  # where a duel stands, and its purpose


def read(store: Store, study: str) -> History:
    """The history of a study as it is now."""
    with store.read() as connection:
        row = study_row(connection, study)
        return read_row(connection, first_config(store, connection, row), row)


def read_row(connection: Connection, config: StudyConfig, row: Record) -> History:
    """The history of a study whose row was read on this connection; config: as it was made."""
    now = changed(config, read_changes(connection, row.id)[: in_force(row)])
    return History(
        study=row.id,
        status=row.status,
        made_at=row.made_at,
        config=config,
        asked=row.asked,
        given=row.given,
        annotators=_read_people(connection, row.id),
        impressions=list(read_impressions(connection, row.id)),
        moves=read_moves(connection, row.id),
        plans=read_plans(connection, row.id),
        arrays=last_arrays(connection, row),
        closed=_read_closed(connection, row, now.ratings),
        events=_read_events(connection, row.id),
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
            trip_ms=row.trip_ms,
            narrow=row.narrow,
            participant=row.participant,
        )


def read_plans(connection: Connection, study: str) -> list[PlanMade]:
    """All plans, the first first."""
    p = schema.plans.c
    columns = [c for c in p if c.name not in ("study", "arrays")]
    query = sa.select(*columns).where(p.study == study).order_by(p.plan)
    made = (dict(row) for row in connection.execute(query).mappings())
    return [PlanMade(**(row | {"digest": row["digest"] or None})) for row in made]


def last_arrays(connection: Connection, row: Record) -> Arrays | None:
    """What the learner held after the last plan; None where that is damaged, or there is none."""
    p = schema.plans.c
    query = sa.select(p.arrays, p.digest).where(p.study == row.id, p.plan == row.episode)
    kept = connection.execute(query).one_or_none()
    return None if kept is None else unpack_whole(kept.arrays, kept.digest)


def _read_people(connection: Connection, study: str) -> list[Person]:
    a = schema.annotators.c
    columns = (a.name, a.joined_at, a.practised, a.repeats)
    query = sa.select(*columns).where(a.study == study).order_by(a.joined_at, a.name)
    return [
        Person(name, joined_at, bool(practised), repeats)
        for name, joined_at, practised, repeats in connection.execute(query)
    ]


def read_moves(connection: Connection, study: str) -> list[Move]:
    """All epochs as they were reported, in order."""
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
            helped=None if row.helped is None else unpack_arms(row.helped),
            by_lot=unpack_arms(row.by_lot or b""),
        )
        for row in connection.execute(query)
    ]


def read_corrections(connection: Connection, study: str) -> list[dict[str, Any]]:
    """The bodies of all corrections, in order."""
    e = schema.events.c
    query = sa.select(e.body).where(e.study == study, e.kind == "corrected").order_by(e.seq)
    return [json.loads(body) for body in connection.execute(query).scalars()]


def _read_closed(connection: Connection, row: Record, ratings: int) -> dict[Place, int]:
    """Duels of the present episode that want other ratings than the study asks for."""
    d = schema.duels.c
    query = sa.select(d.episode, d.epoch, d.number, d.ratings).where(
        d.study == row.id,
        d.episode == row.episode,
        d.purpose.in_(LEARNT),
        d.ratings != ratings,
    )
    found = connection.execute(query.order_by(d.epoch, d.number))
    return {(k, h, n): ratings for k, h, n, ratings in found}


def _read_events(connection: Connection, study: str) -> list[Event]:
    e, i = schema.events.c, schema.impressions.c
    ids = connection.execute(sa.select(i.id).where(i.study == study).order_by(i.id)).scalars()
    places = {impression: place for place, impression in enumerate(ids)}
    columns = (e.at, e.kind, e.annotator, e.impression, e.outcome, e.body)
    query = sa.select(*columns).where(e.study == study).order_by(e.seq)
    return [
        Event(at, kind, annotator, None if shown is None else places[shown], outcome, body)
        for at, kind, annotator, shown, outcome, body in connection.execute(query)
    ]


# --- and back


def write(store: Store, history: History) -> None:
    """Insert a study, ready to go on, all or nothing; its history has its last plan's arrays."""
    if history.plans and history.arrays is None:
        raise ValueError("a history without arrays: see replay.with_arrays")
    counters = {name: getattr(history, name) for name in _COUNTERS}
    # Its own name in every process's store.configs: one that was deleted may have had this id, this
    # configuration, and as many other changes.
    counters["config_digest"] = secrets.token_hex(32)
    row, made_as = rows.study(history.study, history.config, history.made_at, **counters)
    with store.write() as connection:
        try:
            connection.execute(sa.insert(schema.studies), row | {"title": history.now.title})
        except IntegrityError:
            raise StudyError(
                f'study "{history.study}" is here already: delete it first, then import'
            ) from None
        connection.execute(sa.insert(schema.configs), made_as)
        _write_plans(connection, history)
        _write_moves(connection, history)
        duels = _write_duels(connection, history)
        impressions = _write_impressions(connection, history, duels)
        _write_people(connection, history, impressions)
        _write_events(connection, history, duels, impressions)
        _check_missing(connection, history)


_COUNTERS = ("status", "seq", "heard", "episode", "epoch", "asked", "given", "changes", "in_force")


def _write_plans(connection: Connection, history: History) -> None:
    made = [
        vars(plan) | {"study": history.study, "digest": plan.digest or "", "arrays": None}
        for plan in history.plans
    ]
    if history.arrays is not None:
        made[-1] |= {"arrays": pack(history.arrays), "digest": digest(history.arrays)}
    rows.insert(connection, schema.plans, made)


def _write_moves(connection: Connection, history: History) -> None:
    made = [
        rows.epoch(
            history.study,
            (move.episode, move.epoch),
            move.states,
            move.arms,
            move.next_states,
            move.source,
            move.columns,
            move.helped,
            move.by_lot,
        )
        for move in history.moves
    ]
    rows.insert(connection, schema.epochs, made)


def _write_duels(connection: Connection, history: History) -> dict[_Key, int]:
    """Every duel that was shown, and those of the last episode that were not; their ids."""
    sides = _last_duels(history)
    given: Counter[_Key] = Counter()
    held: Counter[_Key] = Counter()
    for shown in history.impressions:
        key = (shown.place, shown.purpose)
        if shown.purpose in LEARNT:
            sides[key] = shown.sides  # replay has compared it
            given[key] += shown.outcome in ANSWERS
            held[key] += shown.outcome is None
        elif sides.setdefault(key, shown.sides) != shown.sides:
            raise StudyError(f"duels.csv: {shown.place} is not what is asked for {shown.purpose}")
    keys = sorted(sides)
    made = []
    for key in keys:
        place, purpose = key
        wanted = given[key] + held[key]
        if place[0] == history.episode:
            wanted = history.closed.get(place, history.now.ratings)
        made.append(
            rows.duel(history.study, place, purpose, sides[key], wanted, given[key], held[key])
        )
    return dict(zip(keys, rows.insert_numbered(connection, schema.duels, made), strict=True))


def _last_duels(history: History) -> dict[_Key, Sides]:
    """All duels of the last episode, shown or not, and the practice ones."""
    config = history.now
    duels: dict[_Key, Sides] = {}
    if history.config.practice:
        for number, duel in enumerate(practice_duels(history.config).tolist()):
            duels[(0, 0, number), "practice"] = tuple(duel)
    if history.episode == 0:
        for number, duel in enumerate(sitting_duels(history.config).tolist()):
            duels[(0, 0, number), "sitting"] = tuple(duel)
        return duels
    learner = planned_learner(config, history.arrays or {})
    if learner.episode != history.episode:
        raise StudyError("arrays.npz is of another plan than the last of plans.csv")
    for move in history.moves:
        if move.episode == history.episode:
            asked = learner.duels(move.states, move.arms, move.epoch).tolist()
            for number, duel in enumerate(asked):
                duels[(move.episode, move.epoch, number), "policy"] = tuple(duel)
    return duels


def _write_impressions(
    connection: Connection, history: History, duels: dict[_Key, int]
) -> list[int]:
    lease = int(1000 * history.now.lease_seconds)
    made = [
        rows.impression(
            history.study,
            duels[shown.place, shown.purpose],
            shown.annotator,
            shown.session,
            shown.shown_at,
            lease,
            outcome=shown.outcome,
            answered_at=shown.answered_at,
            response_ms=shown.response_ms,
            trip_ms=shown.trip_ms,
            narrow=shown.narrow,
            participant=shown.participant,
        )
        for shown in history.impressions
    ]
    return rows.insert_numbered(connection, schema.impressions, made)


def _write_people(connection: Connection, history: History, impressions: list[int]) -> None:
    answers: Counter[str] = Counter()
    for shown in history.impressions:
        answers[shown.annotator] += shown.outcome in ANSWERS and shown.purpose in LEARNT
    last: dict[str, int] = {}
    for event in history.events:
        if event.kind == "answered" and event.impression is not None:
            shown = history.impressions[event.impression]
            if shown.outcome in ANSWERS:
                last[shown.annotator] = impressions[event.impression]
    made = [
        rows.annotator(
            history.study,
            person.name,
            person.joined_at,
            practised=person.practised,
            answers=answers[person.name],
            repeats=person.repeats,
            last=last.get(person.name),
        )
        for person in history.annotators
    ]
    rows.insert(connection, schema.annotators, made)


def _write_events(
    connection: Connection, history: History, duels: dict[_Key, int], impressions: list[int]
) -> None:
    made: list[rows.Row] = []
    before: str | None = None
    for seq, event in enumerate(history.events, start=1):
        about: dict[str, Any] = {"outcome": event.outcome, "body": event.body}
        about["annotator"] = event.annotator
        if event.impression is not None:
            shown = history.impressions[event.impression]
            about["impression"] = impressions[event.impression]
            about["duel"] = duels[shown.place, shown.purpose]
        made.append(rows.event(history.study, seq, event.at, event.kind, before, **about))
        before = made[-1]["chain"]
    rows.insert(connection, schema.events, made)
    s = schema.studies.c
    last = sa.update(schema.studies).where(s.id == history.study)
    connection.execute(last.values(chain=before))


def _check_missing(connection: Connection, history: History) -> None:
    d = schema.duels.c
    query = sa.select(sa.func.coalesce(sa.func.sum(d.ratings - d.given), 0)).where(
        d.study == history.study, d.episode == history.episode, d.purpose.in_(LEARNT)
    )
    missing = int(connection.execute(query).scalar_one())
    if missing != history.asked - history.given:
        raise StudyError(
            f"study.json: {history.asked - history.given} ratings are missing by its count, "
            f"{missing} by duels.csv"
        )


def from_text(body: str) -> dict[str, Any]:
    """What an event's body says."""
    content: dict[str, Any] = json.loads(body)
    return content


def check_chain(store: Store, study: str) -> None:
    """Refuse a log that is not the one that was written, event by event."""
    with store.read() as connection:
        row = study_row(connection, study)
        e = schema.events.c
        events = connection.execute(
            sa.select(schema.events).where(e.study == study).order_by(e.seq)
        ).mappings()
        before: str | None = None
        for number, event in enumerate(events, start=1):
            if event["seq"] != number:
                raise HistoryError(f"event {number} is missing from the log")
            if event["chain"] is not None or before is not None:
                if event["chain"] != rows.chain(before, dict(event)):
                    raise HistoryError(f"event {number} of the log is not what was written")
                before = event["chain"]
    if row.chain != before:
        raise HistoryError("events are missing at the end of the log")
