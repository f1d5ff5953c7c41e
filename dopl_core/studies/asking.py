"""Duels and answers: what a person is shown next, what is done with what they click."""

from typing import Any

import sqlalchemy as sa

from dopl_core.studies import schema
from dopl_core.studies.episode import better_side
from dopl_core.studies.replies import Ask, Finished, Receipt, Waiting, side_of
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import COUNTED, Record, Turn, is_over, reported_columns, take_turn

TOO_FAST_MS = 300  # sooner than this after a duel is shown, a click was meant for the one before
_SITTING_MS = 30 * 60 * 1000  # a longer rest begins a new session

d, i, a = schema.duels.c, schema.impressions.c, schema.annotators.c


def next_duel(store: Store, study: str, annotator: str) -> Ask | Waiting | Finished:
    """What to show this person now; new people are welcomed by their name.

    In this order: the duel they have open, practice, a repeat if it is time, the first duel of
    the queue that they have not rated and that wants a rating that nobody else holds.
    """
    with take_turn(store, study) as turn:
        person = _person(turn, annotator)
        if turn.status == "closed" or is_over(turn, turn.config):
            return Finished(person.answers)
        if turn.status == "paused":
            return _waiting(turn, person, "paused")
        _expire(turn)
        for find in (_open, _practice, _repeat, _queued):
            found = find(turn, person)
            if found is not None:
                return _ask(turn, person, *found)
        if turn.given < turn.asked:
            return _waiting(turn, person, "others")
        return _waiting(turn, person, "plan" if turn.plan_due else "owner")


def answer(
    store: Store,
    impression: int,
    outcome: str,
    *,
    response_ms: int | None = None,
    too_fast_ms: int = TOO_FAST_MS,
) -> Receipt:
    """Save what was clicked: left, right, skip, or tie where the study allows it.

    response_ms: as the browser measured it, from when the cards appeared
    """
    with store.read() as connection:
        study = connection.execute(sa.select(i.study).where(i.id == impression)).scalar()
    if study is None:
        raise StudyError(f"impression {impression} was never shown")
    if response_ms is not None and response_ms < 0:
        raise StudyError(f"response_ms is {response_ms}: it cannot be negative")
    with take_turn(store, study) as turn:
        if outcome not in turn.config.outcomes:
            allowed = ", ".join(turn.config.outcomes)
            raise StudyError(f'answer "{outcome}" is not one of {allowed}')
        shown = _shown(turn, i.id == impression)
        if shown is None:
            raise StudyError(f"impression {impression} was never shown")
        if shown.outcome is not None and shown.outcome != "expired":
            return Receipt("already", turn.plan_due)
        if turn.now - shown.shown_at < too_fast_ms:
            return Receipt("too_fast", turn.plan_due)
        event = {
            "annotator": shown.annotator,
            "impression": impression,
            "duel": shown.duel,
            "outcome": outcome,
        }
        if shown.purpose == "policy" and not _count(turn, shown):
            turn.append("refused", **event)
            return Receipt("taken", turn.plan_due)
        values = {
            "outcome": outcome,
            "answered_at": turn.now,
            "response_ms": None if response_ms is None else min(int(response_ms), 2**31 - 1),
        }
        turn.connection.execute(
            sa.update(schema.impressions).where(i.id == impression).values(values)
        )
        _update_person(
            turn,
            shown.annotator,
            answers=a.answers + (1 if shown.purpose == "policy" else 0),
            last=impression,
        )
        turn.append("answered", **event)
        late = shown.outcome == "expired" or shown.expires_at < turn.now
        return Receipt("late" if late else "saved", turn.plan_due)


def undo(store: Store, study: str, annotator: str) -> Ask | None:
    """Take back this person's last answer and show its duel again; None if there is none.

    There is none when the plan that used it has been made.
    """
    with take_turn(store, study) as turn:
        person = _person(turn, annotator)
        last = _last(turn, person)
        if last is None or turn.status == "closed":
            return None
        turn.connection.execute(
            sa.update(schema.impressions).where(i.id == last.id).values(outcome="undone")
        )
        counts = last.purpose == "policy"
        if counts:
            _add(turn, last.duel, given=-1)
            # The round in which it was given may be over: then this one asks for it again.
            if turn.given > 0:
                turn.given -= 1
            else:
                turn.asked += 1
        turn.append(
            "undone",
            annotator=annotator,
            impression=last.id,
            duel=last.duel,
            outcome=last.outcome,
        )
        before = sa.select(i.id).where(
            i.study == study, i.annotator == annotator, i.outcome.in_(COUNTED)
        )
        before = before.order_by(i.answered_at.desc(), i.id.desc()).limit(1)
        _update_person(
            turn,
            annotator,
            answers=a.answers - (1 if counts else 0),
            last=turn.connection.execute(before).scalar(),
        )
        return _ask(turn, _person(turn, annotator), *_show(turn, last.duel, annotator, counts))


def skip_practice(store: Store, study: str, annotator: str) -> None:
    """Show this person no practice duels (any more)."""
    with take_turn(store, study) as turn:
        if not _person(turn, annotator).practised:
            _update_person(turn, annotator, practised=True)
            practice = sa.select(d.id).where(d.study == study, d.purpose == "practice")
            turn.connection.execute(
                sa.update(schema.impressions)
                .where(i.annotator == annotator, i.outcome.is_(None), i.duel.in_(practice))
                .values(outcome="skip", answered_at=turn.now)
            )
            turn.append("practice_skipped", annotator=annotator)


# --- what next_duel looks at, in its order: (impression id, duel row) or None


def _open(turn: Turn, person: Record) -> tuple[int, Record] | None:
    shown = _shown(turn, i.annotator == person.name, i.outcome.is_(None))
    return None if shown is None else (shown.id, shown)


def _practice(turn: Turn, person: Record) -> tuple[int, Record] | None:
    if person.practised:
        return None
    found = _unseen(turn, person.name, d.purpose == "practice", d.episode == 0)
    if found is None:
        _update_person(turn, person.name, practised=True)
        return None
    return _show(turn, found.id, person.name, False, found.impression)


def _repeat(turn: Turn, person: Record) -> tuple[int, Record] | None:
    """One of the person's own duels again, sides swapped; it measures them, and is not learnt."""
    every = turn.config.repeat_every
    if not every or person.answers < every * (person.repeats + 1):
        return None
    mine = (
        sa.select(schema.duels)
        .join_from(schema.impressions, schema.duels, i.duel == d.id)
        .where(i.study == turn.study, i.annotator == person.name, d.purpose == "policy")
        .where(i.outcome.in_(("left", "right", "tie")))
        .order_by(i.answered_at, i.id)
    )
    _update_person(turn, person.name, repeats=a.repeats + 1)
    original = turn.connection.execute(mine.offset(every * person.repeats).limit(1)).one_or_none()
    if original is None:
        return None
    place = {
        "study": turn.study,
        "episode": original.episode,
        "epoch": original.epoch,
        "number": original.number,
        "purpose": "repeat",
    }
    known = sa.select(d.id).filter_by(**place)
    duel = turn.connection.execute(known).scalar()
    if duel is None:
        sides = {
            "left_arm": original.right_arm,
            "left_state": original.right_state,
            "right_arm": original.left_arm,
            "right_state": original.left_state,
        }
        row = place | sides | {"ratings": 0, "given": 0, "held": 0}
        duel = turn.connection.execute(sa.insert(schema.duels).returning(d.id), row).scalar_one()
    return _show(turn, duel, person.name, False)


def _queued(turn: Turn, person: Record) -> tuple[int, Record] | None:
    found = _unseen(turn, person.name, d.episode == turn.episode, schema.FREE)
    return None if found is None else _show(turn, found.id, person.name, True, found.impression)


# --- the steps they share


def _unseen(turn: Turn, annotator: str, *where: Any) -> Record | None:
    """The first duel that this person has not answered, and its impression if its lease ran out."""
    own = sa.and_(
        i.duel == d.id,
        i.annotator == annotator,
        sa.or_(i.outcome.is_(None), i.outcome != "undone"),
    )
    query = (
        sa.select(d.id, i.id.label("impression"))
        .join_from(schema.duels, schema.impressions, own, isouter=True)
        .where(d.study == turn.study, *where, sa.or_(i.id.is_(None), i.outcome == "expired"))
        .order_by(d.id)
        .limit(1)
    )
    return turn.connection.execute(query).one_or_none()


def _show(
    turn: Turn, duel: int, annotator: str, holds: bool, expired: int | None = None
) -> tuple[int, Record]:
    """Lease a duel to a person: a new impression, or their expired one once more."""
    lease = {
        "shown_at": turn.now,
        "expires_at": turn.now + int(1000 * turn.config.lease_seconds),
        "outcome": None,
    }
    table = schema.impressions
    if expired is None:
        row = lease | {"study": turn.study, "duel": duel, "annotator": annotator}
        row["session"] = _session(turn, annotator)
        inserted = turn.connection.execute(sa.insert(table).returning(i.id), row)
        impression = int(inserted.scalar_one())
    else:
        impression = expired
        turn.connection.execute(sa.update(table).where(i.id == expired).values(lease))
    if holds:
        _add(turn, duel, held=1)
    turn.append("shown", annotator=annotator, impression=impression, duel=duel)
    shown = _shown(turn, i.id == impression)
    assert shown is not None  # noqa: S101
    return impression, shown


def _count(turn: Turn, shown: Record) -> bool:
    """Count a rating, if its duel still wants one; others who hold the last one are let go."""
    if shown.episode != turn.episode or shown.given >= shown.ratings:
        return False
    _add(turn, shown.duel, given=1, held=-1 if shown.outcome is None else 0)
    turn.given += 1
    if shown.given + 1 == shown.ratings:
        _release(turn, i.duel == shown.duel, i.id != shown.id)
    return True


def _expire(turn: Turn) -> None:
    """Take back the duels whose lease has run out."""
    _release(turn, i.study == turn.study, i.expires_at < turn.now)


def _release(turn: Turn, *where: Any) -> None:
    query = (
        sa.select(i.id, i.duel, i.annotator, d.purpose)
        .join_from(schema.impressions, schema.duels, i.duel == d.id)
        .where(i.outcome.is_(None), *where)
    )
    for row in turn.connection.execute(query).all():
        turn.connection.execute(
            sa.update(schema.impressions).where(i.id == row.id).values(outcome="expired")
        )
        if row.purpose == "policy":
            _add(turn, row.duel, held=-1)
        turn.append("expired", annotator=row.annotator, impression=row.id, duel=row.duel)


def _add(turn: Turn, duel: int, given: int = 0, held: int = 0) -> None:
    values = {"given": d.given + given, "held": d.held + held}
    turn.connection.execute(sa.update(schema.duels).where(d.id == duel).values(values))


def _shown(turn: Turn, *where: Any) -> Record | None:
    """The latest such impression of the study, with its duel."""
    own = [c for c in schema.impressions.c if c.name != "study"]
    of_duel = [c for c in schema.duels.c if c.name not in ("id", "study", "held")]
    query = (
        sa.select(*own, *of_duel)
        .join_from(schema.impressions, schema.duels, i.duel == d.id)
        .where(i.study == turn.study, *where)
        .order_by(i.id.desc())
        .limit(1)
    )
    return turn.connection.execute(query).one_or_none()


def _session(turn: Turn, annotator: str) -> int:
    """The number of the person's sitting: a long rest begins the next."""
    query = sa.select(i.session, i.shown_at, i.answered_at).where(
        i.study == turn.study, i.annotator == annotator
    )
    last = turn.connection.execute(query.order_by(i.id.desc()).limit(1)).one_or_none()
    if last is None:
        return 1
    rested = turn.now - max(last.shown_at, last.answered_at or 0)
    return int(last.session) + (1 if rested > _SITTING_MS else 0)


def _person(turn: Turn, annotator: str) -> Record:
    if not annotator.strip():
        raise StudyError("the annotator has no name")
    query = sa.select(schema.annotators).where(a.study == turn.study, a.name == annotator)
    person = turn.connection.execute(query).one_or_none()
    if person is None:
        row = {"study": turn.study, "name": annotator, "joined_at": turn.now}
        row |= {"practised": not turn.config.practice, "answers": 0, "repeats": 0}
        turn.connection.execute(sa.insert(schema.annotators), row)
        turn.append("joined", annotator=annotator)
        person = turn.connection.execute(query).one()
    return person


def _update_person(turn: Turn, annotator: str, **values: Any) -> None:
    where = sa.and_(a.study == turn.study, a.name == annotator)
    turn.connection.execute(sa.update(schema.annotators).where(where).values(values))


def _last(turn: Turn, person: Record) -> Record | None:
    """The answer that the person can take back: none that a plan has used."""
    if person.last is None:
        return None
    last = _shown(turn, i.id == person.last)
    if last is None or (last.purpose == "policy" and last.episode != turn.episode):
        return None
    return last


def _ask(turn: Turn, person: Record, impression: int, duel: Record) -> Ask:
    config = turn.config
    sides = (duel.left_arm, duel.left_state, duel.right_arm, duel.right_state)
    known = {}
    if config.world == "observed":
        known = reported_columns(turn.connection, turn.study, duel.episode, duel.epoch)
    return Ask(
        impression=impression,
        duel=duel.duel,
        purpose=duel.purpose,
        left=side_of(config, *sides[:2], known),
        right=side_of(config, *sides[2:], known),
        episode=turn.episode,
        epoch=duel.epoch,
        done=turn.given,
        total=turn.asked,
        own=person.answers,
        can_undo=_last(turn, person) is not None,
        expected=better_side(config, sides) if duel.purpose == "practice" else "",
    )


def _waiting(turn: Turn, person: Record, reason: Any) -> Waiting:
    due = turn.plan_due and not turn.planning
    can_undo = _last(turn, person) is not None
    return Waiting(reason, due, turn.given, turn.asked, person.answers, can_undo)
