"""What a person does beside answering: come in, look back, change an answer, tell the owner."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from dopl_core.studies import schema, statements
from dopl_core.studies.arrays import unpack_arms
from dopl_core.studies.asking import answered, sides_of
from dopl_core.studies.config import StudyConfig, check_text
from dopl_core.studies.reading import Record, config_of, present_epoch, study_row
from dopl_core.studies.replies import Side, name_of
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, take_turn
from dopl_core.studies.vocabulary import ANSWERS, LEARNT

if TYPE_CHECKING:
    import pandas as pd

LONGEST_COMMENT = 500

_SECONDS = 7.0  # to an answer, as long as nobody has given any
_i, _d, _e = schema.impressions.c, schema.duels.c, schema.events.c


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
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        who = {"at_study": study, "annotator": annotator.strip()}
        if connection.execute(statements.PERSON, who).first() is not None:
            return None
        took = sa.select(_i.response_ms).where(_i.study == study, _i.response_ms.is_not(None))
        last = connection.execute(took.order_by(_i.id.desc()).limit(101)).scalars().all()
    seconds = sorted(last)[len(last) // 2] / 1000 if last else _SECONDS
    wanted = [count for count in (config.quota, row.asked - row.given) if count]
    return Arrival(min(wanted, default=0), seconds)


def own_answers(store: Store, study: str, annotator: str, last: int = 10) -> list[Own]:
    """A person's last answers, the newest first; practice and repeats aside."""
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        query = statements.LAST.where(_d.purpose.in_(LEARNT)).limit(last)
        given = connection.execute(query, {"study": study, "annotator": annotator.strip()}).all()
        return [
            Own(
                shown.id,
                *sides_of(store, connection, study, config, shown),
                shown.episode,
                shown.epoch,
                shown.outcome,
                can_change=_can_change(row, shown),
            )
            for shown in given
        ]


def change(store: Store, impression: int, annotator: str, outcome: str) -> bool:
    """Answer otherwise; whether that was still possible.

    In the log the answer is taken back, and given anew.
    """
    with take_turn(store, impression=impression) as turn:
        if outcome not in turn.config.outcomes:
            allowed = ", ".join(turn.config.outcomes)
            raise StudyError(f'answer "{outcome}" is not one of {allowed}')
        shown = _of_person(turn, impression, annotator)
        if shown.outcome not in ANSWERS or not _can_change(turn, shown):
            return False
        if shown.outcome != outcome:
            about = {"annotator": annotator, "impression": impression, "duel": shown.duel}
            turn.append("undone", outcome=shown.outcome, **about)
            said = {"outcome": outcome, "answered_at": turn.now}
            turn.run(statements.CHANGE, at_impression=impression, **said)
            answered(turn, annotator, 0, impression)
            turn.append("answered", outcome=outcome, **about)
        return True


def flag(store: Store, impression: int, annotator: str, comment: str, arm: str = "") -> None:
    """Tell the owner that something is wrong with a duel; arm: the id of the one it is about."""
    comment = comment.strip()
    check_text("the comment", comment)
    if not comment or len(comment) > LONGEST_COMMENT:
        raise StudyError(
            f"the comment has {len(comment)} characters: 1 to {LONGEST_COMMENT} needed"
        )
    with take_turn(store, impression=impression) as turn:
        shown = _of_person(turn, impression, annotator)
        if arm and arm not in {turn.config.arms[n].id for n in (shown.left_arm, shown.right_arm)}:
            raise StudyError(f'"{arm}" is in another duel')
        about = {"annotator": annotator, "impression": impression, "duel": shown.duel}
        turn.append("flagged", body={"comment": comment, "arm": arm}, **about)


def flags(store: Store, study: str) -> "pd.DataFrame":
    """What people have told the owner, the newest first: when, who, of which duel and arm, what."""
    import pandas as pd

    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        query = (
            sa.select(_e.at, _e.annotator, _e.body, _d.left_arm, _d.right_arm)
            .join_from(schema.events, schema.duels, _e.duel == _d.id)
            .where(_e.study == study, _e.kind == "flagged")
            .order_by(_e.seq.desc())
        )
        told = connection.execute(query).all()
    rows = [
        (at, who, config.arms[left].id, config.arms[right].id, said["arm"], said["comment"])
        for at, who, body, left, right in told
        for said in [json.loads(body)]
    ]
    columns = ["at", "annotator", "left_arm", "right_arm", "about", "comment"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["at"] = pd.to_datetime(frame["at"], unit="ms", utc=True)
    return frame


def round_end(store: Store, study: str, annotator: str) -> RoundEnd:
    """What came of the round before this one."""
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        own = (
            sa.select(sa.func.count())
            .select_from(schema.impressions.join(schema.duels, _i.duel == _d.id))
            .where(_i.study == study, _i.annotator == annotator.strip())
            .where(_d.episode == row.episode - 1, _d.purpose.in_(LEARNT), _i.outcome.in_(ANSWERS))
        )
        p = schema.plans.c
        plan = sa.select(p.changed).where(p.study == study, p.plan == row.episode)
        changed = connection.execute(plan).scalar() or 0.0
        listed = _listed(connection, config, row)
        decisions = config.n_arms * config.n_states
        count = int(connection.execute(own).scalar_one())
    return RoundEnd(count, round(changed * decisions), decisions, listed)


def _listed(connection: sa.Connection, config: StudyConfig, row: Record) -> list[str]:
    if row.episode == 0:
        return []
    arms = unpack_arms(present_epoch(connection, config, row).arms).tolist()
    return [name_of(config, config.arms[n]) for n in arms]


def _can_change(row: Record | Turn, shown: Record) -> bool:
    """A plan has not used it, and there will be one that does."""
    return shown.purpose in LEARNT and shown.episode == row.episode and row.status != "closed"


def _of_person(turn: Turn, impression: int, annotator: str) -> Record:
    shown = turn.run(statements.IMPRESSION, impression=impression).one()
    if shown.annotator != annotator:
        raise StudyError(f"impression {impression} was shown to somebody else")
    return shown
