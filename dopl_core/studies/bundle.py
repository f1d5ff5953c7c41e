"""A study as a zip of CSV and JSON: a History written, and read back.

study.json       version of the bundle, configuration, annotators, what owners reported beside
                 states; the configuration's `edition` says which random streams and which maths
events.csv       the log: everything that happened, in order; what came with corrections, people who
                 joined and left, changed settings and lists is in a body of JSON
duels.csv        one row an impression: design's columns; `confidence` and `plan` are those of the
                 learner that asked
transitions.csv  one row an arm and epoch, as corrected by now; see bundle_csv.transition_rows
plans.csv        one row a plan; `digest` is of all its arrays
history.csv      past records, where there are some
arrays.npz       what the learner held after the last plan, so that it need not be made again

The same study gives the same bytes. Invites and keys stay in the database. Version 1 had no arrays,
and no digests of them: its plans are made again when it is read. Versions 1 and 2 had no log and no
editions: all of it is of the first.
"""

import io
import json
import re
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from dopl_core.studies import bundle_csv, csvtext
from dopl_core.studies.arrays import Arrays, digest, pack, unpack
from dopl_core.studies.bundle_csv import iso, milliseconds
from dopl_core.studies.changes import changed
from dopl_core.studies.config import StudyConfig, from_json, to_json
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.history import (
    Event,
    History,
    HistoryError,
    Move,
    Person,
    check,
    configs_of_plans,
    log_digest,
)
from dopl_core.studies.old_logs import log_of_old
from dopl_core.studies.vocabulary import CHANGES, STATUSES

VERSION = 3
LARGEST = 1 << 30  # bytes that a member may unpack to

_EVERY_VERSION = ("study.json", "duels.csv", "transitions.csv", "plans.csv")
_TEXTS = (*_EVERY_VERSION, "events.csv")
_HISTORY = bundle_csv.HISTORY
_ARRAYS = "arrays.npz"


def write(history: History) -> bytes:
    """The zip of a history that has its last plan's arrays."""
    if history.plans and history.arrays is None:
        raise ValueError("a history without arrays: see replay.with_arrays")
    study = history.study
    shown = bundle_csv.duel_rows(study, history.coming, history.impressions)
    tables = {
        "duels.csv": (bundle_csv.DUELS, shown),
        "transitions.csv": (bundle_csv.TRANSITIONS, bundle_csv.transition_rows(history)),
        "plans.csv": (bundle_csv.PLANS, bundle_csv.plan_rows(study, history.plans)),
        "events.csv": (bundle_csv.EVENT_COLUMNS, bundle_csv.event_rows(history)),
    }
    files = {"study.json": _study_json(history).encode()}
    files |= {name: csvtext.write(*table).encode() for name, table in tables.items()}
    if history.records is not None:
        files[_HISTORY] = history.records.encode()
    if history.arrays is not None:
        files[_ARRAYS] = pack(history.arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            # A fixed date: the bytes depend on the study only.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            bundle.writestr(info, content, bundle.compression)
    return buffer.getvalue()


def read(source: Path | bytes) -> History:
    """What a bundle holds; refused with the file, the row and the reason."""
    files = _unzip(source)
    about = _about(files["study.json"])
    for name in _EVERY_VERSION if about["schema"] < 3 else _TEXTS:
        if name not in files:
            raise CsvError(f"{name} is missing")
    history = _history(about, files)
    try:
        check(history)
    except HistoryError as error:
        raise CsvError(str(error)) from None
    if about["schema"] > 2 and about.get("log") != log_digest(history.events):
        raise CsvError("events.csv: not the log that was exported, by its digest in study.json")
    if about["schema"] > 1 and history.plans:
        if history.arrays is None:
            raise CsvError(f"{_ARRAYS} is missing")
        if digest(history.arrays) != history.plans[-1].digest:
            raise CsvError(f"{_ARRAYS}: not the arrays of the last plan in plans.csv")
    return history


def _study_json(history: History) -> str:
    about = {
        "schema": VERSION,
        "study": history.study,
        "status": history.status,
        "made_at": iso(history.made_at),
        "asked": history.asked,
        "given": history.given,
        "log": log_digest(history.events),
        "annotators": [
            vars(person) | {"joined_at": iso(person.joined_at)} for person in history.annotators
        ],
        "closed": [[*place, ratings] for place, ratings in history.closed.items()],
        "reports": [
            {"episode": move.episode, "epoch": move.epoch, "columns": move.columns}
            for move in history.moves
            if move.columns
        ],
        "config": json.loads(to_json(history.config)),
    }
    return json.dumps(about, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _history(about: dict[str, Any], files: dict[str, bytes]) -> History:
    study, version, config = str(about["study"]), about["schema"], _config(about)
    plans = bundle_csv.read_plans(*_csv(files, "plans.csv"), study, version > 1)
    try:
        people = [_person(person) for person in about["annotators"]]
        made_at = milliseconds(about["made_at"])
        closed = {(k, h, n): int(ratings) for k, h, n, ratings in about["closed"]}
        counts = int(about["asked"]), int(about["given"])
    except (KeyError, TypeError, ValueError) as error:
        raise CsvError(f"study.json: {_reason(error)}") from None
    events: list[Event] = []
    configs = dict.fromkeys(range(1, len(plans) + 1), config)
    coming = config
    duels = _csv(files, "duels.csv")
    bundle_csv.check_columns("duels.csv", duels[1], bundle_csv.DUELS)
    if version > 2:
        past = csvtext.decode(files[_HISTORY], _HISTORY) if _HISTORY in files else None
        log = _csv(files, "events.csv")
        events = bundle_csv.read_events(*log, study, len(duels[0]), past)
        configs, coming = _configs(config, events)
    impressions = bundle_csv.read_duels(duels[0], study, coming)
    transitions = _csv(files, "transitions.csv")
    moves = bundle_csv.read_transitions(*transitions, study, configs, version)
    history = History(
        study=study,
        status=about["status"],
        made_at=made_at,
        config=config,
        asked=counts[0],
        given=counts[1],
        annotators=people,
        impressions=impressions,
        moves=_with_reports(moves, about.get("reports", ())),
        plans=plans,
        arrays=_arrays(files[_ARRAYS]) if _ARRAYS in files else None,
        closed=closed,
        events=events,
    )
    return history if version > 2 else replace(history, events=log_of_old(history))


def _configs(
    config: StudyConfig, events: list[Event]
) -> tuple[dict[int, StudyConfig], StudyConfig]:
    """The configuration of each plan, and the one with all changes."""
    try:
        changes = [(e.kind, e.content) for e in events if e.kind in CHANGES]
        return configs_of_plans(config, events), changed(config, changes)
    except (KeyError, TypeError, ValueError) as error:
        raise CsvError(f"events.csv: a change cannot be made: {_reason(error)}") from None


def _person(about: dict[str, Any]) -> Person:
    return Person(
        name=str(about["name"]),
        joined_at=milliseconds(about["joined_at"]),
        practised=bool(about["practised"]),
        repeats=int(about["repeats"]),
    )


def _with_reports(moves: list[Move], reports: Any) -> list[Move]:
    columns = {(int(r["episode"]), int(r["epoch"])): r["columns"] for r in reports}
    return [replace(m, columns=columns.get((m.episode, m.epoch))) for m in moves]


def _unzip(source: Path | bytes) -> dict[str, bytes]:
    """The files that a bundle has; nothing else in it is looked at, and none is ever huge."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as bundle:
            files = {}
            for name in (*_TEXTS, _HISTORY, _ARRAYS):
                if name in bundle.namelist():
                    with bundle.open(name) as member:
                        files[name] = member.read(LARGEST + 1)
                    if len(files[name]) > LARGEST:
                        raise CsvError(f"{name}: over {LARGEST >> 20} MB; not a bundle of dopl")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
        name = source.name if isinstance(source, Path) else "the bundle"
        raise CsvError(f"{name}: not a zip file, or a damaged one") from None
    if "study.json" not in files:
        raise CsvError("study.json is missing")
    return files


def _about(content: bytes) -> dict[str, Any]:
    try:
        about = json.loads(csvtext.decode(content, "study.json"))
    except json.JSONDecodeError as error:
        raise CsvError(f"study.json line {error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(about, dict) or not isinstance(about.get("schema"), int):
        raise CsvError('study.json: "schema", the version of the bundle, is missing')
    if not 1 <= about["schema"] <= VERSION:
        raise CsvError(
            f"study.json: made by a newer version of dopl (schema {about['schema']}, this program "
            f"knows up to {VERSION}): update dopl"
        )
    for key in ("study", "status", "made_at", "config", "annotators", "asked", "given", "closed"):
        if key not in about:
            raise CsvError(f'study.json: "{key}" is missing')
    if not re.fullmatch(r"[a-z0-9-]{1,80}", str(about["study"])):
        raise CsvError(f'study.json: study "{about["study"]}" is not an id of dopl')
    if about["status"] not in STATUSES:
        raise CsvError(
            f'study.json: status "{about["status"]}" is not one of {", ".join(STATUSES)}'
        )
    return about


def _config(about: dict[str, Any]) -> StudyConfig:
    try:
        return from_json(json.dumps(about["config"]))
    except (ValueError, TypeError, KeyError) as error:
        raise CsvError(f"study.json: {_reason(error)}") from None


def _csv(files: dict[str, bytes], name: str) -> tuple[bundle_csv.Rows, list[str]]:
    columns, rows = csvtext.read(csvtext.decode(files[name], name), name)
    for _, row in rows:
        for column, cell in row.items():
            row[column] = csvtext.unquote(cell)
    return rows, columns


def _arrays(content: bytes) -> Arrays:
    try:
        return unpack(content)
    except ValueError:
        raise CsvError(f"{_ARRAYS}: not arrays, or damaged ones") from None


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
