"""The CSV files of a bundle: their columns, their rows as text, and what a row read back says.

Arms go by their owner's ids, states by their labels, times are UTC.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from dopl_core.studies.config import StudyConfig
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.history import Impression, Move, PlanMade
from dopl_core.studies.vocabulary import ANSWERS, OUTCOMES, PURPOSES, SOURCES

DUELS = (
    *("study", "session", "annotator", "episode", "epoch", "duel"),
    *("left_arm", "left_state", "right_arm", "right_state", "purpose"),
    *("outcome", "winner_arm", "loser_arm", "shown_at", "answered_at", "response_ms"),
    *("confidence", "plan"),
)
TRANSITIONS = (*("study", "episode", "epoch", "arm", "state", "activated", "next_state", "source"),)
PLANS = (
    *("study", "plan", "made_at", "engine", "value", "random_value", "multiplier", "changed"),
    *("answers", "seconds", "digest"),
)

Value = str | int | float | None
Cells = dict[str, str]
Rows = list[tuple[int, Cells]]  # with their numbers as a spreadsheet shows them

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(milliseconds: int | None) -> str | None:
    """A time as UTC ISO 8601, to the millisecond."""
    if milliseconds is None:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def milliseconds(text: str) -> int:
    """The time that `iso` wrote."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f'time "{text}" has no zone: UTC needed, as 2026-01-31T12:00:00.000Z')
    return (moment - _EPOCH) // timedelta(milliseconds=1)


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
        )


def read_duels(rows: Rows, columns: list[str], study: str, config: StudyConfig) -> list[Impression]:
    """The impressions of duels.csv."""
    _check_columns("duels.csv", columns, DUELS)
    return [_checked("duels.csv", number, _impression, row, study, config) for number, row in rows]


def _impression(row: Cells, study: str, config: StudyConfig) -> Impression:
    _same("study", row["study"], study)
    left, right = config.arm_number(row["left_arm"]), config.arm_number(row["right_arm"])
    if left == right:
        raise ValueError("an arm is asked about against itself")
    outcome = row["outcome"] or None
    _one_of("outcome", row["outcome"], ("", *OUTCOMES))
    _one_of("purpose", row["purpose"], PURPOSES)
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
        response_ms=_whole(row, "response_ms") if row["response_ms"] else None,
    )


def _winner_and_loser(outcome: str | None, left: str, right: str) -> tuple[str | None, str | None]:
    return {"left": (left, right), "right": (right, left)}.get(outcome or "", (None, None))


# --- transitions.csv: one row an arm and epoch; an epoch still open has no next state


def transition_rows(
    study: str, config: StudyConfig, moves: Iterable[Move]
) -> Iterator[tuple[Value, ...]]:
    """Rows of transitions.csv, in the order of the arms."""
    labels = [state.label for state in config.states]
    for move in moves:
        states, active = move.states.tolist(), set(move.arms.tolist())
        after = None if move.next_states is None else move.next_states.tolist()
        for n, arm in enumerate(config.arms):
            yield (
                *(study, move.episode, move.epoch, arm.id, labels[states[n]], int(n in active)),
                *(None if after is None else labels[after[n]], move.source),
            )


def read_transitions(rows: Rows, columns: list[str], study: str, config: StudyConfig) -> list[Move]:
    """The epochs of transitions.csv: blocks of N rows, in the order of the arms."""
    name, N = "transitions.csv", config.n_arms
    _check_columns(name, columns, TRANSITIONS)
    moves: list[Move] = []
    for start in range(0, len(rows), N):
        block = rows[start : start + N]
        if len(block) < N:
            raise CsvError(f"{name} row {block[-1][0]}: the epoch has {len(block)} of {N} arms")
        before = moves[-1] if moves else None
        moves.append(_checked(name, block[0][0], _move, block, study, config, before))
    return moves


def _move(block: Rows, study: str, config: StudyConfig, before: Move | None) -> Move:
    first = block[0][1]
    known = first["next_state"] != ""
    shared = {name: first[name] for name in ("episode", "epoch", "source")} | {"study": study}
    states, arms, after = [], [], []
    for n, (number, row) in enumerate(block):
        try:
            for name, value in (shared | {"arm": config.arms[n].id}).items():
                _same(name, row[name], value)
            _one_of("activated", row["activated"], ("0", "1"))
            states.append(config.state_number(row["state"]))
            arms += [n] if row["activated"] == "1" else []
            if (row["next_state"] != "") != known:
                raise ValueError("next_state is there for some arms only")
            after.append(config.state_number(row["next_state"]) if known else 0)
            if before is not None and before.next_states is not None:
                _same("state", row["state"], config.states[before.next_states[n]].label)
        except ValueError as error:
            raise CsvError(f"transitions.csv row {number}: {error}") from None
    if len(arms) != config.budget:
        raise ValueError(f"{len(arms)} arms are activated, the budget is {config.budget}")
    _one_of("source", first["source"], SOURCES if known else ("",))
    return Move(
        episode=_whole(first, "episode"),
        epoch=_whole(first, "epoch"),
        states=np.array(states, dtype=np.int64),
        arms=np.array(arms, dtype=np.int64),
        next_states=np.array(after, dtype=np.int64) if known else None,
        source=first["source"] or None,
    )


# --- plans.csv: one row a plan


def plan_rows(study: str, plans: Iterable[PlanMade]) -> Iterator[tuple[Value, ...]]:
    """Rows of plans.csv; `digest` is of all arrays of the plan."""
    for plan in plans:
        cells = vars(plan) | {"study": study, "made_at": iso(plan.made_at)}
        yield tuple(cells[name] for name in PLANS)


def read_plans(rows: Rows, columns: list[str], study: str, with_digest: bool) -> list[PlanMade]:
    """The rows of plans.csv; bundles of version 1 have no digests."""
    _check_columns("plans.csv", columns, PLANS if with_digest else PLANS[:-1])
    plans: list[PlanMade] = []
    for number, row in rows:
        plans.append(_checked("plans.csv", number, _plan, row, study, len(plans) + 1))
    if not plans:
        raise CsvError("plans.csv has no plans: a study begins with one")
    return plans


def _plan(row: Cells, study: str, expected: int) -> PlanMade:
    _same("study", row["study"], study)
    _same("plan", row["plan"], str(expected))
    return PlanMade(
        plan=expected,
        made_at=milliseconds(row["made_at"]),
        engine=row["engine"],
        value=float(row["value"]),
        random_value=float(row["random_value"]),
        multiplier=float(row["multiplier"]),
        changed=float(row["changed"]),
        answers=_whole(row, "answers"),
        seconds=float(row["seconds"]),
        digest=row.get("digest") or None,
    )


# --- what their readers share


def _checked(name: str, number: int, read: Callable[..., Any], *given: Any) -> Any:
    """What a row says, or the file, the row and the reason why it cannot be read."""
    try:
        return read(*given)
    except CsvError:
        raise
    except ValueError as error:
        raise CsvError(f"{name} row {number}: {error}") from None


def _check_columns(name: str, columns: list[str], expected: tuple[str, ...]) -> None:
    if tuple(columns) != expected:
        raise CsvError(f"{name} row 1: the columns are not {', '.join(expected)}")


def _same(what: str, given: str, expected: str) -> None:
    if given != expected:
        raise ValueError(f'{what} is "{given}", not "{expected}"')


def _one_of(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f'{what} "{given}" is not one of {", ".join(allowed)}')


def _whole(row: Cells, column: str) -> int:
    if not row[column].isascii() or not row[column].isdigit():
        raise ValueError(f'{column} is "{row[column]}": a whole number needed')
    return int(row[column])
