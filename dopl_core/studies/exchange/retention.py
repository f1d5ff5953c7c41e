"""Retention: what a study's setting `keep_weeks` says is due, and its erasure."""

from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from dopl_core.studies.exchange.erasing import Erasure, erase_everybody, erase_person
from dopl_core.studies.model.event_kinds import read_body
from dopl_core.studies.model.names import is_erased
from dopl_core.studies.operate.lifecycle import list_studies
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.scrub import scrub
from dopl_core.studies.store.study_reader import StudyReader, read_study

_WEEK = 7 * 24 * 3600 * 1000
_KINDS = ("closed", "arms_left", "erased")
_e = tables.events.c


@dataclass(frozen=True)
class DueErasure:
    """Personal data that a study keeps no longer.

    person: the id of somebody who left; "" for everybody, after the study was closed
    since: when that was, milliseconds since 1970
    """

    study: str
    what: Literal["person", "everybody"]
    person: str
    since: int


def due_erasures(store: Store) -> list[DueErasure]:
    """What is due in all studies, by the settings that hold from the next list on."""
    found: list[DueErasure] = []
    for study in list_studies(store):
        with read_study(store, study.id) as reader:
            if reader.next_config.keep_weeks:
                found += _due(reader)
    return found


def retain(store: Store) -> list[Erasure]:
    """Erase what is due in all studies, and finish erasures that were interrupted."""
    done = [
        erase_person(store, one.study, one.person)
        if one.person
        else erase_everybody(store, one.study)
        for one in due_erasures(store)
    ]
    scrub(store)
    return done


def _due(reader: StudyReader) -> list[DueErasure]:
    config = reader.next_config
    before = reader.now - config.keep_weeks * _WEEK
    query = sa.select(_e.at, _e.kind, _e.body).where(_e.study == reader.id, _e.kind.in_(_KINDS))
    left: dict[str, int] = {}
    closed, everybody = 0, False
    for at, kind, body in reader.connection.execute(query.order_by(_e.seq)):
        if kind == "closed":
            closed, everybody = at, False
        elif kind == "arms_left":
            left |= dict.fromkeys(read_body(kind, body).arms, at)
        else:
            everybody |= read_body(kind, body).what == "everybody"
    if everybody:
        return []
    if reader.row.status == "closed" and closed <= before:
        return [DueErasure(reader.id, "everybody", "", closed)]
    gone = [arm.id for arm in config.arms if not arm.present and not is_erased(arm.id, arm.label)]
    return [
        DueErasure(reader.id, "person", arm, left[arm])
        for arm in gone
        if left.get(arm, reader.now) <= before
    ]
