"""A history written into a database: the study it came from, ready to go on."""

from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dopl_core.learning.learner import Dopl
from dopl_core.studies import fold, schema
from dopl_core.studies.config import digest_of, learner_of, to_json
from dopl_core.studies.episode import practice_duels
from dopl_core.studies.history import History, Place
from dopl_core.studies.statements import COUNTED
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import Turn, study_row, to_text

_Key = tuple[Place, str]


def write_history(store: Store, history: History, learner: Dopl | None) -> None:
    """Insert a study, all or nothing.

    learner: the replayed one, where the history has no arrays of its own
    """
    arrays = history.arrays if history.arrays is not None else fold.plan_arrays(_planned(learner))
    config = to_json(history.config)
    moves = history.moves
    row = {
        "id": history.study,
        "title": history.config.title,
        "status": history.status,
        "config": config,
        "config_digest": digest_of(config),
        "made_at": history.made_at,
        "seq": 0,
        "heard": 0,
        "episode": history.episode,
        "epoch": sum(m.episode == history.episode and m.next_states is not None for m in moves),
        "asked": history.asked,
        "given": history.given,
    }
    with store.write() as connection:
        try:
            connection.execute(sa.insert(schema.studies), row)
        except IntegrityError:
            raise StudyError(
                f'study "{history.study}" is here already: delete it first, then import'
            ) from None
        turn = Turn(store, connection, study_row(connection, history.study))
        _write_plans(turn, history, arrays)
        _write_epochs(turn, history)
        duels = _write_duels(turn, history, _last_duels(history, arrays))
        impressions = _write_impressions(turn, history, duels)
        _write_annotators(turn, history, impressions)
        _write_events(turn, history, duels, impressions)
        _check_missing(turn, history)
        turn.write_back()


def _planned(learner: Dopl | None) -> Dopl:
    if learner is None:
        raise ValueError("a history without arrays needs its replayed learner")
    return learner


def _last_duels(history: History, arrays: fold.Arrays) -> dict[_Key, tuple[int, ...]]:
    """All duels of the last episode, shown or not, and the practice ones."""
    learner = learner_of(history.config)
    counts = {"visits": learner.visits, "wins": learner.wins, "epoch": np.array(0)}
    learner.restore(arrays | counts)
    if learner.episode != history.episode:
        raise StudyError("arrays.npz is of another plan than the last of plans.csv")
    duels: dict[_Key, tuple[int, ...]] = {}
    if history.config.practice:
        for number, duel in enumerate(practice_duels(history.config).tolist()):
            duels[(0, 0, number), "practice"] = tuple(duel)
    for move in history.moves:
        if move.episode == history.episode:
            learner.epoch = move.epoch
            for number, duel in enumerate(learner.duels(move.states, move.arms).tolist()):
                duels[(move.episode, move.epoch, number), "policy"] = tuple(duel)
    return duels


def _write_plans(turn: Turn, history: History, arrays: fold.Arrays) -> None:
    rows = [{**plan, "study": turn.study, "arrays": None} for plan in history.plans]
    rows[-1]["arrays"] = fold.pack(arrays)
    rows[-1]["digest"] = fold.digest(arrays)
    for row in rows:
        row["digest"] = row["digest"] or ""
    turn.connection.execute(sa.insert(schema.plans), rows)


def _write_epochs(turn: Turn, history: History) -> None:
    rows = []
    for move in history.moves:
        report = history.reports.get((move.episode, move.epoch))
        known = move.next_states is not None
        rows.append(
            {
                "study": turn.study,
                "episode": move.episode,
                "epoch": move.epoch,
                "states": fold.states_bytes(move.states),
                "arms": fold.arms_bytes(move.arms),
                "next_states": fold.states_bytes(move.next_states) if known else None,  # type: ignore[arg-type]
                "source": move.source,
                "columns": None if report is None else to_text(report),
            }
        )
    turn.connection.execute(sa.insert(schema.epochs), rows)


def _write_duels(
    turn: Turn, history: History, last: dict[_Key, tuple[int, ...]]
) -> dict[_Key, int]:
    sides = dict(last)
    given: dict[_Key, int] = {}
    held: dict[_Key, int] = {}
    for shown in history.impressions:
        key = (shown.place, shown.purpose)
        if sides.setdefault(key, shown.duel) != shown.duel:
            raise StudyError(f"duels.csv: {shown.place} is not what the last plan asks")
        if shown.purpose == "policy":
            given[key] = given.get(key, 0) + (shown.outcome in COUNTED)
            held[key] = held.get(key, 0) + (shown.outcome is None)
    rows = []
    for key in sorted(sides):
        (episode, epoch, number), purpose = key
        ratings = 0
        if purpose == "policy":
            now = episode == history.episode
            ratings = history.config.ratings if now else given.get(key, 0)
            ratings = history.closed.get(key[0], ratings)
        rows.append(
            {
                "study": turn.study,
                "episode": episode,
                "epoch": epoch,
                "number": number,
                "purpose": purpose,
                "ratings": ratings,
                "given": given.get(key, 0),
                "held": held.get(key, 0),
                "free": ratings - given.get(key, 0) - held.get(key, 0),
            }
            | dict(zip(_SIDES, sides[key], strict=True))
        )
    return dict(zip(sorted(sides), _insert(turn, schema.duels, rows), strict=True))


_SIDES = ("left_arm", "left_state", "right_arm", "right_state")


def _write_impressions(turn: Turn, history: History, duels: dict[_Key, int]) -> list[int]:
    lease = int(1000 * history.config.lease_seconds)
    rows = [
        {
            "study": turn.study,
            "duel": duels[shown.place, shown.purpose],
            "annotator": shown.annotator,
            "session": shown.session,
            "shown_at": shown.shown_at,
            "expires_at": shown.shown_at + lease,
            "outcome": shown.outcome,
            "answered_at": shown.answered_at,
            "response_ms": shown.response_ms,
        }
        for shown in history.impressions
    ]
    return _insert(turn, schema.impressions, rows)


def _write_annotators(turn: Turn, history: History, impressions: list[int]) -> None:
    answers: dict[str, int] = {}
    last: dict[str, tuple[int, int]] = {}
    for shown, impression in zip(history.impressions, impressions, strict=True):
        name = shown.annotator
        if shown.outcome in COUNTED and shown.answered_at is not None:
            answers[name] = answers.get(name, 0) + (shown.purpose == "policy")
            last[name] = max(last.get(name, (0, 0)), (shown.answered_at, impression))
    rows = [
        {
            **person,
            "study": turn.study,
            "answers": answers.get(person["name"], 0),
            "last": last.get(person["name"], (0, None))[1],
        }
        for person in history.annotators
    ]
    if rows:
        turn.connection.execute(sa.insert(schema.annotators), rows)


def _write_events(
    turn: Turn, history: History, duels: dict[_Key, int], impressions: list[int]
) -> None:
    """The log as far as a bundle tells it, in the order of time; what was undone has no outcome."""
    log: list[tuple[int, int, str, dict[str, Any]]] = [(history.made_at, 0, "made", {})]
    for person in history.annotators:
        log.append((person["joined_at"], 1, "joined", {"annotator": person["name"]}))
    for plan in history.plans:
        body = to_text({"plan": plan["plan"], "engine": plan["engine"]})
        log.append((plan["made_at"], 3, "planned", {"body": body}))
    # When an owner reported is not in the bundle: at the latest when the next plan was made.
    latest = max([plan["made_at"] for plan in history.plans])
    for move in history.moves:
        if move.next_states is not None:
            at = latest
            if move.source == "simulated":
                at = history.plans[move.episode - 1]["made_at"]
            elif move.episode < history.episode:
                at = history.plans[move.episode]["made_at"]
            body = to_text({"episode": move.episode, "epoch": move.epoch, "source": move.source})
            log.append((at, 4 if move.source == "simulated" else 2, "observed", {"body": body}))
    for shown, impression in zip(history.impressions, impressions, strict=True):
        columns = {
            "annotator": shown.annotator,
            "impression": impression,
            "duel": duels[shown.place, shown.purpose],
        }
        log.append((shown.shown_at, 5, "shown", columns))
        if shown.outcome in COUNTED:
            said = columns | {"outcome": shown.outcome}
            log.append((shown.answered_at or shown.shown_at, 6, "answered", said))
        elif shown.outcome is not None:
            log.append((shown.answered_at or shown.shown_at, 6, shown.outcome, columns))
    log.sort(key=lambda entry: entry[:2])
    log.append((turn.now, 7, "imported", {}))
    names = ("annotator", "impression", "duel", "outcome", "body")
    rows = [
        {"study": turn.study, "seq": seq, "at": at, "kind": kind}
        | {name: columns.get(name) for name in names}
        for seq, (at, _, kind, columns) in enumerate(log, start=1)
    ]
    turn.connection.execute(sa.insert(schema.events), rows)
    turn.seq = turn.heard = len(rows)


def _check_missing(turn: Turn, history: History) -> None:
    d = schema.duels.c
    query = sa.select(sa.func.coalesce(sa.func.sum(d.ratings - d.given), 0))
    here = query.where(d.study == turn.study, d.episode == turn.episode, d.purpose == "policy")
    missing = int(turn.connection.execute(here).scalar_one())
    if missing != history.asked - history.given:
        raise StudyError(
            f"study.json: {history.asked - history.given} ratings are missing by its count, "
            f"{missing} by duels.csv"
        )


def _insert(turn: Turn, table: sa.Table, rows: list[dict[str, Any]]) -> list[int]:
    """Insert in order; the new ids, in the same order."""
    if not rows:
        return []
    statement = sa.insert(table).returning(table.c.id, sort_by_parameter_order=True)
    return [int(i) for i in turn.connection.execute(statement, rows).scalars()]
