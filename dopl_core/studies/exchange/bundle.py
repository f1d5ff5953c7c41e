"""A study as a zip of CSV and JSON: a study log written, and read back.

study.json       version of the bundle, configuration, annotators, what owners reported beside
                 states
events.csv       the log: everything that happened, in order; the fields of each kind as JSON
salts.csv        what the digests of events need; where something was erased, digests of it
duels.csv        one row an impression
queue.csv        the practice duels and all duels of the present round, shown or not
transitions.csv  one row an arm and epoch, as corrected by now
plans.csv        one row a plan; `digest` is of all its arrays
history.csv      past records, where there are some
answers.csv      past answers, where there are some
arrays.npz       what the learner held after the last plan
protocol.json, analysis.json, methods.md: of a trial, see trial_files.py; only replay reads them

The same study gives the same bytes. Invites, keys, photos and the browsers of participants stay in
the database. Bundles of version 3 have no queue.csv: what nobody was shown yet is chosen anew.
Up to version 4 there are no salts, up to version 5 no reasons, up to version 6 no first round that
was drawn anew.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Struct, to_builtins

from dopl_core.learning.bandit import Arrays
from dopl_core.studies.exchange import bundle_csv, transitions_csv, version_3
from dopl_core.studies.exchange.bundle_csv import LARGEST_NUMBER, iso, milliseconds, reason
from dopl_core.studies.exchange.bundle_zip import unzip
from dopl_core.studies.model import past_answers, past_records, rules, safe_csv
from dopl_core.studies.model.config_changes import changed
from dopl_core.studies.model.config_json import fields_to_json, from_json, read_json
from dopl_core.studies.model.errors import CsvError, LogError, StudyError
from dopl_core.studies.model.event_bodies import NAMES_REMOVED
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import Epoch, Person
from dopl_core.studies.model.names import check_columns, check_name
from dopl_core.studies.model.study_config import StudyConfig
from dopl_core.studies.model.study_log import StudyLog, changes_in, log_digest
from dopl_core.studies.replay.consistency import check
from dopl_core.studies.store.blobs import digest, pack, shapes, unpack
from dopl_core.validation import brief, convert, text, whole

VERSION = 7
OLDEST = 3

_TABLES = {
    "plans.csv": bundle_csv.PLANS,
    "events.csv": bundle_csv.EVENTS,
    "salts.csv": bundle_csv.SALTS,
    "duels.csv": bundle_csv.DUELS,
    "queue.csv": bundle_csv.QUEUE,
    "transitions.csv": transitions_csv.COLUMNS,
}
_TEXTS = tuple(file for _, file in bundle_csv.ATTACHED.values())
_ARRAYS = "arrays.npz"
_MEMBERS = ("study.json", *_TABLES, *_TEXTS, _ARRAYS)

Count = Annotated[int, whole(0, LARGEST_NUMBER)]
Short = Annotated[str, text(200)]


class PersonJson(Struct, omit_defaults=True):
    """An annotator; see log_values.Person."""

    name: str
    joined_at: str
    practised: bool
    repeats: Count
    link: Short = ""
    participant: Short = ""
    code: Short = ""
    consented: Short = ""


class ReportJson(Struct):
    """Columns that the owner reported at the end of an epoch."""

    episode: Count
    epoch: Count
    columns: dict[str, dict[str, str]]


class StudyJson(Struct, kw_only=True, omit_defaults=True):
    """study.json; closed: in version 3, duels that ask for other ratings than the study.

    names: "removed" in an export without names; the log says so too
    """

    schema: int
    study: str
    status: Literal["running", "paused", "closed"]
    made_at: str
    asked: Count
    given: Count
    log: str
    names: Literal["", "removed"] = ""
    annotators: list[PersonJson]
    closed: list[tuple[Count, Count, Count, Count]] = []
    reports: list[ReportJson]
    config: dict[str, Any]


def write(log: StudyLog, also: Mapping[str, str] | None = None) -> bytes:
    """The zip of a study log that has its last plan's arrays and its queue.

    also: texts for people to read, which nothing reads back
    """
    if (log.plans and log.arrays is None) or log.queue is None:
        raise ValueError("a log without arrays or queue: see replay.with_arrays")
    study = log.study
    rows = {
        "duels.csv": bundle_csv.duel_rows(study, log.coming, log.impressions),
        "queue.csv": bundle_csv.queue_rows(study, log.coming, log.queue),
        "transitions.csv": transitions_csv.rows(log),
        "plans.csv": bundle_csv.plan_rows(study, log.plans),
        "events.csv": bundle_csv.event_rows(log),
    }
    files = {"study.json": _study_json(log)}
    if any(event.salt or event.sealed for event in log.events):
        rows["salts.csv"] = bundle_csv.salt_rows(log)
    files |= {name: safe_csv.write(_TABLES[name], some).encode() for name, some in rows.items()}
    given = {event.kind: event for event in log.events if event.kind in bundle_csv.ATTACHED}
    for kind, (field, file) in bundle_csv.ATTACHED.items():
        if kind in given:
            files[file] = getattr(body_of(given[kind]), field).encode()
    if log.arrays is not None:
        files[_ARRAYS] = pack(log.arrays)
    files |= {name: text.encode() for name, text in (also or {}).items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            # A fixed date: the bytes depend on the study only.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            bundle.writestr(info, content, bundle.compression)
    return buffer.getvalue()


def _study_json(log: StudyLog) -> bytes:
    about = StudyJson(
        schema=VERSION,
        study=log.study,
        status=log.status,  # type: ignore[arg-type]
        made_at=iso(log.made_at) or "",
        asked=log.asked,
        given=log.given,
        log=log_digest(log.events),
        names="removed" if _names_removed(log) else "",
        annotators=[
            PersonJson(**(vars(one) | {"joined_at": iso(one.joined_at) or ""}))
            for one in log.annotators
        ],
        reports=[ReportJson(e.episode, e.epoch, e.columns) for e in log.epochs if e.columns],
        config=json.loads(log.config_text),
    )
    text = json.dumps(to_builtins(about), ensure_ascii=False, indent=1)
    return f"{text}\n".encode()


def _names_removed(log: StudyLog) -> bool:
    made = (body_of(event) for event in log.events if event.kind == "made")
    return any(body.arithmetic == NAMES_REMOVED for body in made)


def read(source: Path | bytes) -> StudyLog:
    """The study log in a bundle; errors name the file, the row and the reason."""
    files = unzip(source, _MEMBERS)
    about = _read_study_json(files["study.json"])
    optional = ("salts.csv",) if about.schema > OLDEST else ("salts.csv", "queue.csv")
    for name in _TABLES:
        if name not in files and name not in optional:
            raise CsvError(f"{name} is missing")
    log = _log(about, files)
    try:
        check(log)
    except (LogError, StudyError) as error:
        raise CsvError(str(error)) from None
    if about.log != log_digest(log.events):
        raise CsvError("events.csv: not the log that was exported, by its digest in study.json")
    if log.plans:
        if log.arrays is None:
            raise CsvError(f"{_ARRAYS} is missing")
        if digest(log.arrays) != log.plans[-1].digest:
            raise CsvError(f"{_ARRAYS}: not the arrays of the last plan in plans.csv")
    if log.queue is None:
        closed = {(k, h, n): ratings for k, h, n, ratings in about.closed}
        log = replace(log, queue=version_3.queue_of(log, closed))
    return log


def _log(about: StudyJson, files: dict[str, bytes]) -> StudyLog:
    study, config = about.study, _config(about)
    tables = _TABLES | ({"duels.csv": bundle_csv.DUELS_5} if about.schema <= 5 else {})
    rows = {
        name: bundle_csv.read_rows(files[name], name, columns)
        for name, columns in tables.items()
        if name in files
    }
    texts = {name: safe_csv.decode(files[name], name) for name in _TEXTS if name in files}
    events = bundle_csv.read_events(rows["events.csv"], study, texts)
    events = bundle_csv.with_salts(events, rows.get("salts.csv", ()), study)
    plans = bundle_csv.read_plans(rows["plans.csv"], study)
    log = StudyLog(
        study=study,
        status=about.status,
        made_at=0,
        config=config,
        config_text=fields_to_json(about.config),
        asked=about.asked,
        given=about.given,
        annotators=[],
        impressions=[],
        epochs=[],
        plans=plans,
        arrays=None,
        queue=None,
        events=events,
    )
    coming = _checked_changes(log)
    impressions = bundle_csv.read_duels(rows["duels.csv"], study, coming)
    epochs = transitions_csv.read(rows["transitions.csv"], log)
    queue = None
    if "queue.csv" in rows:
        queue = bundle_csv.read_queue(rows["queue.csv"], study, coming)
    try:
        log = replace(
            log,
            made_at=milliseconds(about.made_at),
            annotators=_people(about.annotators),
            epochs=_with_reports(epochs, about.reports),
            queue=queue,
            impressions=impressions,
        )
    except ValueError as error:
        raise CsvError(f"study.json: {reason(error)}") from None
    return replace(log, arrays=_arrays(files, log))


def _checked_changes(log: StudyLog) -> StudyConfig:
    """The configuration with all changes, or which change cannot be made."""
    try:
        _check_attached(log)
        log.configs  # noqa: B018  each plan has a configuration
        return log.coming
    except ValueError as error:
        raise CsvError(f"events.csv: a change cannot be made: {reason(error)}") from None


def _check_attached(log: StudyLog) -> None:
    """Refuse past records and past answers that could not have been given."""
    records: str | None = None
    for number, event in enumerate(log.events):
        if event.kind == "history_added":
            records = body_of(event).records
            past_records.read_history(body_of(event).records.encode(), log.config)
        elif event.kind == "answers_added":
            body = body_of(event)
            config = changed(log.config, changes_in(log.events[:number]))
            found = past_answers.read_answers(body.answers.encode(), config, records)
            if (found.text, found.count) != (body.answers, body.count):
                raise CsvError(f"answers.csv: not the {body.count} answers that were exported")


# --- study.json


def _read_study_json(content: bytes) -> StudyJson:
    try:
        data = read_json(safe_csv.decode(content, "study.json"))
    except StudyError as error:
        raise CsvError(f"study.json {reason(error)}") from None
    version = data.get("schema") if isinstance(data, dict) else None
    if type(version) is not int:
        raise CsvError('study.json: "schema", the version of the bundle, is missing')
    if not OLDEST <= version <= VERSION:
        age = "an older" if version < OLDEST else "a newer"
        raise CsvError(
            f"study.json: made by {age} version of dopl (schema {brief(version)}); this program "
            f"reads {OLDEST} to {VERSION}"
        )
    about = convert(data, StudyJson, "study.json", CsvError)
    if not re.fullmatch(r"[a-z0-9-]{1,80}", about.study):
        raise CsvError(f'study.json: study "{about.study[:80]}" is not an id of dopl')
    return about


def _config(about: StudyJson) -> StudyConfig:
    try:
        return from_json(json.dumps(about.config))
    except ValueError as error:
        raise CsvError(f"study.json: {reason(error)}") from None


def _people(content: list[PersonJson]) -> list[Person]:
    people: dict[str, Person] = {}
    for about in content:
        if about.name != check_name(about.name):
            raise ValueError(f'annotators: "{about.name[:80]}" is not a name')
        if about.name in people:
            raise ValueError(f'annotators: "{about.name[:80]}" is there twice')
        known = to_builtins(about) | {"joined_at": milliseconds(about.joined_at)}
        people[about.name] = Person(**known)
    return list(people.values())


def _with_reports(epochs: list[Epoch], content: list[ReportJson]) -> list[Epoch]:
    reports = {(one.episode, one.epoch): one.columns for one in content}
    for columns in reports.values():
        for arm, known in columns.items():
            check_columns(f'reports: "{arm[:80]}"', known)
    reported = {(e.episode, e.epoch) for e in epochs if e.next_states is not None}
    if unknown := reports.keys() - reported:
        raise ValueError(f"reports: epoch {min(unknown)} was not reported")
    return [replace(e, columns=reports.get((e.episode, e.epoch))) for e in epochs]


def read_texts(source: Path | bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Texts for people that a bundle has, of these names."""
    found = unzip(source, ("study.json", *names))
    return {name: found[name] for name in names if name in found}


def _arrays(files: dict[str, bytes], log: StudyLog) -> Arrays | None:
    """What the learner held after the last plan, of the size that the configuration says."""
    if not log.plans or _ARRAYS not in files:
        return None
    try:
        shared = rules.sharing(log.now)
        groups = 0 if shared is None else len(shared.names) - 1
        return unpack(files[_ARRAYS], *shapes(log.now.n_arms, log.now.n_states, groups))
    except ValueError as error:
        raise CsvError(f"{_ARRAYS}: {reason(error)}") from None
