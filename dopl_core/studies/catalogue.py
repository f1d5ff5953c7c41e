"""Which studies there are and how each stands; pausing, closing and deleting them."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.studies import schema
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.store import Store
from dopl_core.studies.turn import Record, config_of, is_over, is_plan_due, study_row, take_turn


@dataclass(frozen=True)
class Study:
    """A study at a glance.

    status: running, paused or closed;  episode, epoch: plan number, and epochs known to be over
    asked, given: ratings that the present round asks for, and has
    answers: answers that count, in all;  waits_for: annotators, owner, plan, or nobody
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

    @property
    def plan_due(self) -> bool:
        return self.waits_for == "plan"


def get_study(store: Store, study: str) -> Study:
    """One study at a glance."""
    with store.read() as connection:
        return _glance(store, connection, study_row(connection, study))


def list_studies(store: Store) -> list[Study]:
    """All studies, the newest first."""
    with store.read() as connection:
        ids = sa.select(schema.studies.c.id).order_by(
            schema.studies.c.made_at.desc(), schema.studies.c.id
        )
        found = connection.execute(ids).scalars().all()
        return [_glance(store, connection, study_row(connection, study)) for study in found]


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


def _glance(store: Store, connection: Connection, row: Record) -> Study:
    config = config_of(store, connection, row)
    a = schema.annotators.c
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(a.answers), 0))
    people, answers = connection.execute(query.where(a.study == row.id)).one()
    if row.status == "closed" or is_over(row, config):
        waits_for = "nobody"
    elif is_plan_due(row, config):
        waits_for = "plan"
    else:
        waits_for = "annotators" if row.given < row.asked else "owner"
    return Study(
        row.id,
        row.title,
        row.status,
        config,
        row.made_at,
        row.episode,
        row.epoch,
        row.asked,
        row.given,
        int(answers),
        people,
        waits_for,
    )
