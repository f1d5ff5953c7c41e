"""Every row that is inserted, made in one place: live play and import write the same.

Each function gives the values of one row of the table it is named after.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct, to_builtins
from sqlalchemy.engine import Connection

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.learner import Learner
from dopl_core.studies.model.config_json import digest_of, to_json
from dopl_core.studies.model.event_bodies import About
from dopl_core.studies.model.event_kinds import KINDS
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.store.blobs import digest, pack, pack_arms, pack_states
from dopl_core.studies.store.queries import DuelRow, ImpressionRow

Row = dict[str, Any]

OF_ANSWERS = ("outcome", "answered_at", "response_ms", "trip_ms", "narrow", "participant")
OF_PEOPLE = ("link", "participant", "code", "consented")
_EVENT = ("annotator", "impression", "duel", "outcome", "salt", "sealed")
_PERSONAL = ("salt", "annotator", "body")  # what the salted digest of an event covers
UNSALTED = "unsalted:"  # and the chain of an erased event from before schema 13


def study(study: str, config: StudyConfig, made_at: int, **counters: Any) -> tuple[Row, Row]:
    """The rows of a study, and of its configuration.

    counters: status, episode, epoch, asked and given of a study that has come further
    """
    content = to_json(config)
    row = {
        "id": study,
        "title": config.title,
        "status": "running",
        "config_digest": digest_of(content),
        "made_at": made_at,
        **dict.fromkeys(("seq", "heard", "episode", "epoch", "asked", "given"), 0),
        **dict.fromkeys(("changes", "in_force"), 0),
        **counters,
    }
    return row, {"study": study, "content": content}


def annotator(study: str, name: str, joined_at: int, *, practised: bool, **more: Any) -> Row:
    """more: answers, repeats and the last impression of somebody who has come further.

    link, participant, code: of a participant;  consented: see tables.annotators
    """
    row = {"study": study, "name": name, "joined_at": joined_at, "practised": practised}
    row |= {"answers": 0, "repeats": 0, "last": None}
    return row | dict.fromkeys(OF_PEOPLE) | more


def event(
    study: str,
    seq: int,
    at: int,
    kind: str,
    before: str | None = None,
    body: Struct | str | None = None,
    **columns: Any,
) -> Row:
    """columns: annotator, impression, duel, outcome, salt, sealed.

    before: the chain of the event before
    """
    if kind not in KINDS:
        raise ValueError(f'event "{kind}" is not one of {", ".join(KINDS)}')
    if body is not None and not isinstance(body, str):
        if not isinstance(body, KINDS[kind].body):
            raise ValueError(f"the body of {kind} is a {type(body).__name__}")
        body = to_text(to_builtins(body))
    row = {"study": study, "seq": seq, "at": at, "kind": kind, "body": body}
    row |= {name: columns.get(name) for name in _EVENT}
    return row | {"chain": chain(before, row)}


def chain(before: str | None, event: Row) -> str:
    """A digest of an event and of all before it; ids, which an import gives anew, are left out.

    Who and what it is about is covered by a salted digest, which stays when these are erased.
    Events from before schema 13 have no salt.
    """
    said = [event[name] for name in ("seq", "at", "kind", "annotator", "outcome", "body")]
    if event["sealed"] or event["salt"]:
        personal = to_text([event[name] for name in _PERSONAL])
        covered = event["sealed"] or hashlib.sha256(personal.encode()).hexdigest()
        if covered.startswith(UNSALTED) and covered != UNSALTED:
            return str(covered.removeprefix(UNSALTED))
        said = [event[name] for name in ("seq", "at", "kind", "outcome")] + [covered]
    # Each click passes here, so it calls no function of its own for this.
    return hashlib.sha256(f"{before or ''}{to_text(said)}".encode()).hexdigest()


def sealed(event: Row) -> str:
    """What takes the place of an event's salt when its annotator or its body is erased."""
    if event["sealed"] or not event["salt"]:
        return event["sealed"] or f"{UNSALTED}{event['chain'] or ''}"
    return digest_of(to_text([event[name] for name in _PERSONAL]))


def about_cards(duel: DuelRow | ImpressionRow, *more: int | None) -> About:
    """The body of a shown or answered event: a digest as in store/about.py.

    more: of an answer, the session and its times
    """
    sides = (duel.left_arm, duel.left_state, duel.right_arm, duel.right_state)
    facts = (duel.episode, duel.epoch, duel.number, duel.purpose, *sides, *more)
    return About(hashlib.sha256(json.dumps(facts).encode()).hexdigest())


def plan(learner: Learner, *, random_value: float, changed: float, seconds: float) -> Row:
    """The plan that a learner has just made, without `study` and `made_at`."""
    made = learner.plan
    if made is None:
        raise ValueError("there is no plan to keep: call replan() first")
    arrays = learner.plan_state()
    return {
        "plan": learner.episode,
        "engine": made.engine,
        "value": made.value,
        "random_value": random_value,
        "multiplier": made.multiplier,
        "changed": changed,
        "answers": round(learner.counts.total()),
        "seconds": round(seconds, 6),
        "digest": digest(arrays),
        "arrays": pack(arrays),
    }


def epoch(study: str, epoch: Epoch) -> Row:
    return {
        "study": study,
        "episode": epoch.episode,
        "epoch": epoch.epoch,
        "states": pack_states(epoch.states),
        "arms": pack_arms(epoch.arms),
        "by_lot": pack_arms(epoch.by_lot) if len(epoch.by_lot) else None,
        **report(epoch.next_states, epoch.source, epoch.columns, epoch.helped),
    }


def report(
    next_states: IntArray | None,
    source: str | None,
    columns: Mapping[str, Mapping[str, str]] | None,
    helped: IntArray | None,
) -> Row:
    """The part of an epoch's row that is known when the epoch has ended."""
    known = to_text(columns) if columns else None
    return {
        "next_states": None if next_states is None else pack_states(next_states),
        "source": source,
        "columns": known,
        "digest": None if known is None else digest_of(known),
        "helped": None if helped is None else pack_arms(helped),
    }


def duel(
    study: str,
    place: tuple[int, int, int],
    purpose: str,
    sides: Sequence[int],
    ratings: int,
    given: int = 0,
    held: int = 0,
) -> Row:
    """place: episode, epoch, number;  sides: left arm and state, right arm and state.

    ratings: asked for, 0 where everybody is asked;  given, held: of these, answered and shown
    """
    if purpose not in LEARNT:
        ratings = 0
    left_arm, left_state, right_arm, right_state = sides
    return {
        "study": study,
        "episode": place[0],
        "epoch": place[1],
        "number": place[2],
        "purpose": purpose,
        "left_arm": left_arm,
        "left_state": left_state,
        "right_arm": right_arm,
        "right_state": right_state,
        "ratings": ratings,
        "given": given,
        "held": held,
        "free": ratings - given - held,
    }


def impression(
    study: str, duel: int, annotator: str, session: int, shown_at: int, lease_ms: int, **said: Any
) -> Row:
    """said: of one that was answered, outcome, answered_at and times;  participant: of a panel."""
    row = {"study": study, "duel": duel, "annotator": annotator, "session": session}
    row |= {"shown_at": shown_at, "expires_at": shown_at + lease_ms}
    return row | dict.fromkeys(OF_ANSWERS) | said


def insert(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows of a table."""
    if rows:
        connection.execute(sa.insert(table), list(rows))


def insert_numbered(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> list[int]:
    """Insert in order; the ids that the database gave, in the same order."""
    if not rows:
        return []
    statement = sa.insert(table).returning(table.c.id, sort_by_parameter_order=True)
    return [int(i) for i in connection.execute(statement, list(rows)).scalars()]


def to_text(body: Any) -> str:
    """JSON for the database, in the order in which it is given: an owner's columns have one."""
    return json.dumps(body, ensure_ascii=False)
