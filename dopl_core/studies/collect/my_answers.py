"""What annotators do beside answering: arrive, agree, look back, change an answer."""

from dataclasses import dataclass

import sqlalchemy as sa

from dopl_core.studies.collect import participants
from dopl_core.studies.collect.due import open_duels
from dopl_core.studies.collect.duels import (
    check_outcome,
    count_answers,
    read_impression,
)
from dopl_core.studies.collect.limits import permission
from dopl_core.studies.collect.views import Side, name_of, sides_of
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import Consented
from dopl_core.studies.model.names import participant_name
from dopl_core.studies.model.outcomes import ANSWERS, LEARNT
from dopl_core.studies.store import inserts, queries, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.queries import ImpressionRow
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.studies.store.transaction import StudyTransaction, write_study

_SECONDS = 7.0  # to an answer, as long as there are fewer than _FEWEST answers
_FEWEST, _SHORTEST = 20, 3.0  # a few fast clicks promise too much
_i, _d = tables.impressions.c, tables.duels.c


@dataclass(frozen=True)
class Arrival:
    """What somebody new is told: answers that are asked of them, and the seconds these take."""

    answers: int
    seconds: float


@dataclass(frozen=True)
class Own:
    """An answer that a person has given; can_change: no plan has used it yet."""

    impression: int
    left: Side
    right: Side
    episode: int
    epoch: int
    outcome: str
    can_change: bool


@dataclass(frozen=True)
class RoundEnd:
    """What came of a round: the person's answers in it, and what the plan after it does otherwise.

    changed: decisions (what is done with an arm in a state) that are others now, of so many
    listed: the names of those on the list now
    """

    own: int
    changed: int
    decisions: int
    listed: list[str]


def arrival(store: Store, study: str, annotator: str) -> Arrival | None:
    """What to tell somebody who was never here; None for all others."""
    with read_study(store, study) as reader:
        config, row, connection = reader.config, reader.row, reader.connection
        who = {"at_study": study, "annotator": annotator.strip()}
        if connection.execute(queries.PERSON, who).first() is not None:
            return None
        took = sa.select(_i.response_ms).where(_i.study == study, _i.response_ms.is_not(None))
        last = connection.execute(took.order_by(_i.id.desc()).limit(101)).scalars().all()
        missing, limited = row.asked - row.given, permission(reader, annotator)
        if limited is not None:
            missing = sum(limited.judges(duel) for duel, _ in open_duels(reader))
    seconds = _SECONDS
    if len(last) >= _FEWEST:
        seconds = max(_SHORTEST, sorted(last)[len(last) // 2] / 1000)
    asked = min(filter(None, (config.quota, missing)), default=0)
    return Arrival(asked if limited is None else min(asked, missing), seconds)


def agree(store: Store, study: str, annotator: str, version: str, participant: str = "") -> None:
    """Record that this person agrees to the consent text; somebody new joins by this call.

    version: of the text that they have read;  participant: see next_duel
    """
    with write_study(store, study) as tx:
        if version != tx.next_config.consent_version or not version:
            raise StudyError("The consent text has changed. Please read it again.")
        name, link = annotator.strip(), annotator.strip()
        if participant:
            name = participant_name(link, participant)
        row = tx.run(queries.PERSON, at_study=study, annotator=name).one_or_none()
        if row is None:
            participants.join(tx, name, link, participant)
        if row is None or row.consented != version:
            tx.run(queries.CONSENTED, at_study=study, annotator=name, version=version)
            tx.append("consented", Consented(version), annotator=name)


def own_answers(store: Store, study: str, annotator: str, last: int = 10) -> list[Own]:
    """A person's last answers, the newest first; practice and repeats aside.

    Answers about people whose cards are kept from them since are left out.
    """
    with read_study(store, study) as reader:
        query = queries.LAST.where(_d.purpose.in_(LEARNT)).limit(last)
        limited = permission(reader, annotator)
        who = {"study": study, "annotator": annotator.strip()}
        given = map(ImpressionRow._make, reader.connection.execute(query, who))
        return [
            Own(
                shown.id,
                *sides_of(reader, shown),
                shown.episode,
                shown.epoch,
                shown.outcome or "",
                can_change=_can_change(reader, shown),
            )
            for shown in given
            if limited is None or limited.judges(shown)
        ]


def change(store: Store, impression: int, annotator: str, outcome: str) -> bool:
    """Answer otherwise; whether that was still possible.

    In the log the answer is taken back, and given anew.
    """
    with write_study(store, impression=impression) as tx:
        check_outcome(tx, outcome)
        shown = impression_of(tx, impression, annotator)
        limited = permission(tx, annotator)
        kept = limited is not None and not limited.judges(shown)
        if kept or shown.outcome not in ANSWERS or not _can_change(tx, shown):
            return False
        if shown.outcome != outcome:
            about = {"annotator": annotator, "impression": impression, "duel": shown.duel}
            tx.append("undone", outcome=shown.outcome, **about)
            said = {"outcome": outcome, "answered_at": tx.now}
            tx.run(queries.CHANGE, at_impression=impression, **said)
            count_answers(tx, annotator, 0, impression)
            times = (shown.response_ms, shown.trip_ms, shown.narrow)
            body = inserts.about_cards(shown, shown.session, *times)
            tx.append("answered", body, outcome=outcome, **about)
        return True


def round_end(store: Store, study: str, annotator: str) -> RoundEnd:
    """What came of the round before this one."""
    with read_study(store, study) as reader:
        config, row, connection = reader.config, reader.row, reader.connection
        own = (
            sa.select(sa.func.count())
            .select_from(tables.impressions.join(tables.duels, _i.duel == _d.id))
            .where(_i.study == study, _i.annotator == annotator.strip())
            .where(_d.episode == row.episode - 1, _d.purpose.in_(LEARNT), _i.outcome.in_(ANSWERS))
        )
        p = tables.plans.c
        plan = sa.select(p.changed).where(p.study == study, p.plan == row.episode)
        changed = connection.execute(plan).scalar() or 0.0
        listed = _listed(reader, annotator)
        decisions = config.n_arms * config.n_states
        count = int(connection.execute(own).scalar_one())
    return RoundEnd(count, round(changed * decisions), decisions, listed)


def _listed(reader: StudyReader, annotator: str) -> list[str]:
    """The names on the list, of people whose cards this annotator may see."""
    if reader.row.episode == 0:
        return []
    arms, limited = reader.present_epoch().listed.tolist(), permission(reader, annotator)
    seen = (n for n in arms if limited is None or limited.shows(n))
    return [name_of(reader.config, reader.config.arms[n]) for n in seen]


def _can_change(reader: StudyReader, shown: ImpressionRow) -> bool:
    """Whether no plan has used the answer, and one will."""
    row = reader.row
    return shown.purpose in LEARNT and shown.episode == row.episode and row.status != "closed"


def impression_of(tx: StudyTransaction, impression: int, annotator: str) -> ImpressionRow:
    """An impression that was shown to this annotator."""
    shown = read_impression(tx, impression)
    if shown.annotator != annotator:
        raise StudyError(f"impression {impression} was shown to somebody else")
    return shown
