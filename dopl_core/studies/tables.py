"""The rows of a study as CSV has them: the columns, and how they are read from the database."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies import fold, schema
from dopl_core.studies.config import StudyConfig

DUELS = (
    "study",
    "session",
    "annotator",
    "episode",
    "epoch",
    "duel",
    "left_arm",
    "left_state",
    "right_arm",
    "right_state",
    "purpose",
    "outcome",
    "winner_arm",
    "loser_arm",
    "shown_at",
    "answered_at",
    "response_ms",
    "confidence",
    "plan",
)
TRANSITIONS = (
    "study",
    "episode",
    "epoch",
    "arm",
    "state",
    "activated",
    "next_state",
    "source",
)
PLANS = (
    "study",
    "plan",
    "made_at",
    "engine",
    "value",
    "random_value",
    "multiplier",
    "changed",
    "answers",
    "seconds",
    "digest",
)

Value = str | int | float | None


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


def duel_rows(
    connection: Connection, config: StudyConfig, study: str, annotator: str | None = None
) -> Iterator[tuple[Value, ...]]:
    """The rows of duels.csv, one an impression, in the order they were shown; epochs from 0."""
    d, i = schema.duels.c, schema.impressions.c
    query = (
        sa.select(schema.impressions, *(c for c in d if c.name not in ("id", "study")))
        .join_from(schema.impressions, schema.duels, i.duel == d.id)
        .where(i.study == study)
        .order_by(i.id)
    )
    if annotator is not None:
        query = query.where(i.annotator == annotator)
    arms, labels = [arm.id for arm in config.arms], [state.label for state in config.states]
    for row in connection.execute(query):
        left, right = arms[row.left_arm], arms[row.right_arm]
        winner, loser = {"left": (left, right), "right": (right, left)}.get(
            row.outcome, (None, None)
        )
        yield (
            study,
            row.session,
            row.annotator,
            row.episode,
            row.epoch,
            row.number,
            left,
            labels[row.left_state],
            right,
            labels[row.right_state],
            row.purpose,
            row.outcome,
            winner,
            loser,
            iso(row.shown_at),
            iso(row.answered_at),
            row.response_ms,
            config.confidence,
            row.episode,
        )


def transition_rows(
    connection: Connection, config: StudyConfig, study: str
) -> Iterator[tuple[Value, ...]]:
    """The rows of transitions.csv, one an arm and epoch; an epoch still open has no next state."""
    e = schema.epochs.c
    labels = [state.label for state in config.states]
    query = sa.select(schema.epochs).where(e.study == study).order_by(e.episode, e.epoch)
    for row in connection.execute(query):
        states = fold.bytes_states(row.states).tolist()
        active = set(fold.bytes_arms(row.arms).tolist())
        known = row.next_states is not None
        after = fold.bytes_states(row.next_states).tolist() if known else []
        for n, arm in enumerate(config.arms):
            yield (
                study,
                row.episode,
                row.epoch,
                arm.id,
                labels[states[n]],
                int(n in active),
                labels[after[n]] if known else None,
                row.source,
            )


def plan_rows(connection: Connection, study: str) -> Iterator[tuple[Value, ...]]:
    """The rows of plans.csv; `digest` is of the plan's arrays, `changed` and more see insights."""
    p = schema.plans.c
    query = sa.select(*(p[name] for name in PLANS)).where(p.study == study).order_by(p.plan)
    for row in connection.execute(query):
        values = row._asdict() | {"made_at": iso(row.made_at)}
        yield tuple(values[name] for name in PLANS)
