"""The CSV files of a bundle: their columns, their rows as text, and what a row read back says.

Arms go by their owner's ids, states by their labels, times are UTC.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import numpy as np

from dopl_core.environments import brief
from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.planning import ENGINES
from dopl_core.studies import csvtext
from dopl_core.studies.config import StudyConfig, check_participant
from dopl_core.studies.config_json import read_json
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.history import (
    Event,
    History,
    Impression,
    Move,
    PlanMade,
    corrected,
    state_number,
)
from dopl_core.studies.rows import to_text
from dopl_core.studies.vocabulary import ANSWERS, EVENTS, OUTCOMES, PURPOSES, SOURCES

FIRST_DUELS = (
    *("study", "session", "annotator", "episode", "epoch", "duel"),
    *("left_arm", "left_state", "right_arm", "right_state", "purpose"),
    *("outcome", "winner_arm", "loser_arm", "shown_at", "answered_at", "response_ms"),
    *("confidence", "plan"),
)
DUELS = (*FIRST_DUELS, "trip_ms", "narrow", "participant")
FIRST_TRANSITIONS = (
    *("study", "episode", "epoch", "arm", "state", "activated", "next_state", "source"),
)
TRANSITIONS = (*FIRST_TRANSITIONS, "listed", "by_lot", "corrected_at", "reported")
EVENT_COLUMNS = ("study", "seq", "at", "kind", "annotator", "impression", "outcome", "body")
PLANS = (
    *("study", "plan", "made_at", "engine", "value", "random_value", "multiplier", "changed"),
    *("answers", "seconds", "digest"),
)

HISTORY = "history.csv"  # past records, as they were given

Value = str | int | float | None
Cells = dict[str, str]
Rows = Iterable[tuple[int, Cells]]  # with their numbers as a spreadsheet shows them

LARGEST_NUMBER = 2**31 - 1  # that the databases count to

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_800_000  # the year 10,000, in which four digits are not enough

csv.field_size_limit(1 << 28)  # the list of a week is one cell; what a file holds is bounded


def iso(milliseconds: int | None) -> str | None:
    """A time as UTC ISO 8601, to the millisecond."""
    if milliseconds is None:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def milliseconds(text: Any) -> int:
    """The time that `iso` wrote."""
    if not isinstance(text, str):
        raise ValueError(f"time is {brief(text)}: UTC needed, as 2026-01-31T12:00:00.000Z")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f'time "{text}" has no zone: UTC needed, as 2026-01-31T12:00:00.000Z')
    since = (moment - _EPOCH) // timedelta(milliseconds=1)
    if not 0 <= since < _LATEST:
        raise ValueError(f'time "{text}" is not between 1970 and 9999')
    return since


# --- duels.csv: one row an impression, in the order they were shown; epochs count from 0


def duel_rows(
    study: str, config: StudyConfig, impressions: Iterable[Impression]
) -> Iterator[tuple[Value, ...]]:
    """Rows of duels.csv; winner and loser are empty for ties and skips."""
    arms, labels = [arm.id for arm in config.arms], [state.label for state in config.states]
    for shown in impressions:
        left, right = arms[shown.sides[0]], arms[shown.sides[2]]
        won, lost = _winner_and_loser(shown.outcome, left, right)
        yield (
            *(study, shown.session, shown.annotator, *shown.place),
            *(left, labels[shown.sides[1]], right, labels[shown.sides[3]], shown.purpose),
            *(shown.outcome, won, lost, iso(shown.shown_at), iso(shown.answered_at)),
            *(shown.response_ms, config.confidence, shown.place[0]),
            *(shown.trip_ms, shown.narrow, shown.participant),
        )


def read_duels(rows: Rows, study: str, config: StudyConfig) -> list[Impression]:
    """The impressions of duels.csv."""
    return [_checked("duels.csv", number, _impression, row, study, config) for number, row in rows]


def _impression(row: Cells, study: str, config: StudyConfig) -> Impression:
    _same("study", row["study"], study)
    left, right = config.arm_number(row["left_arm"]), config.arm_number(row["right_arm"])
    if left == right:
        raise ValueError("an arm is asked about against itself")
    outcome = row["outcome"] or None
    _one_of("outcome", row["outcome"], ("", *OUTCOMES))
    _one_of("purpose", row["purpose"], PURPOSES)
    _one_of("narrow", row.get("narrow", ""), ("", "0", "1"))
    won, lost = _winner_and_loser(outcome, row["left_arm"], row["right_arm"])
    _same("winner_arm", row["winner_arm"], won or "")
    _same("loser_arm", row["loser_arm"], lost or "")
    if outcome in ANSWERS and not row["answered_at"]:
        raise ValueError("answered_at is empty")
    _same("confidence", row["confidence"], config.confidence)
    _same("plan", row["plan"], row["episode"])
    left_state, right_state = (config.state_number(row[f"{s}_state"]) for s in ("left", "right"))
    return Impression(
        annotator=row["annotator"],
        session=_whole(row, "session"),
        place=(_whole(row, "episode"), _whole(row, "epoch"), _whole(row, "duel")),
        purpose=row["purpose"],
        sides=(left, left_state, right, right_state),
        outcome=outcome,
        shown_at=milliseconds(row["shown_at"]),
        answered_at=milliseconds(row["answered_at"]) if row["answered_at"] else None,
        response_ms=_whole_or_none(row, "response_ms"),
        trip_ms=_whole_or_none(row, "trip_ms"),
        narrow=_whole_or_none(row, "narrow"),
        participant=check_participant(row.get("participant", "")),
    )


def _winner_and_loser(outcome: str | None, left: str, right: str) -> tuple[str | None, str | None]:
    return {"left": (left, right), "right": (right, left)}.get(outcome or "", (None, None))


# --- transitions.csv: one row an arm and epoch; an epoch still open has no next state


def transition_rows(history: History) -> Iterator[tuple[Value, ...]]:
    """Rows of transitions.csv, as they are known to have been; unknown states are empty.

    activated: really helped;  listed: on the list;  by_lot: on it by a lot
    corrected_at: when it was last corrected
    reported: JSON of what was said at first, where a correction has changed it
    """
    config, times = history.coming, _corrected_at(history)
    labels = [state.label for state in config.states] + [None]  # UNKNOWN is -1
    fixed = corrected(history.moves, (body for _, body in history.corrections), config)
    for week, (said, move) in enumerate(zip(history.moves, fixed, strict=True), start=1):
        present = history.configs[move.episode].present
        listed, acted = set(move.arms.tolist()), set(move.acted.tolist())
        drawn = set(move.by_lot.tolist())
        for n in np.flatnonzero(present).tolist():
            cells = _cells(move, n, labels, acted)
            first = _cells(said, n, labels, set(said.acted.tolist()))
            differ = {name: first[name] for name in first if first[name] != cells[name]}
            yield (
                *(history.study, move.episode, move.epoch, config.arms[n].id),
                *(cells["state"], cells["activated"], cells["next_state"], move.source),
                *(int(n in listed), int(n in drawn), iso(times.get((week, n)))),
                json.dumps(differ, ensure_ascii=False, sort_keys=True) if differ else None,
            )


def _cells(move: Move, n: int, labels: list[str | None], acted: set[int]) -> dict[str, Value]:
    after = None if move.next_states is None else labels[move.next_states[n]]
    return {"state": labels[move.states[n]], "activated": int(n in acted), "next_state": after}


def _corrected_at(history: History) -> dict[tuple[int, int], int]:
    """When the row of a week and an arm was last corrected."""
    times = {}
    for at, body in history.corrections:
        week = int(body["week"])
        for name in body["states"]:
            times[week + 1, history.coming.arm_number(name)] = at
        for name in (*body["states"], *body["helped"]):
            times[week, history.coming.arm_number(name)] = at
    return times


def read_transitions(
    rows: Rows, study: str, configs: Mapping[int, StudyConfig], follows: bool
) -> list[Move]:
    """The epochs of transitions.csv; configs: those of each plan.

    follows: nothing was corrected, so that an arm is where it was last reported to be
    """
    moves: list[Move] = []
    for _, block in groupby(rows, key=lambda row: (row[1]["episode"], row[1]["epoch"])):
        before = moves[-1] if moves and follows else None
        moves.append(_read_epoch(list(block), study, configs, before))
    return moves


def _read_epoch(
    block: list[tuple[int, Cells]],
    study: str,
    configs: Mapping[int, StudyConfig],
    before: Move | None,
) -> Move:
    name, number = "transitions.csv", block[0][0]
    episode = _checked(name, number, _whole, block[0][1], "episode")
    config = configs.get(episode)
    if config is None:
        raise CsvError(f"{name} row {number}: there is no plan {episode} in plans.csv")
    here = np.flatnonzero(config.present).tolist()
    if len(block) != len(here):
        raise CsvError(f"{name} row {block[-1][0]}: the epoch has {len(block)} of {len(here)} arms")
    move: Move = _checked(name, number, _move, block, study, config, here, before)
    return move


def _move(
    block: list[tuple[int, Cells]],
    study: str,
    config: StudyConfig,
    here: list[int],
    before: Move | None,
) -> Move:
    first = block[0][1]
    reported = first["source"] != ""
    shared = {name: first[name] for name in ("episode", "epoch", "source")} | {"study": study}
    states, next_states = (np.full(config.n_arms, UNKNOWN) for _ in range(2))
    listed, acted, drawn = [], [], []
    for n, (number, row) in zip(here, block, strict=True):
        try:
            for name, value in (shared | {"arm": config.arms[n].id}).items():
                _same(name, row[name], value)
            said = _as_reported(row)
            for mark in ("activated", "listed", "by_lot"):
                _one_of(mark, said.get(mark, "0"), ("0", "1"))
            states[n] = state_number(config, said["state"])
            next_states[n] = state_number(config, said["next_state"])
            listed += [n] if said.get("listed", said["activated"]) == "1" else []
            acted += [n] if said["activated"] == "1" else []
            drawn += [n] if said.get("by_lot") == "1" else []
            if not reported and said["next_state"]:
                raise ValueError("there is a next_state, and no source that says it")
            _check_follows(config, said, n, before)
        except ValueError as error:
            raise CsvError(f"transitions.csv row {number}: {reason(error)}") from None
    if len(listed) != config.budget:
        raise ValueError(f"{len(listed)} arms are activated, the budget is {config.budget}")
    _one_of("source", first["source"], SOURCES if reported else ("",))
    return Move(
        episode=_whole(first, "episode"),
        epoch=_whole(first, "epoch"),
        states=states,
        arms=np.array(listed, dtype=np.int64),
        next_states=next_states if reported else None,
        source=first["source"] or None,
        helped=np.array(acted, dtype=np.int64) if reported and acted != listed else None,
        by_lot=np.array(drawn, dtype=np.int64),
    )


def _as_reported(row: Cells) -> Cells:
    """The cells as they were reported at first, before any correction."""
    first = read_json(row.get("reported") or "{}")
    if not isinstance(first, dict) or not first.keys() <= {"state", "activated", "next_state"}:
        raise ValueError("reported is not what was said of state, activated and next_state")
    for name, value in first.items():
        if not isinstance(value, str | int | None):
            raise ValueError(f"reported: {name} is {brief(value)}")
    return row | {name: "" if value is None else str(value) for name, value in first.items()}


def _check_follows(config: StudyConfig, said: Cells, n: int, before: Move | None) -> None:
    """Where nothing was corrected, an arm is where it was last reported to be."""
    if before is None or before.next_states is None or n >= len(before.next_states):
        return
    if before.next_states[n] != UNKNOWN:
        _same("state", said["state"], config.states[before.next_states[n]].label)


# --- events.csv: the log, one row an event


def event_rows(history: History) -> Iterator[tuple[Value, ...]]:
    """Rows of events.csv; `impression` is the number of a row of duels.csv, from 1."""
    for seq, event in enumerate(history.events, start=1):
        shown = None if event.impression is None else event.impression + 1
        body = event.body
        if event.kind == "history_added":
            body = json.dumps(event.content | {"records": HISTORY}, ensure_ascii=False)
        yield (
            *(history.study, seq, iso(event.at), event.kind, event.annotator, shown),
            *(event.outcome, body),
        )


def read_events(rows: Rows, study: str, history: str | None) -> list[Event]:
    """The log; history: the text of history.csv, where there is one."""
    return [
        _checked("events.csv", number, _event, row, study, seq, history)
        for seq, (number, row) in enumerate(rows, start=1)
    ]


def _event(row: Cells, study: str, seq: int, history: str | None) -> Event:
    _same("study", row["study"], study)
    _same("seq", row["seq"], str(seq))
    _one_of("kind", row["kind"], tuple(EVENTS))
    _one_of("outcome", row["outcome"], ("", *OUTCOMES))
    shown = _whole(row, "impression") - 1 if row["impression"] else None
    body = row["body"] or None
    content = read_json(body or "{}")
    if not isinstance(content, dict):
        raise ValueError("body is not a JSON object")
    if row["kind"] == "history_added":
        if history is None:
            raise ValueError(f"{HISTORY} is missing")
        body = to_text(content | {"records": history})
    return Event(
        at=milliseconds(row["at"]),
        kind=row["kind"],
        annotator=row["annotator"] or None,
        impression=shown,
        outcome=row["outcome"] or None,
        body=body,
    )


# --- plans.csv: one row a plan


def plan_rows(study: str, plans: Iterable[PlanMade]) -> Iterator[tuple[Value, ...]]:
    """Rows of plans.csv; `digest` is of all arrays of the plan."""
    for plan in plans:
        cells = vars(plan) | {"study": study, "made_at": iso(plan.made_at)}
        yield tuple(cells[name] for name in PLANS)


def read_plans(rows: Rows, study: str) -> list[PlanMade]:
    """The rows of plans.csv."""
    plans: list[PlanMade] = []
    for number, row in rows:
        plans.append(_checked("plans.csv", number, _plan, row, study, len(plans) + 1))
    return plans


def _plan(row: Cells, study: str, expected: int) -> PlanMade:
    _same("study", row["study"], study)
    _same("plan", row["plan"], str(expected))
    _one_of("engine", row["engine"], ENGINES)
    return PlanMade(
        plan=expected,
        made_at=milliseconds(row["made_at"]),
        engine=row["engine"],
        value=_number(row, "value"),
        random_value=_number(row, "random_value"),
        multiplier=_number(row, "multiplier"),
        changed=_number(row, "changed"),
        answers=_whole(row, "answers"),
        seconds=_number(row, "seconds"),
        digest=row.get("digest") or None,
    )


# --- what their readers share


def read_rows(content: bytes, name: str, expected: tuple[str, ...]) -> Iterator[tuple[int, Cells]]:
    """The rows of a file with the columns that it must have, one by one.

    So the first row that is wrong ends the reading, however many there are.
    """
    if b"\0" in content:
        csvtext.decode(content, name)  # says what is wrong with it, and where
    separator = max(",;\t", key=content[:1000].partition(b"\n")[0].decode(errors="replace").count)
    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    rows = enumerate(csv.reader(lines, delimiter=separator, strict=True), start=1)
    try:
        _, columns = next(rows, (1, []))
        if not columns:
            raise CsvError(f"{name} is empty: a row of column names needed")
        if tuple(column.strip() for column in columns) != expected:
            raise CsvError(f"{name} row 1: the columns are not {', '.join(expected)}")
        for number, row in rows:
            if not any(row):
                continue
            if len(row) != len(expected):
                raise CsvError(f"{name} row {number}: {len(row)} cells, {len(expected)} columns")
            yield number, dict(zip(expected, map(csvtext.unquote, row), strict=True))
    except csv.Error as error:
        raise CsvError(f"{name}: not a CSV file: {error}") from None
    except UnicodeDecodeError:
        csvtext.decode(content, name)
        raise


def _checked(name: str, number: int, read: Callable[..., Any], *given: Any) -> Any:
    """What a row says, or the file, the row and the reason why it cannot be read."""
    try:
        return read(*given)
    except CsvError:
        raise
    except ValueError as error:
        raise CsvError(f"{name} row {number}: {reason(error)}") from None


def reason(error: ValueError) -> str:
    """Why, in a line or two: a cell that is quoted may be as long as a book."""
    said = str(error)
    return said if len(said) < 400 else f"{said[:400]}..."


def _same(what: str, given: str, expected: str) -> None:
    if given != expected:
        raise ValueError(f'{what} is "{given[:80]}", not "{expected[:80]}"')


def _one_of(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f'{what} "{given[:80]}" is not one of {", ".join(allowed)}')


def _whole(row: Cells, column: str) -> int:
    text = row[column]
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > LARGEST_NUMBER:
        raise ValueError(
            f'{column} is "{text[:80]}": a whole number needed, at most {LARGEST_NUMBER}'
        )
    return int(text)


def _whole_or_none(row: Cells, column: str) -> int | None:
    return _whole(row, column) if row.get(column) else None


def _number(row: Cells, column: str) -> float:
    number = float(row[column])
    if not math.isfinite(number):
        raise ValueError(f'{column} is "{row[column][:80]}": a number needed')
    return number
