"""The rows of a study in the database, compared with its log."""

import hashlib

import sqlalchemy as sa

from dopl_core.studies.model.config_json import digest_of
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.replay.consistency import OTHER_CONFIG
from dopl_core.studies.store import tables
from dopl_core.studies.store.study_reader import StudyReader

_COUNTERS = ("status", "seq", "heard", "episode", "epoch", "changes", "in_force")


def check_rows(reader: StudyReader, log: StudyLog) -> None:
    """Refuse a study whose rows say something else than its log."""
    _check_study(reader, log)
    _check_config(reader, log)
    _check_photos(reader, log)


def _check_study(reader: StudyReader, log: StudyLog) -> None:
    expected = {name: getattr(log, name) for name in _COUNTERS} | {"title": log.coming.title}
    for name, value in expected.items():
        if getattr(reader.row, name) != value:
            raise LogError(f'the row of the study has another {name} than the log: "{value}"')


def _check_config(reader: StudyReader, log: StudyLog) -> None:
    """Of studies from before schema 11, which were written anew where they were imported.

    The row of an imported study has another digest. Of later ones, consistency.py compares.
    """
    made = [body_of(event).config for event in log.events if event.kind == "made"]
    if reader.row.config_digest in made and digest_of(log.config_text) not in made:
        raise LogError(OTHER_CONFIG)


def check_duels(reader: StudyReader) -> None:
    """Refuse events about other duels than those that were shown."""
    e, i = tables.events.c, tables.impressions.c
    other = (
        sa.select(e.seq)
        .join_from(tables.events, tables.impressions, e.impression == i.id, isouter=True)
        .where(e.study == reader.id, e.impression.is_not(None))
        .where(sa.or_(i.id.is_(None), i.study != e.study, i.duel != e.duel, e.duel.is_(None)))
    )
    if (seq := reader.connection.execute(other.limit(1)).scalar()) is not None:
        raise LogError(f"event {seq} is about another duel than what was shown")


def _check_photos(reader: StudyReader, log: StudyLog) -> None:
    """Photos are those that were added last; bundles do not have them."""
    added: dict[str, str] = {}
    for event in log.events:
        if event.kind == "photos_added":
            added |= body_of(event).photos
        elif event.kind == "photos_removed":
            added = {}
    p = tables.photos.c
    kept = sa.select(p.arm, p.content).where(p.study == reader.id)
    for arm, content in reader.connection.execute(kept):
        if hashlib.sha256(content).hexdigest() != added.get(arm):
            raise LogError(f'the photo of "{arm[:80]}" is not the one that was added')
