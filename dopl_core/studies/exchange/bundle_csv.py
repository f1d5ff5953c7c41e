"""The CSV files of a bundle: their columns, their rows as text, and what a row read back says.

Arms go by their owner's ids, states by their labels, times are UTC.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from dopl_core.learning.planning import ENGINES
from dopl_core.studies.model import safe_csv
from dopl_core.studies.model.config_json import read_json
from dopl_core.studies.model.errors import CsvError
from dopl_core.studies.model.event_kinds import KINDS
from dopl_core.studies.model.log_values import (
    Event,
    Impression,
    PlanMade,
    QueuedDuel,
    Reason,
    Sides,
)
from dopl_core.studies.model.names import read_participant
from dopl_core.studies.model.outcomes import ANSWERS, LEARNT, OUTCOMES, PURPOSES
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store.inserts import UNSALTED, to_text
from dopl_core.validation import brief

_SIDES = ("left_arm", "left_state", "right_arm", "right_state")
_ASKED = ("study", "session", "annotator", "episode", "epoch", "duel", *_SIDES, "purpose")
_ANSWER = ("outcome", "winner_arm", "loser_arm", "shown_at", "answered_at", "response_ms")
DUELS_5 = (*_ASKED, *_ANSWER, "confidence", "plan", "trip_ms", "narrow", "participant")
DUELS = (*DUELS_5, "reason_asked", "reason_tags", "reason")  # since version 6
QUEUE = ("study", "episode", "epoch", "duel", "purpose", *_SIDES, "ratings")
EVENTS = ("study", "seq", "at", "kind", "annotator", "impression", "outcome", "body")
SALTS = ("study", "seq", "salt", "sealed")
_VALUES = ("value", "random_value", "multiplier", "changed")
PLANS = ("study", "plan", "made_at", "engine", *_VALUES, "answers", "seconds", "digest")

# Events that carry a table, as it was given: the field that holds its text, and its file.
ATTACHED = {
    "history_added": ("records", "history.csv"),
    "answers_added": ("answers", "answers.csv"),
}

P = ParamSpec("P")
T = TypeVar("T")
Value = str | int | float | None
Cells = dict[str, str]
Rows = Iterable[tuple[int, Cells]]  # with their numbers as a spreadsheet shows them

LARGEST_NUMBER = 2**31 - 1  # that the databases count to

_SALT = re.compile(r"([0-9a-f]{32})?")
_SEALED = re.compile(rf"({UNSALTED})?([0-9a-f]{{64}})?")
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
        asked = (study, shown.session, shown.annotator, *shown.place)
        sides = (left, labels[shown.sides[1]], right, labels[shown.sides[3]])
        answer = (shown.outcome, won, lost, iso(shown.shown_at), iso(shown.answered_at))
        plan = (config.confidence, shown.place[0])
        more = (shown.trip_ms, shown.narrow, shown.participant)
        why: tuple[Value, ...] = (None, None, None)
        if shown.reason is not None:
            why = (1, ", ".join(shown.reason.tags), shown.reason.text)
        yield (*asked, *sides, shown.purpose, *answer, shown.response_ms, *plan, *more, *why)


def read_duels(rows: Rows, study: str, config: StudyConfig) -> list[Impression]:
    """The impressions of duels.csv."""
    return [checked("duels.csv", number, _impression, row, study, config) for number, row in rows]


def _impression(row: Cells, study: str, config: StudyConfig) -> Impression:
    same("study", row["study"], study)
    sides = _sides(row, config)
    outcome = row["outcome"] or None
    one_of("outcome", row["outcome"], ("", *OUTCOMES))
    one_of("purpose", row["purpose"], PURPOSES)
    one_of("narrow", row.get("narrow", ""), ("", "0", "1"))
    won, lost = _winner_and_loser(outcome, row["left_arm"], row["right_arm"])
    same("winner_arm", row["winner_arm"], won or "")
    same("loser_arm", row["loser_arm"], lost or "")
    if outcome in ANSWERS and not row["answered_at"]:
        raise ValueError("answered_at is empty")
    same("confidence", row["confidence"], config.confidence)
    same("plan", row["plan"], row["episode"])
    return Impression(
        annotator=row["annotator"],
        session=whole(row, "session"),
        place=(whole(row, "episode"), whole(row, "epoch"), whole(row, "duel")),
        purpose=row["purpose"],
        sides=sides,
        outcome=outcome,
        shown_at=milliseconds(row["shown_at"]),
        answered_at=milliseconds(row["answered_at"]) if row["answered_at"] else None,
        response_ms=_whole_or_none(row, "response_ms"),
        trip_ms=_whole_or_none(row, "trip_ms"),
        narrow=_whole_or_none(row, "narrow"),
        participant=read_participant(row.get("participant", "")),
        reason=_reason(row),
    )


def _reason(row: Cells) -> Reason | None:
    """The reason in a row; None where none was asked, as in all bundles up to version 5."""
    one_of("reason_asked", row.get("reason_asked", ""), ("", "1"))
    tags, text = row.get("reason_tags", ""), row.get("reason", "")
    if row.get("reason_asked"):
        return Reason(tuple(tags.split(", ")) if tags else (), text)
    same("reason", tags or text, "")
    return None


def queue_rows(
    study: str, config: StudyConfig, queue: Iterable[QueuedDuel]
) -> Iterator[tuple[Value, ...]]:
    """Rows of queue.csv: the practice duels and all duels of the present round."""
    arms, labels = [arm.id for arm in config.arms], [state.label for state in config.states]
    for duel in queue:
        left_arm, left_state, right_arm, right_state = duel.sides
        sides = (arms[left_arm], labels[left_state], arms[right_arm], labels[right_state])
        yield (study, *duel.place, duel.purpose, *sides, duel.ratings)


def read_queue(rows: Rows, study: str, config: StudyConfig) -> list[QueuedDuel]:
    """The duels of queue.csv."""
    return [checked("queue.csv", number, _queued, row, study, config) for number, row in rows]


def _queued(row: Cells, study: str, config: StudyConfig) -> QueuedDuel:
    same("study", row["study"], study)
    one_of("purpose", row["purpose"], (*LEARNT, "practice"))
    place = (whole(row, "episode"), whole(row, "epoch"), whole(row, "duel"))
    return QueuedDuel(place, row["purpose"], _sides(row, config), whole(row, "ratings"))


def _sides(row: Cells, config: StudyConfig) -> Sides:
    left, right = config.arm_number(row["left_arm"]), config.arm_number(row["right_arm"])
    if left == right:
        raise ValueError("an arm is asked about against itself")
    left_state, right_state = (config.state_number(row[f"{s}_state"]) for s in ("left", "right"))
    return left, left_state, right, right_state


def _winner_and_loser(outcome: str | None, left: str, right: str) -> tuple[str | None, str | None]:
    return {"left": (left, right), "right": (right, left)}.get(outcome or "", (None, None))


# --- events.csv: the log, one row an event


def event_rows(log: StudyLog) -> Iterator[tuple[Value, ...]]:
    """Rows of events.csv; `impression` is the number of a row of duels.csv, from 1."""
    for seq, event in enumerate(log.events, start=1):
        shown = None if event.impression is None else event.impression + 1
        body = event.body
        if event.kind in ATTACHED:
            body = to_text(json.loads(body or "{}") | dict([ATTACHED[event.kind]]))
        about = (event.kind, event.annotator, shown, event.outcome, body)
        yield (log.study, seq, iso(event.at), *about)


def read_events(rows: Rows, study: str, attached: Mapping[str, str]) -> list[Event]:
    """The log; attached: the texts of the files in ATTACHED that there are, by name."""
    return [
        checked("events.csv", number, _event, row, study, seq, attached)
        for seq, (number, row) in enumerate(rows, start=1)
    ]


def salt_rows(log: StudyLog) -> Iterator[tuple[Value, ...]]:
    """Rows of salts.csv: one for each event that has a salt, or had one before it was erased."""
    for seq, event in enumerate(log.events, start=1):
        if event.salt or event.sealed:
            yield log.study, seq, event.salt, event.sealed


def with_salts(events: list[Event], rows: Rows, study: str) -> list[Event]:
    """The events with what salts.csv says of them."""
    salted = list(events)
    for number, row in rows:
        seq, salt, sealed = checked("salts.csv", number, _salt, row, study, len(events))
        salted[seq - 1] = replace(events[seq - 1], salt=salt or None, sealed=sealed or None)
    return salted


def _salt(row: Cells, study: str, events: int) -> tuple[int, str, str]:
    same("study", row["study"], study)
    seq = whole(row, "seq")
    if not 1 <= seq <= events:
        raise ValueError(f"event {seq} is not in events.csv")
    if not _SALT.fullmatch(row["salt"]) or not _SEALED.fullmatch(row["sealed"]):
        raise ValueError(f"event {seq} has no such salt or digest")
    if bool(row["salt"]) == bool(row["sealed"]):
        raise ValueError(f"event {seq} has either a salt or a digest of what was erased")
    return seq, row["salt"], row["sealed"]


def _event(row: Cells, study: str, seq: int, attached: Mapping[str, str]) -> Event:
    same("study", row["study"], study)
    same("seq", row["seq"], str(seq))
    one_of("kind", row["kind"], tuple(KINDS))
    one_of("outcome", row["outcome"], ("", *OUTCOMES))
    shown = whole(row, "impression") - 1 if row["impression"] else None
    body = row["body"] or None
    content = read_json(body or "{}")
    if not isinstance(content, dict):
        raise ValueError("body is not a JSON object")
    if row["kind"] in ATTACHED:
        field, file = ATTACHED[row["kind"]]
        if file not in attached:
            raise ValueError(f"{file} is missing")
        body = to_text(content | {field: attached[file]})
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
        plans.append(checked("plans.csv", number, _plan, row, study, len(plans) + 1))
    return plans


def _plan(row: Cells, study: str, expected: int) -> PlanMade:
    same("study", row["study"], study)
    same("plan", row["plan"], str(expected))
    one_of("engine", row["engine"], ENGINES)
    return PlanMade(
        plan=expected,
        made_at=milliseconds(row["made_at"]),
        engine=row["engine"],
        value=_number(row, "value"),
        random_value=_number(row, "random_value"),
        multiplier=_number(row, "multiplier"),
        changed=_number(row, "changed"),
        answers=whole(row, "answers"),
        seconds=_number(row, "seconds"),
        digest=row.get("digest") or None,
    )


# --- what their readers share


def read_rows(content: bytes, name: str, expected: tuple[str, ...]) -> Iterator[tuple[int, Cells]]:
    """The rows of a file with the columns that it must have, one by one.

    So the first row that is wrong ends the reading, however many there are.
    """
    if b"\0" in content:
        safe_csv.decode(content, name)  # says what is wrong with it, and where
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
            yield number, dict(zip(expected, map(safe_csv.unquote, row), strict=True))
    except csv.Error as error:
        raise CsvError(f"{name}: not a CSV file: {error}") from None
    except UnicodeDecodeError:
        safe_csv.decode(content, name)
        raise


def checked(name: str, number: int, read: Callable[P, T], *given: P.args, **options: P.kwargs) -> T:
    """What a row says, or the file, the row and the reason why it cannot be read."""
    try:
        return read(*given, **options)
    except CsvError:
        raise
    except ValueError as error:
        raise CsvError(f"{name} row {number}: {reason(error)}") from None


def reason(error: ValueError) -> str:
    """Why, in a line or two: a cell that is quoted may be as long as a book."""
    said = str(error)
    return said if len(said) < 400 else f"{said[:400]}..."


def same(what: str, given: str, expected: str) -> None:
    if given != expected:
        raise ValueError(f'{what} is "{given[:80]}", not "{expected[:80]}"')


def one_of(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f'{what} "{given[:80]}" is not one of {", ".join(allowed)}')


def whole(row: Cells, column: str) -> int:
    text = row[column]
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > LARGEST_NUMBER:
        raise ValueError(
            f'{column} is "{text[:80]}": a whole number needed, at most {LARGEST_NUMBER}'
        )
    return int(text)


def _whole_or_none(row: Cells, column: str) -> int | None:
    return whole(row, column) if row.get(column) else None


def _number(row: Cells, column: str) -> float:
    number = float(row[column])
    if not math.isfinite(number):
        raise ValueError(f'{column} is "{row[column][:80]}": a number needed')
    return number
