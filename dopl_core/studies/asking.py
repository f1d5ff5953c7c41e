"""Duels and answers: what a person is shown next, what is done with what they click."""

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from dopl_core.studies import rows, statements
from dopl_core.studies.config import StudyConfig, check_name, check_participant
from dopl_core.studies.episode import better_side
from dopl_core.studies.reading import Record, is_over, reported_columns
from dopl_core.studies.replies import Ask, Finished, Receipt, Side, Waiting, side_of
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, take_turn
from dopl_core.studies.vocabulary import LEARNT

PLANNER_LEASE = 6.0  # seconds, renewed while a plan is made: a killed planner is soon replaced
TOO_FAST_MS = 300  # sooner than this after a duel is shown, a click was meant for the one before

_SITTING_MS = 30 * 60 * 1000  # a longer rest begins a new session


def next_duel(
    store: Store, study: str, annotator: str, participant: str = ""
) -> Ask | Waiting | Finished:
    """What to show this person now; new people are welcomed by their name.

    In this order: the duel they have open, practice, a repeat or a plain duel if it is time, the
    first duel of the queue that they have not rated and that wants a rating that nobody else holds.
    participant: the id that a panel gave them, kept with what they are shown
    """
    with take_turn(store, study, promise=False) as turn:
        person = _Person(turn, annotator, participant)
        if turn.status == "closed" or is_over(turn, turn.config):
            return Finished(person.answers)
        if turn.status == "paused":
            return _waiting(turn, person, "paused")
        if 0 < turn.config.quota <= person.answers:
            return Finished(person.answers, "quota")
        latest = turn.now + int(1000 * turn.config.lease_seconds)
        release(turn, statements.OVERDUE, study=study, now=turn.now, latest=latest)
        for find in (_open, _practice, _repeat, _gold, _queued):
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
    trip_ms: int | None = None,
    narrow: bool | None = None,
    too_fast_ms: int = TOO_FAST_MS,
) -> Receipt:
    """Save what was clicked: left, right, skip, or tie where the study allows it.

    response_ms, trip_ms, narrow: see history.Impression; timing.heard has them from a browser
    """
    times = {"response_ms": response_ms, "trip_ms": trip_ms}
    for what, took in times.items():
        if took is not None and took < 0:
            raise StudyError(f"{what} is {took}: it cannot be negative")
    with take_turn(store, impression=impression) as turn:
        if outcome not in turn.config.outcomes:
            allowed = ", ".join(turn.config.outcomes)
            raise StudyError(f'answer "{outcome}" is not one of {allowed}')
        shown = turn.run(statements.IMPRESSION, impression=impression).one()
        if shown.outcome is not None and shown.outcome != "expired":
            return Receipt("already", turn.plan_due)
        if 0 <= turn.now - shown.shown_at < too_fast_ms:  # less than none: the clock was put back
            return Receipt("too_fast", turn.plan_due)
        event = {
            "annotator": shown.annotator,
            "impression": impression,
            "duel": shown.duel,
            "outcome": outcome,
        }
        counts = shown.purpose in LEARNT
        if counts and not _count(turn, shown):
            turn.append("refused", **event)
            return Receipt("taken", turn.plan_due)
        turn.run(
            statements.ANSWER,
            at_impression=impression,
            outcome=outcome,
            answered_at=turn.now,
            narrow=None if narrow is None else int(narrow),
            **{w: None if t is None else min(int(t), 2**31 - 1) for w, t in times.items()},
        )
        answered(turn, shown.annotator, int(counts), impression)
        turn.append("answered", **event)
        late = shown.outcome == "expired" or shown.expires_at < turn.now
        return Receipt("late" if late else "saved", turn.plan_due)


def undo(store: Store, study: str, annotator: str) -> Ask | None:
    """Take back this person's last answer and show its duel again; None if there is none.

    There is none when the plan that used it has been made.
    """
    with take_turn(store, study) as turn:
        person = _Person(turn, annotator)
        last = person.undoable
        if last is None or turn.status == "closed":
            return None
        turn.run(statements.CLOSE, at_impression=last.id, outcome="undone")
        counts = last.purpose in LEARNT
        if counts:
            turn.run(statements.COUNT, duel=last.duel, more_given=-1, more_held=0)
            # The round in which it was given may be over: then this one asks for it again.
            if turn.given > 0:
                turn.given -= 1
            else:
                turn.asked += 1
        name = person.name
        turn.append(
            "undone", annotator=name, impression=last.id, duel=last.duel, outcome=last.outcome
        )
        before = turn.run(statements.BEFORE, study=study, annotator=name).scalar()
        answered(turn, name, -int(counts), before)
        shown = _show(turn, person, last, again=False)
        return _ask(turn, _Person(turn, name), *shown)


def skip_practice(store: Store, study: str, annotator: str) -> None:
    """Show this person no practice duels (any more)."""
    with take_turn(store, study) as turn:
        person = _Person(turn, annotator)
        if not person.practised:
            name = person.name
            turn.run(statements.PRACTISED, at_study=study, annotator=name)
            turn.run(statements.SKIP_OPEN_PRACTICE, at_study=study, at_annotator=name, now=turn.now)
            turn.append("practice_skipped", annotator=name)


class _Person:
    """An annotator in a turn, welcomed if new, and the last thing they answered."""

    def __init__(self, turn: Turn, name: str, participant: str = "") -> None:
        name = check_name(name)
        self.participant = check_participant(participant)
        row = turn.run(statements.PERSON, at_study=turn.study, annotator=name).one_or_none()
        if row is None:
            practised = not turn.config.practice
            new = rows.annotator(turn.study, name, turn.now, practised=practised)
            turn.run(statements.NEW_PERSON, **new)
            turn.append("joined", annotator=name)
            row = turn.run(statements.PERSON, at_study=turn.study, annotator=name).one()
        self.name, self.practised = name, bool(row.practised)
        self.answers: int = row.answers
        self.repeats: int = row.repeats
        self.last: Record | None = None
        if row.last is not None:
            self.last = turn.run(statements.IMPRESSION, impression=row.last).one()
        # What a plan has used cannot be taken back.
        used = self.last and self.last.purpose in LEARNT and self.last.episode != turn.episode
        self.undoable = None if used else self.last

    def session(self, now: int) -> int:
        """The number of this sitting: a long rest begins the next."""
        if self.last is None:
            return 1
        return int(self.last.session) + (1 if now - self.last.answered_at > _SITTING_MS else 0)


# --- what next_duel looks at, in its order: (impression id, its duel) or None


def _open(turn: Turn, person: _Person) -> tuple[int, Record] | None:
    shown = turn.run(statements.OPEN, study=turn.study, annotator=person.name).one_or_none()
    return None if shown is None else (shown.id, shown)


def _practice(turn: Turn, person: _Person) -> tuple[int, Record] | None:
    if person.practised:
        return None
    who = {"study": turn.study, "annotator": person.name}
    found = turn.run(statements.PRACTICE, episode=0, **who).one_or_none()
    if found is None:
        turn.run(statements.PRACTISED, at_study=turn.study, annotator=person.name)
        return None
    return _show(turn, person, found)


def _repeat(turn: Turn, person: _Person) -> tuple[int, Record] | None:
    """One of the person's own duels again, sides swapped; it measures them, and is not learnt.

    Never two in a row, though somebody has many answers when others join or the rate changes.
    """
    every, last = turn.config.repeat_every, person.last
    if not every or person.answers % every or person.answers < every * (person.repeats + 1):
        return None
    who = {"study": turn.study, "annotator": person.name}
    if (last and last.purpose == "repeat") or turn.run(statements.OTHERS, **who).first() is None:
        return None
    turn.run(statements.REPEATED, at_study=turn.study, annotator=person.name)
    skip_first = every * person.repeats
    original = turn.run(statements.TO_REPEAT, skip_first=skip_first, **who).one_or_none()
    if original is None:
        return None
    return _show(turn, person, _swapped(turn, original, "repeat"))


def _gold(turn: Turn, person: _Person) -> tuple[int, Record] | None:
    """A duel of this round that is plain by its states; it measures people, and is not learnt."""
    every = turn.config.gold_every
    if not every or not person.answers or person.answers % every:
        return None
    who = {"study": turn.study, "annotator": person.name}
    if person.answers < every * (turn.run(statements.GOLDS, **who).scalar_one() + 1):
        return None
    gap = plain_gap(turn.config.n_states)
    found = turn.run(statements.GOLD, episode=turn.episode, gap=gap, **who).one_or_none()
    return None if found is None else _show(turn, person, _swapped(turn, found, "gold"))


def plain_gap(n_states: int) -> int:
    """How many states apart the two of a plain pair are: two thirds of the whole way, or more."""
    return math.ceil(2 * (n_states - 1) / 3)


def _swapped(turn: Turn, duel: Record, purpose: str) -> Record:
    """A duel once more for another purpose, with its sides swapped, for nobody in particular."""
    place = (duel.episode, duel.epoch, duel.number)
    sides = (duel.right_arm, duel.right_state, duel.left_arm, duel.left_state)
    again = rows.duel(turn.study, place, purpose, sides, ratings=0)
    if turn.run(statements.DUEL_AT, **again).scalar() is None:
        turn.run(statements.NEW_DUEL, **again)
    return turn.run(statements.DUEL_AT, **again).one()


def _queued(turn: Turn, person: _Person) -> tuple[int, Record] | None:
    where = {"study": turn.study, "annotator": person.name, "episode": turn.episode}
    found = turn.run(statements.QUEUED, **where).one_or_none()
    return None if found is None else _show(turn, person, found)


# --- the steps they share


def _show(turn: Turn, person: _Person, duel: Record, again: bool = True) -> tuple[int, Record]:
    """Lease a duel to a person: a new impression, or `again` their expired one once more."""
    expired = duel.impression if again else None
    lease = int(1000 * turn.config.lease_seconds)
    if expired is None:
        who = (person.name, person.session(turn.now))
        new = rows.impression(
            turn.study, duel.duel, *who, turn.now, lease, participant=person.participant
        )
        impression = int(turn.run(statements.SHOW, **new).scalar_one())
    else:
        impression = int(expired)
        until = {"shown_at": turn.now, "expires_at": turn.now + lease}
        turn.run(statements.SHOW_AGAIN, at_impression=impression, **until)
    if duel.purpose in LEARNT:
        turn.run(statements.COUNT, duel=duel.duel, more_given=0, more_held=1)
    turn.append("shown", annotator=person.name, impression=impression, duel=duel.duel)
    return impression, duel


def _count(turn: Turn, shown: Record) -> bool:
    """Count a rating, if its duel still wants one; others who hold the last one are let go.

    In an observed world what was asked last week is still worth knowing, and counts in the next
    plan; a simulated one is played episode by episode.
    """
    this_round = shown.episode == turn.episode
    if shown.given >= shown.ratings or not (this_round or turn.config.world == "observed"):
        return False
    own = 1 if shown.outcome is None else 0
    turn.run(statements.COUNT, duel=shown.duel, more_given=1, more_held=-own)
    turn.given += this_round
    if shown.given + 1 == shown.ratings and shown.held > own:
        release(turn, statements.HELD_BY_OTHERS, duel=shown.duel, impression=shown.id)
    return True


def release(turn: Turn, query: Any, **where: Any) -> None:
    """Take back duels that were shown and not answered."""
    for row in turn.run(query, **where).all():
        turn.run(statements.CLOSE, at_impression=row.id, outcome="expired")
        if row.purpose in LEARNT:
            turn.run(statements.COUNT, duel=row.duel, more_given=0, more_held=-1)
        turn.append("expired", annotator=row.annotator, impression=row.id, duel=row.duel)


def answered(turn: Turn, annotator: str, more: int, last: int | None) -> None:
    """Count a person's answers; last: the impression that can be undone now."""
    turn.run(
        statements.ANSWERED, at_study=turn.study, annotator=annotator, more=more, impression=last
    )


def _ask(turn: Turn, person: _Person, impression: int, duel: Record) -> Ask:
    config = turn.config
    left, right = sides_of(turn.store, turn.connection, turn.study, config, duel)
    plain = (left.number, left.state_number, right.number, right.state_number)
    return Ask(
        impression=impression,
        duel=duel.duel,
        purpose=duel.purpose,
        left=left,
        right=right,
        episode=duel.episode,
        epoch=duel.epoch,
        done=turn.given,
        total=turn.asked,
        own=person.answers,
        can_undo=person.undoable is not None,
        expected=better_side(config, plain) if duel.purpose == "practice" else "",
    )


def sides_of(
    store: Store, connection: Connection, study: str, config: StudyConfig, duel: Record
) -> tuple[Side, Side]:
    """What is known of the two sides of a duel, as of when it was asked."""
    known: Mapping[str, dict[str, str]] = {}
    if config.world == "observed":
        known = reported_columns(store, connection, study, duel.episode, duel.epoch)
    return (
        side_of(config, duel.left_arm, duel.left_state, known),
        side_of(config, duel.right_arm, duel.right_state, known),
    )


def _waiting(turn: Turn, person: _Person, reason: Any) -> Waiting:
    due = turn.plan_due and not turn.planning(PLANNER_LEASE)
    undoable = person.undoable is not None
    return Waiting(reason, due, turn.given, turn.asked, person.answers, undoable)
