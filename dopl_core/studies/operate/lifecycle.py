"""Making, listing, pausing, closing and deleting studies."""

import re
import secrets
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from msgspec import to_builtins

from dopl_core.learning.learner import Learner
from dopl_core.learning.reproducibility import MATHS, fingerprint
from dopl_core.studies.collect.limits import check_limits
from dopl_core.studies.collect.practice import practice_duels
from dopl_core.studies.model.config_changes import Change
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import AnswersAdded, HistoryAdded, Made, ProtocolFixed
from dopl_core.studies.model.event_kinds import apply
from dopl_core.studies.model.log_values import Event
from dopl_core.studies.model.past_answers import PastAnswers, read_answers
from dopl_core.studies.model.past_records import Records
from dopl_core.studies.model.progress import Progress
from dopl_core.studies.model.protocol import Protocol, check_fits, digest
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.operate.planning import MadePlan, ask, commit_plan, plan_row
from dopl_core.studies.replay.episode import begin, first_round_duels
from dopl_core.studies.replay.known_states import first_states
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.about import about
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.scrub import note_unscrubbed, scrub
from dopl_core.studies.store.study_reader import (
    StudyReader,
    StudyRow,
    prefetch_configs,
    read_study,
    study_row,
)
from dopl_core.studies.store.time_limits import slowly
from dopl_core.studies.store.transaction import StudyTransaction, write_study


@slowly()
def create_study(
    store: Store,
    config: StudyConfig,
    history: Records | None = None,
    answers: PastAnswers | None = None,
    protocol: Protocol | None = None,
) -> str:
    """Make a study with its first duels; its id.

    With a first round, those are its duels and the first plan comes after it. Without one, the
    first plan is made now.
    history: past records, see past_records.read_history
    answers: past answers, see past_answers.read_answers
    protocol: of a trial; it is fixed for ever, before anything else happens
    """
    if protocol is not None:
        check_fits(protocol, config)
    check_limits(config, {})
    given = [] if history is None else [_past(history)]
    given += [] if answers is None else [_past_answers(answers)]
    now, learner = _folded(config, given)
    study = f"{_slug(config.title)}-{secrets.token_hex(3)}"
    row, content = inserts.study(study, config, store.now())
    episode = None if config.sitting else begin(now, learner, first_states(now))
    plan = None if episode is None else plan_row(episode)
    with store.write() as connection:
        connection.execute(sa.insert(tables.studies), row)
        connection.execute(sa.insert(tables.configs), content)
        tx = StudyTransaction(store, connection, study_row(connection, study))
        tx.append("made", _made(row))
        if protocol is not None:
            tx.append("protocol_fixed", ProtocolFixed(protocol, digest(protocol)))
        for kind, body in given:
            tx.append(kind, body)
        if config.practice:
            ask(tx, (0, 0), practice_duels(config), "practice")
        if episode is None or plan is None:
            tx.row.asked = ask(tx, (0, 0), first_round_duels(config), "sitting")
        else:
            commit_plan(tx, MadePlan(episode, plan, tx.row.seq))
        tx.write_back()
    return study


def _made(row: inserts.Row) -> Made:
    """row: of the table of studies"""
    named = about(row["id"], row["made_at"])
    return Made(config=row["config_digest"], maths=MATHS, arithmetic=fingerprint(), about=named)


def _past(history: Records) -> Change:
    return "history_added", HistoryAdded(history.text, history.moves)


def _past_answers(answers: PastAnswers) -> Change:
    return "answers_added", AnswersAdded(answers.text, answers.count)


def learner_with_past(config: StudyConfig, history: Records | None) -> tuple[StudyConfig, Learner]:
    """The configuration and the learner of a new study that is given past records."""
    return _folded(config, [] if history is None else [_past(history)])


def _folded(config: StudyConfig, given: list[Change]) -> tuple[StudyConfig, Learner]:
    """The configuration and the learner of a new study, after events."""
    progress = Progress(config, [], ())
    for kind, body in given:
        apply(progress, Event(0, kind, body=inserts.to_text(to_builtins(body))))
    progress.count()
    return progress.config, progress.learner


def add_history(store: Store, study: str, history: Records) -> None:
    """Add past records to a study that has no plan yet."""
    with write_study(store, study) as tx:
        if tx.row.episode:
            raise StudyError(
                f'study "{study}" has its first plan: past records are given before it, when the '
                "study is made or during its first round"
            )
        if any(kind == "history_added" for kind, _ in tx.changes):
            raise StudyError(f'study "{study}" has past records already')
        tx.append(*_past(history))


def add_answers(
    store: Store, study: str, source: Path | bytes, name: str = "answers.csv"
) -> PastAnswers:
    """Add the past answers of a file to a study that has no plan yet; what was found in it.

    The states that answers are about come from the past records that the study has by now, and
    from its roster; see past_answers.
    """
    with write_study(store, study) as tx:
        if tx.row.episode:
            raise StudyError(
                f'study "{study}" has its first plan: past answers are given before it, when the '
                "study is made or during its first round"
            )
        e = tables.events.c
        added = sa.select(e.seq).where(e.study == study, e.kind == "answers_added")
        if tx.connection.execute(added).first() is not None:
            raise StudyError(f'study "{study}" has past answers already')
        records = [body.records for _, body in tx.changes if isinstance(body, HistoryAdded)]
        found = read_answers(source, tx.next_config, records[0] if records else None, name)
        tx.append(*_past_answers(found))
    return found


@dataclass(frozen=True)
class Study:
    """A study at a glance.

    status: running, paused or closed;  episode, epoch: plan number, and epochs known to be over
    asked, given: ratings that the present round asks for, and has
    answers: answers that count, in all
    waits_for: annotators, owner, plan or nobody; real people's lists wait for the first round only
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
    with read_study(store, study) as reader:
        return reader.row.seq


def list_studies(store: Store) -> list[Study]:
    """All studies that can be read, the newest first."""
    return [one for one in _glances(store) if isinstance(one, Study)]


def list_unreadable(store: Store) -> list[Unreadable]:
    """The others: they can only be deleted, and take no other study down."""
    return [one for one in _glances(store) if isinstance(one, Unreadable)]


def coming_config(store: Store, study: str) -> StudyConfig:
    """The configuration with all changes, which holds from the next list on."""
    with read_study(store, study) as reader:
        return reader.next_config


def pause_study(store: Store, study: str) -> None:
    """Show no new duels for now; answers to those already shown still count."""
    _set_status(store, study, "paused")


def reopen_study(store: Store, study: str) -> None:
    """Go on after a pause or a close."""
    _set_status(store, study, "running")


def close_study(store: Store, study: str) -> None:
    """Ask and plan no more; everything stays, and the study can be opened again."""
    _set_status(store, study, "closed")


@slowly()
@slowly()
def delete_study(store: Store, study: str) -> None:
    """Remove a study and everything about it, for ever, from the files of the database, too."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        connection.execute(sa.delete(tables.studies).where(tables.studies.c.id == study))
        connection.execute(sa.delete(tables.members).where(tables.members.c.study == study))
        note_unscrubbed(connection, store.now())
    scrub(store)


def _set_status(store: Store, study: str, status: str) -> None:
    words = {"paused": "paused", "running": "reopened", "closed": "closed"}
    with write_study(store, study) as tx:
        if tx.row.status != status:
            tx.row.status = status
            tx.append(words[status])


def _glances(store: Store, study: str | None = None) -> list[Study | Unreadable]:
    """All studies, or one, in two queries however many there are."""
    s, a = tables.studies.c, tables.annotators.c
    people, answers = sa.func.count(a.name), sa.func.coalesce(sa.func.sum(a.answers), 0)
    query = (
        sa.select(*s, people, answers)
        .join_from(tables.studies, tables.annotators, a.study == s.id, isouter=True)
        .group_by(*s)
        .order_by(s.made_at.desc(), s.id)
    )
    if study is not None:
        query = query.where(s.id == study)
    with store.read() as connection:
        found = [(StudyRow(*row[:-2]), *row[-2:]) for row in connection.execute(query)]
        prefetch_configs(store, connection, [row for row, _, _ in found])
        return [_glance(StudyReader(store, connection, row), *counts) for row, *counts in found]


def _glance(reader: StudyReader, annotators: int, answers: int) -> Study | Unreadable:
    row = reader.row
    try:
        config = reader.config
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
        answers=int(answers),
        annotators=annotators,
        waits_for=_waits_for(reader),
        step=row.planner_step or "",
    )


def _waits_for(reader: StudyReader) -> str:
    if reader.row.status == "closed" or reader.is_over:
        return "nobody"
    if reader.plan_due:
        return "plan"
    has_list = reader.config.world == "observed" and reader.row.episode > 0
    return "owner" if has_list or reader.row.given == reader.row.asked else "annotators"


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:24].strip("-") or "study"
