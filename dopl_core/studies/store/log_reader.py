"""Reading the log of a study, and all that it points to, from the database."""

from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.learning.bandit import Arrays
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_kinds import COUNTED, EFFECTIVE, read_body, standing
from dopl_core.studies.model.log_values import (
    Event,
    Impression,
    Person,
    PlanMade,
    QueuedDuel,
    Reason,
    Shown,
)
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.model.past_answers import annotators_in
from dopl_core.studies.model.reasons import REASON_KINDS, reasons_in
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.blobs import unpack_whole
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_epochs, read_study


def read_log(store: Store, study: str) -> StudyLog:
    """Everything that happened in a study."""
    with read_study(store, study) as reader:
        return log_of(reader)


def log_of(reader: StudyReader) -> StudyLog:
    """Everything that happened in a study that is being read."""
    connection, row = reader.connection, reader.row
    return StudyLog(
        study=row.id,
        status=row.status,
        made_at=row.made_at,
        config=reader.first_config,
        config_text=reader.config_text(),
        asked=row.asked,
        given=row.given,
        annotators=_read_people(connection, row.id),
        impressions=list(read_impressions(connection, row.id)),
        epochs=read_epochs(connection, row.id),
        plans=read_plans(connection, row.id),
        arrays=last_arrays(reader),
        queue=_read_queue(reader),
        events=_read_events(connection, row.id),
    )


def read_impressions(
    connection: Connection, study: str, annotator: str | None = None
) -> Iterator[Impression]:
    """All impressions, or those of one person, in the order in which they were shown."""
    d, i = tables.duels.c, tables.impressions.c
    query = (
        sa.select(tables.impressions, *(c for c in d if c.name not in ("id", "study")))
        .join_from(tables.impressions, tables.duels, i.duel == d.id)
        .where(i.study == study)
        .order_by(i.id)
    )
    if annotator is not None:
        query = query.where(i.annotator == annotator)
    reasons = _read_reasons(connection, study)
    for row in connection.execute(query):
        yield Impression(
            place=(row.episode, row.epoch, row.number),
            purpose=row.purpose,
            sides=(row.left_arm, row.left_state, row.right_arm, row.right_state),
            annotator=row.annotator,
            session=row.session,
            outcome=row.outcome,
            shown_at=row.shown_at,
            answered_at=row.answered_at,
            response_ms=row.response_ms,
            trip_ms=row.trip_ms,
            narrow=row.narrow,
            participant=row.participant,
            reason=reasons.get(row.id),
        )


def _read_reasons(connection: Connection, study: str) -> dict[int, Reason]:
    """By impression, the reasons that were asked for."""
    e = tables.events.c
    columns = (e.at, e.kind, e.annotator, e.impression, e.outcome, e.body)
    query = sa.select(*columns).where(e.study == study, e.kind.in_(REASON_KINDS))
    return reasons_in(Event(*row) for row in connection.execute(query.order_by(e.seq)))


def read_plans(connection: Connection, study: str) -> list[PlanMade]:
    """All plans, in order."""
    p = tables.plans.c
    columns = [c for c in p if c.name not in ("study", "arrays")]
    query = sa.select(*columns).where(p.study == study).order_by(p.plan)
    made = (dict(row) for row in connection.execute(query).mappings())
    return [PlanMade(**(row | {"digest": row["digest"] or None})) for row in made]


def last_arrays(reader: StudyReader) -> Arrays | None:
    """What the learner held after the last plan; None where that is damaged, or there is none."""
    p = tables.plans.c
    query = sa.select(p.arrays, p.digest).where(p.study == reader.id, p.plan == reader.row.episode)
    kept = reader.connection.execute(query).one_or_none()
    return None if kept is None else unpack_whole(kept.arrays, kept.digest)


def _read_people(connection: Connection, study: str) -> list[Person]:
    a = tables.annotators.c
    may_be_empty = (a.link, a.participant, a.code, a.consented)
    columns = (a.name, a.joined_at, a.practised, a.repeats, *may_be_empty)
    query = sa.select(*columns).where(a.study == study).order_by(a.joined_at, a.name)
    return [
        Person(name, joined_at, bool(practised), repeats, *(text or "" for text in texts))
        for name, joined_at, practised, repeats, *texts in connection.execute(query)
    ]


def _read_queue(reader: StudyReader) -> list[QueuedDuel]:
    """The practice duels, and all duels of the present round."""
    d = tables.duels.c
    here = sa.or_(
        sa.and_(d.episode == reader.row.episode, d.purpose.in_(LEARNT)), d.purpose == "practice"
    )
    query = sa.select(tables.duels).where(d.study == reader.id, here)
    found = reader.connection.execute(query.order_by(d.episode, d.epoch, d.number, d.purpose))
    return [
        QueuedDuel(
            (row.episode, row.epoch, row.number),
            row.purpose,
            (row.left_arm, row.left_state, row.right_arm, row.right_state),
            row.ratings,
        )
        for row in found
    ]


def _read_events(connection: Connection, study: str) -> list[Event]:
    e, i = tables.events.c, tables.impressions.c
    ids = connection.execute(sa.select(i.id).where(i.study == study).order_by(i.id)).scalars()
    places = {impression: place for place, impression in enumerate(ids)}
    columns = (e.at, e.kind, e.annotator, e.impression, e.outcome, e.body, e.salt, e.sealed)
    query = sa.select(*columns).where(e.study == study).order_by(e.seq)
    return [
        Event(at, kind, annotator, None if shown is None else places[shown], *more)
        for at, kind, annotator, shown, *more in connection.execute(query)
    ]


def effective_events(
    connection: Connection, study: str, answers_after: int = 0
) -> tuple[list[Event], Mapping[int, Shown]]:
    """Events that count and have an effect, and the impressions they are about, by id.

    answers_after: leaves out answers up to this event, which a snapshot has counted
    """
    e, d, i = tables.events.c, tables.duels.c, tables.impressions.c
    sides = (d.left_arm, d.left_state, d.right_arm, d.right_state)
    query = (
        sa.select(
            *(e.seq, e.at, e.kind, e.annotator, e.impression, e.outcome, e.body),
            *(i.response_ms, d.episode, d.epoch, d.number, d.purpose, *sides),
        )
        .join_from(tables.events, tables.duels, e.duel == d.id, isouter=True)
        .join(tables.impressions, e.impression == i.id, isouter=True)
        .where(e.study == study, e.kind.in_(EFFECTIVE))
        .where(sa.or_(e.kind.not_in(COUNTED), e.seq > answers_after))
        .order_by(e.seq)
    )
    events: list[tuple[int, Event]] = []
    shown: dict[int, Shown] = {}
    for seq, at, kind, annotator, impression, outcome, body, *duel in connection.execute(query):
        events.append((seq, Event(at, kind, annotator, impression, outcome, body)))
        if impression is not None:
            took, episode, epoch, number, purpose, *pair = duel
            place = (episode, epoch, number)
            shown[impression] = Shown(place, purpose, tuple(pair), response_ms=took)
    return [event for _, event in standing(events)], shown


def annotator_numbers(connection: Connection, study: str) -> dict[str, int]:
    """The number of each annotator, in the order of their first answers (as in Progress).

    Past answers count from where the log has them.
    """
    e = tables.events.c
    first = sa.func.min(e.seq)
    answered = sa.select(first, e.annotator).where(e.study == study, e.kind == "answered")
    found = [(seq, name) for seq, name in connection.execute(answered.group_by(e.annotator))]
    found += past_annotators(connection, study)
    found.sort(key=lambda one: one[0])  # stable: past annotators stay in the order of their answers
    names = dict.fromkeys(name for _, name in found)
    return {name: number for number, name in enumerate(names)}


def past_annotators(connection: Connection, study: str) -> list[tuple[int, str]]:
    """The annotators of past answers, in order; each with the event that added the answers."""
    e = tables.events.c
    added = sa.select(e.seq, e.body).where(e.study == study, e.kind == "answers_added")
    return [
        (seq, name)
        for seq, body in connection.execute(added)
        for name in dict.fromkeys(annotators_in(read_body("answers_added", body).answers))
    ]


def check_chain(reader: StudyReader) -> None:
    """Refuse a log that differs from what was written, event by event."""
    e = tables.events.c
    query = sa.select(tables.events).where(e.study == reader.id).order_by(e.seq)
    before: str | None = None
    for number, event in enumerate(reader.connection.execute(query).mappings(), start=1):
        if event["seq"] != number:
            raise LogError(f"event {number} is missing from the log")
        if event["chain"] is not None or before is not None:
            if event["chain"] != inserts.chain(before, dict(event)):
                raise LogError(f"event {number} of the log is not what was written")
            before = event["chain"]
    if reader.row.chain != before:
        raise LogError("events are missing at the end of the log")
