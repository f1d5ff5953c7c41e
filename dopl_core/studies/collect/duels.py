"""The path of a click: what an annotator is shown next, and what happens with the answer."""

from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa

from dopl_core.studies.collect import due, limits, participants, reason_rule
from dopl_core.studies.collect.practice import better_side, plain_gap
from dopl_core.studies.collect.views import (
    Ask,
    Consent,
    Finished,
    Receipt,
    Waiting,
    WaitReason,
    sides_of,
)
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.names import ERASED_ANNOTATOR, OWNER, check_person, participant_name
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.store import inserts, queries
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.queries import DuelRow, ImpressionRow
from dopl_core.studies.store.study_reader import StudyReader
from dopl_core.studies.store.transaction import StudyTransaction, write_study

PLANNER_LEASE = 6.0  # seconds, renewed while a plan is made: a killed planner is soon replaced
TOO_FAST_MS = 300  # a click sooner than this after a duel is shown was meant for the one before

_MOST_SHOWN = 2_000  # impressions whose study a process remembers
_SESSION_MS = 30 * 60 * 1000  # a longer pause begins a new session


def next_duel(
    store: Store, study: str, annotator: str, participant: str = ""
) -> Ask | Waiting | Finished | Consent:
    """What to show this person now; somebody new joins by this call.

    Where the study has a consent text, they join when they agree to it. In this order: the duel
    that they have open, practice, a repeat or a plain duel if one is due, the first duel of the
    queue that they have not rated and that has a rating left.
    participant: the id that a panel gave them; they are then the participant with this id of the
        link `annotator`, and names.participant_name is their own name
    """
    with write_study(store, study, durable=False) as tx:
        person = _Person(tx, annotator, participant)
        quota = tx.config.quota
        if tx.row.status == "closed" or tx.is_over:
            return Finished(person.own, code=person.code)
        if 0 < quota <= person.own:
            return Finished(person.own, "quota", person.code)
        if 0 < 2 * quota <= person.answers:
            return Finished(person.own, "skips")
        if tx.row.status == "paused":
            return _waiting(tx, person, "paused")
        if person.must_agree:
            config = tx.next_config
            text = config.own_words(config.consent)
            return Consent(text, config.consent_version, person.consented is not None)
        latest = tx.now + int(1000 * tx.config.lease_seconds)
        release(tx, queries.OVERDUE, study=study, now=tx.now, latest=latest)
        for find in (_open, _practice, _repeat, _gold, _queued):
            found = find(tx, person)
            if found is not None:
                return _ask(tx, person, *found)
        if tx.row.given < tx.row.asked:
            return _waiting(tx, person, due.why_wait(tx) if person.limited else "others")
        return _waiting(tx, person, "plan" if tx.plan_due else "owner")


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
    """Save an answer: left, right, skip, or tie where the study allows it.

    response_ms, trip_ms, narrow: see log_values.Impression
    """
    times = {"response_ms": response_ms, "trip_ms": trip_ms, "narrow": narrow}
    for what, took in times.items():
        if took is not None and took < 0:
            raise StudyError(f"{what} is {took}: it cannot be negative")
    with write_study(store, impression=impression) as tx:
        check_outcome(tx, outcome)
        shown = read_impression(tx, impression)
        if shown.outcome is not None and shown.outcome != "expired":
            return Receipt("already", tx.plan_due)
        if shown.annotator.startswith(ERASED_ANNOTATOR):
            raise StudyError("this annotator has withdrawn: the answer is not saved")
        if 0 <= tx.now - shown.shown_at < too_fast_ms:  # negative where the clock was put back
            return Receipt("too_fast", tx.plan_due)
        about = {"annotator": shown.annotator, "impression": impression, "duel": shown.duel}
        counts = shown.purpose in LEARNT
        if counts and not _count(tx, shown):
            tx.append("refused", outcome=outcome, **about)
            return Receipt("taken", tx.plan_due)
        said = {w: None if t is None else min(int(t), 2**31 - 1) for w, t in times.items()}
        saved = {"at_impression": impression, "outcome": outcome, "answered_at": tx.now}
        tx.run(queries.ANSWER, **saved, **said)
        count_answers(tx, shown.annotator, int(counts), impression)
        body = inserts.about_cards(shown, shown.session, *said.values())
        tx.append("answered", body, outcome=outcome, **about)
        late = shown.outcome == "expired" or shown.expires_at < tx.now
        asks = counts and bool(tx.config.reason_every or tx.config.reason_unsure)
        if asks := asks and reason_rule.is_asked(tx, shown, outcome, said["response_ms"]):
            tx.append("reason_asked", **about)
        return Receipt("late" if late else "saved", tx.plan_due, asks)


def undo(store: Store, study: str, annotator: str) -> Ask | None:
    """Take back this person's last answer and show its duel again.

    None where there is none, or where a plan has used it.
    """
    with write_study(store, study) as tx:
        person = _Person(tx, annotator)
        last, name = person.undoable, person.name
        if last is None or tx.row.status == "closed":
            return None
        tx.run(queries.CLOSE, at_impression=last.id, outcome="undone")
        counts = last.purpose in LEARNT
        if counts:
            tx.run(queries.COUNT, duel=last.duel, more_given=-1, more_held=0)
            # Where the round of the answer is over, the present round asks for it again.
            if tx.row.given > 0:
                tx.row.given -= 1
            else:
                tx.row.asked += 1
        about = {"annotator": name, "impression": last.id, "duel": last.duel}
        tx.append("undone", outcome=last.outcome, **about)
        before = tx.run(queries.BEFORE, study=study, annotator=name).scalar()
        count_answers(tx, name, -int(counts), before)
        shown = _show(tx, person, _duel_of(last))
        return _ask(tx, _Person(tx, name), *shown)


def skip_practice(store: Store, study: str, annotator: str) -> None:
    """Show this person no more practice duels."""
    with write_study(store, study) as tx:
        person = _Person(tx, annotator)
        if not person.practised:
            name = person.name
            tx.run(queries.PRACTISED, at_study=study, annotator=name)
            tx.run(queries.SKIP_OPEN_PRACTICE, at_study=study, at_annotator=name, now=tx.now)
            tx.append("practice_skipped", annotator=name)


# Somebody of whom nothing is recorded, because they have not agreed to the consent text.
_NOBODY = SimpleNamespace(**inserts.annotator("", "", 0, practised=True))


class _Person:
    """An annotator in a transaction, added if new, and what they answered last.

    must_agree: to the present consent text, before anything is asked
    limited: what they may see, None where the owner limits nothing
    """

    def __init__(self, tx: StudyTransaction, name: str, participant: str = "") -> None:
        name, link = name.strip(), name.strip()
        if participant:
            name = participant_name(link, participant)
        elif not name.isprintable() or name.startswith(ERASED_ANNOTATOR):
            # other names are checked when they are new
            name = check_person(name)
        row: Any = tx.run(queries.PERSON, at_study=tx.id, annotator=name).one_or_none()
        self.consented = None if row is None else row.consented
        needed = "" if name == OWNER else tx.next_config.consent_version
        self.must_agree = needed not in ("", self.consented)
        if row is None and self.must_agree:
            row = _NOBODY
        elif row is None:
            participants.join(tx, name, link, participant)
            row = tx.run(queries.PERSON, at_study=tx.id, annotator=name).one()
        self.name, self.practised = name, bool(row.practised)
        self.answers: int = row.answers
        self.repeats: int = row.repeats
        self.link, self.participant = row.link, row.participant
        # own: the answers that count for the quota
        self.own, self.code = self.answers, ""
        self.lease = tx.config.lease_seconds
        if self.participant:
            self.own, self.code = participants.earned(tx, row)
        self.limited = limits.permission(tx, name) if tx.next_config.limits else None
        self.last = last = None if row.last is None else read_impression(tx, row.last)
        # An answer that a plan has used cannot be taken back, nor one whose cards are kept away.
        used = last and last.purpose in LEARNT and last.episode != tx.row.episode
        kept = last and self.limited and not self.limited.judges(last)
        self.undoable = None if used or kept else last


# --- where next_duel looks, in its order: the impression's id and its duel, or None

Found = tuple[int, DuelRow] | None


def _open(tx: StudyTransaction, person: _Person) -> Found:
    row = tx.run(queries.OPEN, study=tx.id, annotator=person.name).one_or_none()
    if row is None:
        return None
    shown = ImpressionRow._make(row)
    if person.limited and not person.limited.judges(shown):  # since it was shown
        release(tx, queries.HELD, impression=shown.id)
        return None
    return shown.id, _duel_of(shown)


def _first(
    tx: StudyTransaction, person: _Person, query: sa.Select[Any], **where: Any
) -> DuelRow | None:
    """The first duel of a query that this person may judge."""
    if person.limited:
        query = queries.ALL_OF[query]
    rows = tx.run(query, study=tx.id, annotator=person.name, **where)
    found = map(DuelRow._make, rows)
    duel = next(filter(person.limited.judges, found) if person.limited else found, None)
    rows.close()
    return duel


def _practice(tx: StudyTransaction, person: _Person) -> Found:
    if person.practised:
        return None
    found = _first(tx, person, queries.PRACTICE, episode=0)
    if found is None:
        tx.run(queries.PRACTISED, at_study=tx.id, annotator=person.name)
        return None
    return _show(tx, person, found)


def _repeat(tx: StudyTransaction, person: _Person) -> Found:
    """One of the person's own duels again, sides swapped; it measures them and is not learnt.

    Never two in a row, and none twice, even where somebody has many answers when others join or the
    rate changes.
    """
    every, last = tx.config.repeat_every, person.last
    if not every or person.answers % every or person.answers < every * (person.repeats + 1):
        return None
    who = {"study": tx.id, "annotator": person.name}
    if (last and last.purpose == "repeat") or tx.run(queries.OTHERS, **who).first() is None:
        return None
    tx.run(queries.REPEATED, at_study=tx.id, annotator=person.name)
    original = tx.run(queries.TO_REPEAT, skip_first=every * person.repeats, **who).one_or_none()
    duel = None if original is None else DuelRow._make(original)
    if duel is None or (person.limited and not person.limited.judges(duel)):
        return None
    again = _swapped(tx, duel, "repeat")
    shown = tx.run(queries.SHOWN_TO, duel=again.duel, annotator=person.name).first()
    return _show(tx, person, again) if shown is None else None


def _gold(tx: StudyTransaction, person: _Person) -> Found:
    """A duel of this round whose answer is plain by its states; it measures people only."""
    every = tx.config.gold_every
    if not every or not person.answers or person.answers % every:
        return None
    who = {"study": tx.id, "annotator": person.name}
    if person.answers < every * (tx.run(queries.GOLDS, **who).scalar_one() + 1):
        return None
    gap = plain_gap(tx.config.n_states)
    found = _first(tx, person, queries.GOLD, episode=tx.row.episode, gap=gap)
    return None if found is None else _show(tx, person, _swapped(tx, found, "gold"))


def _swapped(tx: StudyTransaction, duel: DuelRow, purpose: str) -> DuelRow:
    """The same duel with its sides swapped, for another purpose and for anybody."""
    place = (duel.episode, duel.epoch, duel.number)
    sides = (duel.right_arm, duel.right_state, duel.left_arm, duel.left_state)
    again = inserts.duel(tx.id, place, purpose, sides, ratings=0)
    if tx.run(queries.DUEL_AT, **again).scalar() is None:
        tx.run(queries.NEW_DUEL, **again)
    return DuelRow._make(tx.run(queries.DUEL_AT, **again).one())


def _queued(tx: StudyTransaction, person: _Person) -> Found:
    if person.link:  # a participant
        lease = participants.lease_seconds(tx, person.link, has_answered=person.answers > 0)
        if lease is None:
            return None
        person.lease = lease
    found = _first(tx, person, queries.QUEUED, episode=tx.row.episode)
    return None if found is None else _show(tx, person, found)


# --- the steps that they share


def check_outcome(tx: StudyTransaction, outcome: str) -> None:
    """Refuse an answer that the study does not allow."""
    if outcome not in tx.config.outcomes:
        raise StudyError(f'answer "{outcome}" is not one of {", ".join(tx.config.outcomes)}')


def read_impression(reader: StudyReader, impression: int) -> ImpressionRow:
    found = reader.connection.execute(queries.IMPRESSION, {"impression": impression})
    return ImpressionRow._make(found.one())


def _duel_of(shown: ImpressionRow) -> DuelRow:
    place = (shown.episode, shown.epoch, shown.number, shown.purpose)
    sides = (shown.left_arm, shown.left_state, shown.right_arm, shown.right_state)
    return DuelRow(shown.duel, *place, *sides)


def _show(tx: StudyTransaction, person: _Person, duel: DuelRow) -> tuple[int, DuelRow]:
    """Lease a duel to a person: a new impression, or their own expired one again."""
    lease, last = int(1000 * person.lease), person.last
    if duel.impression is None:
        session = 1 if last is None else last.session
        if last and tx.now - (last.answered_at or tx.now) > _SESSION_MS:
            session += 1
        who = (person.name, session)
        new = inserts.impression(
            tx.id, duel.duel, *who, tx.now, lease, participant=person.participant
        )
        impression = int(tx.run(queries.SHOW, **new).scalar_one())
    else:
        impression = duel.impression
        until = {"shown_at": tx.now, "expires_at": tx.now + lease}
        tx.run(queries.SHOW_AGAIN, at_impression=impression, **until)
    if duel.purpose in LEARNT:
        tx.run(queries.COUNT, duel=duel.duel, more_given=0, more_held=1)
    about = {"annotator": person.name, "impression": impression, "duel": duel.duel}
    tx.append("shown", inserts.about_cards(duel), **about)
    if len(tx.store.shown_in) >= _MOST_SHOWN:
        tx.store.shown_in.clear()
    tx.store.shown_in[impression] = tx.id  # whose turn the answer waits for
    return impression, duel


def _count(tx: StudyTransaction, shown: ImpressionRow) -> bool:
    """Count a rating, if its duel still asks for one; leases of others on the last one end.

    In an observed world an answer to a duel of last week still counts, in the next plan. A
    simulated one is played episode by episode.
    """
    this_round = shown.episode == tx.row.episode
    if shown.given >= shown.ratings or not (this_round or tx.config.world == "observed"):
        return False
    own = 1 if shown.outcome is None else 0
    tx.run(queries.COUNT, duel=shown.duel, more_given=1, more_held=-own)
    tx.row.given += this_round
    if shown.given + 1 == shown.ratings and shown.held > own:
        release(tx, queries.HELD_BY_OTHERS, duel=shown.duel, impression=shown.id)
    return True


def release(tx: StudyTransaction, query: sa.Executable, **where: Any) -> None:
    """End the leases of duels that were shown and not answered."""
    for row in tx.run(query, **where).all():
        tx.run(queries.CLOSE, at_impression=row.id, outcome="expired")
        if row.purpose in LEARNT:
            tx.run(queries.COUNT, duel=row.duel, more_given=0, more_held=-1)
        tx.append("expired", annotator=row.annotator, impression=row.id, duel=row.duel)


def count_answers(tx: StudyTransaction, annotator: str, more: int, last: int | None) -> None:
    """Count a person's answers; last: the impression that can be undone now.

    Nothing counts, and nothing is changed, before they agree to the present consent text.
    """
    needed = "" if annotator == OWNER else tx.next_config.consent_version
    query = queries.ANSWERED_BY if needed else queries.ANSWERED
    done = tx.run(query, at_study=tx.id, annotator=annotator, more=more, impression=last)
    if needed and done.scalar() != needed:
        raise StudyError("The consent text has changed. Please read it before you go on.")


def _ask(tx: StudyTransaction, person: _Person, impression: int, duel: DuelRow) -> Ask:
    left, right = sides_of(tx, duel)
    plain = (left.number, left.state_number, right.number, right.state_number)
    return Ask(
        impression=impression,
        duel=duel.duel,
        purpose=duel.purpose,
        left=left,
        right=right,
        episode=duel.episode,
        epoch=duel.epoch,
        done=tx.row.given,
        total=tx.row.asked,
        own=person.own,
        can_undo=person.undoable is not None,
        expected=better_side(tx.config, plain) if duel.purpose == "practice" else "",
    )


def _waiting(tx: StudyTransaction, person: _Person, reason: WaitReason) -> Waiting:
    to_plan = tx.plan_due and not tx.planning(PLANNER_LEASE)
    undoable = person.undoable is not None
    return Waiting(reason, to_plan, tx.row.given, tx.row.asked, person.own, undoable)
