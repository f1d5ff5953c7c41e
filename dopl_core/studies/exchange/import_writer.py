"""A study log written into the database, ready to go on."""

import secrets
from collections import Counter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from dopl_core.studies.model.config_changes import CHANGES
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.log_values import Place
from dopl_core.studies.model.outcomes import ANSWERS, LEARNT
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.blobs import pack
from dopl_core.studies.store.database import Store

_Key = tuple[Place, str]  # the place and the purpose of a duel

_COUNTERS = ("status", "seq", "heard", "episode", "epoch", "asked", "given", "changes", "in_force")


def write(store: Store, log: StudyLog) -> None:
    """Insert a study, all or nothing; the log has its last plan's arrays and its queue."""
    if (log.plans and log.arrays is None) or log.queue is None:
        raise ValueError("a log without arrays or queue: see replay.with_arrays")
    counters = {name: getattr(log, name) for name in _COUNTERS}
    # A study that was deleted and imported again is another one, with a log of its own: to other
    # processes (store.heads), and with its reports in their cache.
    counters["config_digest"] = secrets.token_hex(32)
    row, content = inserts.study(log.study, log.config, log.made_at, **counters)
    content["content"] = log.config_text  # as it was written, for the log has its digest
    with store.write() as connection:
        try:
            connection.execute(sa.insert(tables.studies), row | {"title": log.coming.title})
        except IntegrityError:
            raise StudyError(
                f'study "{log.study}" is here already, so nothing was imported: to go back to '
                "this file, delete that study first"
            ) from None
        connection.execute(sa.insert(tables.configs), content)
        _write_plans(connection, log)
        epochs = [inserts.epoch(log.study, epoch) for epoch in log.epochs]
        inserts.insert(connection, tables.epochs, epochs)
        duels = _write_duels(connection, log)
        impressions = _write_impressions(connection, log, duels)
        _write_people(connection, log, impressions)
        _write_events(connection, log, duels, impressions)
        _check_missing(connection, log)


def _write_plans(connection: Connection, log: StudyLog) -> None:
    made = [
        vars(plan) | {"study": log.study, "digest": plan.digest or "", "arrays": None}
        for plan in log.plans
    ]
    if log.arrays is not None:
        made[-1]["arrays"] = pack(log.arrays)
    inserts.insert(connection, tables.plans, made)


def _write_duels(connection: Connection, log: StudyLog) -> dict[_Key, int]:
    """Every duel that was shown, and those of the queue; their ids."""
    queue = {(duel.place, duel.purpose): duel for duel in log.queue or ()}
    sides = {key: duel.sides for key, duel in queue.items()}
    given: Counter[_Key] = Counter()
    held: Counter[_Key] = Counter()
    for shown in log.impressions:
        key = (shown.place, shown.purpose)
        sides.setdefault(key, shown.sides)
        if shown.purpose in LEARNT:
            given[key] += shown.outcome in ANSWERS
            held[key] += shown.outcome is None
    keys = sorted(sides)
    made = []
    for key in keys:
        wanted = queue[key].ratings if key in queue else given[key] + held[key]
        made.append(inserts.duel(log.study, *key, sides[key], wanted, given[key], held[key]))
    return dict(zip(keys, inserts.insert_numbered(connection, tables.duels, made), strict=True))


def _write_impressions(connection: Connection, log: StudyLog, duels: dict[_Key, int]) -> list[int]:
    lease = int(1000 * log.now.lease_seconds)
    made = [
        inserts.impression(
            log.study,
            duels[shown.place, shown.purpose],
            shown.annotator,
            shown.session,
            shown.shown_at,
            lease,
            **{name: getattr(shown, name) for name in inserts.OF_ANSWERS},
        )
        for shown in log.impressions
    ]
    return inserts.insert_numbered(connection, tables.impressions, made)


def _write_people(connection: Connection, log: StudyLog, impressions: list[int]) -> None:
    answers: Counter[str] = Counter()
    for shown in log.impressions:
        answers[shown.annotator] += shown.outcome in ANSWERS and shown.purpose in LEARNT
    last: dict[str, int] = {}
    for event in log.events:
        if event.kind == "answered" and event.impression is not None:
            shown = log.impressions[event.impression]
            if shown.outcome in ANSWERS:
                last[shown.annotator] = impressions[event.impression]
    made = [
        inserts.annotator(
            log.study,
            person.name,
            person.joined_at,
            practised=person.practised,
            answers=answers[person.name],
            repeats=person.repeats,
            last=last.get(person.name),
            **{name: getattr(person, name) or None for name in inserts.OF_PEOPLE},
        )
        for person in log.annotators
    ]
    inserts.insert(connection, tables.annotators, made)


def _write_events(
    connection: Connection, log: StudyLog, duels: dict[_Key, int], impressions: list[int]
) -> None:
    made: list[inserts.Row] = []
    before: str | None = None
    for seq, event in enumerate(log.events, start=1):
        about: dict[str, Any] = {"outcome": event.outcome, "body": event.body}
        about |= {"annotator": event.annotator, "salt": event.salt, "sealed": event.sealed}
        if event.impression is not None:
            shown = log.impressions[event.impression]
            about["impression"] = impressions[event.impression]
            about["duel"] = duels[shown.place, shown.purpose]
        made.append(inserts.event(log.study, seq, event.at, event.kind, before, **about))
        before = made[-1]["chain"]
    inserts.insert(connection, tables.events, made)
    s = tables.studies.c
    last = sa.update(tables.studies).where(s.id == log.study)
    changes = ["", *(row["chain"] for row in made if row["kind"] in CHANGES)]
    links = {"changes_chain": changes[log.changes], "in_force_chain": changes[log.in_force]}
    connection.execute(last.values(chain=before, **links))


def _check_missing(connection: Connection, log: StudyLog) -> None:
    d = tables.duels.c
    query = sa.select(sa.func.coalesce(sa.func.sum(d.ratings - d.given), 0)).where(
        d.study == log.study, d.episode == log.episode, d.purpose.in_(LEARNT)
    )
    missing = int(connection.execute(query).scalar_one())
    if missing != log.asked - log.given:
        raise StudyError(
            f"study.json: {log.asked - log.given} ratings are missing by its count, "
            f"{missing} by duels.csv"
        )
