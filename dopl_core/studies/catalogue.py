"""Which studies there are and how each stands; pausing, closing and deleting them."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies import reading, schema
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.reading import (
    Record,
    config_of,
    is_over,
    is_plan_due,
    read_configs,
    study_row,
)
from dopl_core.studies.store import Store, StudyError
from dopl_core.studies.turn import take_turn


@dataclass(frozen=True)
class Study:
    """A study at a glance.

    status: running, paused or closed;  episode, epoch: plan number, and epochs known to be over
    asked, given: ratings that the present round asks for, and has
    answers: answers that count, in all;  waits_for: annotators, owner, plan, or nobody
    step: how far a plan is that takes a while: moves, strengths or plan, else ""
    """

    id: str
    title: str
    status: str
    config: StudyConfig
    made_at: int
    episode: int
    epoch: int
    asked: int
    given: int
    answers: int
    annotators: int
    waits_for: str
    step: str = ""

    @property
    def plan_due(self) -> bool:
        return self.waits_for == "plan"


@dataclass(frozen=True)
class Unreadable:
    """A study whose row in the database was damaged, and how."""

    id: str
    title: str
    why: str


def get_study(store: Store, study: str) -> Study:
    """One study at a glance."""
    found = _glances(store, study)
    if not found:
        raise StudyError(f'there is no study "{study}"')
    if isinstance(found[0], Unreadable):
        raise StudyError(found[0].why)
    return found[0]


def last_event(store: Store, study: str) -> int:
    """The number of the last event: what was read of a study holds as long as it is the same."""
    with store.read() as connection:
        return int(study_row(connection, study).seq)


def list_studies(store: Store) -> list[Study]:
    """All studies that can be read, the newest first."""
    return [one for one in _glances(store) if isinstance(one, Study)]


def list_unreadable(store: Store) -> list[Unreadable]:
    """The others: they can only be deleted, and take no other study down."""
    return [one for one in _glances(store) if isinstance(one, Unreadable)]


def coming_config(store: Store, study: str) -> StudyConfig:
    """The configuration with all changes, which holds from the next list on."""
    with store.read() as connection:
        return reading.coming_config(store, connection, study_row(connection, study))


def pause_study(store: Store, study: str) -> None:
    """Show no new duels for now; answers to those already shown still count."""
    _set_status(store, study, "paused")


def reopen_study(store: Store, study: str) -> None:
    """Go on after a pause or a close."""
    _set_status(store, study, "running")


def close_study(store: Store, study: str) -> None:
    """Ask and plan no more; everything stays, and the study can be opened again."""
    _set_status(store, study, "closed")


def delete_study(store: Store, study: str) -> None:
    """Remove a study and everything about it, for ever."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        connection.execute(sa.delete(schema.studies).where(schema.studies.c.id == study))


def _set_status(store: Store, study: str, status: str) -> None:
    words = {"paused": "paused", "running": "reopened", "closed": "closed"}
    with take_turn(store, study) as turn:
        if turn.status != status:
            turn.status = status
            turn.append(words[status])


def _glances(store: Store, study: str | None = None) -> list[Study | Unreadable]:
    """All studies, or one, in two queries however many there are."""
    s, a = schema.studies.c, schema.annotators.c
    columns = [c for c in s if c.name not in ("planner", "planner_until")]
    people, answers = sa.func.count(a.name), sa.func.coalesce(sa.func.sum(a.answers), 0)
    query = (
        sa.select(*columns, people.label("people"), answers.label("answers"))
        .join_from(schema.studies, schema.annotators, a.study == s.id, isouter=True)
        .group_by(*columns)
        .order_by(s.made_at.desc(), s.id)
    )
    if study is not None:
        query = query.where(s.id == study)
    with store.read() as connection:
        rows = connection.execute(query).all()
        read_configs(store, connection, rows)
        return [_glance(store, connection, row) for row in rows]


def _glance(store: Store, connection: Connection, row: Record) -> Study | Unreadable:
    try:
        config = config_of(store, connection, row)
    except StudyError as error:
        return Unreadable(row.id, row.title, str(error))
    return Study(
        id=row.id,
        title=row.title,
        status=row.status,
        config=config,
        made_at=row.made_at,
        episode=row.episode,
        epoch=row.epoch,
        asked=row.asked,
        given=row.given,
        answers=int(row.answers),
        annotators=row.people,
        waits_for=_waits_for(row, config),
        step=row.planner_step or "",
    )


def _waits_for(row: Record, config: StudyConfig) -> str:
    if row.status == "closed" or is_over(row, config):
        return "nobody"
    if is_plan_due(row, config):
        return "plan"
    return "annotators" if row.given < row.asked else "owner"
