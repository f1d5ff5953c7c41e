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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dopl_core.environments import brief
from dopl_core.studies import bundle_csv, csvtext, records
from dopl_core.studies.arrays import DAMAGES, PLAIN, Arrays, digest, pack, shapes, unpack
from dopl_core.studies.bundle_csv import LARGEST_NUMBER, iso, milliseconds, reason
from dopl_core.studies.changes import changed
from dopl_core.studies.config import StudyConfig, check_columns, check_name
from dopl_core.studies.config_json import from_json, read_json, to_json
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.fitting import check
from dopl_core.studies.history import (
    Event,
    History,
    HistoryError,
    Move,
    Person,
    Place,
    configs_of_plans,
    log_digest,
)
from dopl_core.studies.old_logs import log_of_old
from dopl_core.studies.store import StudyError
from dopl_core.studies.vocabulary import CHANGES, STATUSES

VERSION = 3
LARGEST = 1 << 28  # bytes that all members may unpack to: some 500,000 answers

_BOMB = 400  # times that a member of some size is larger unpacked: real ones are by 30
_SMALL = 1 << 20

_EVERY_VERSION = ("study.json", "duels.csv", "transitions.csv", "plans.csv")
_TEXTS = (*_EVERY_VERSION, "events.csv")
_HISTORY = bundle_csv.HISTORY
_ARRAYS = "arrays.npz"
_OURS = (*_TEXTS, _HISTORY, _ARRAYS)


def write(history: History, also: Mapping[str, str] | None = None) -> bytes:
    """The zip of a history that has its last plan's arrays.

    also: texts for people to read, which nothing reads back
    """
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
    files |= {name: text.encode() for name, text in (also or {}).items()}
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
    except (HistoryError, StudyError) as error:
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
    return json.dumps(about, ensure_ascii=False, indent=1) + "\n"


def _history(about: dict[str, Any], files: dict[str, bytes]) -> History:
    study, version, config = about["study"], about["schema"], _config(about)
    columns = _columns(version)
    rows = {name: bundle_csv.read_rows(files[name], name, columns[name]) for name in columns}
    plans = bundle_csv.read_plans(rows["plans.csv"], study)
    events: list[Event] = []
    configs = dict.fromkeys(range(1, len(plans) + 1), config)
    coming = config
    if version > 2:
        past = csvtext.decode(files[_HISTORY], _HISTORY) if _HISTORY in files else None
        events = bundle_csv.read_events(rows["events.csv"], study, past)
        configs, coming = _configs(config, events)
    impressions = bundle_csv.read_duels(rows["duels.csv"], study, coming)
    follows = all(event.kind != "corrected" for event in events)
    moves = bundle_csv.read_transitions(rows["transitions.csv"], study, configs, follows)
    try:
        history = History(
            study=study,
            status=about["status"],
            made_at=milliseconds(about["made_at"]),
            config=config,
            asked=_whole(about["asked"], "asked"),
            given=_whole(about["given"], "given"),
            annotators=_people(about["annotators"]),
            impressions=impressions,
            moves=_with_reports(moves, about.get("reports", [])),
            plans=plans,
            arrays=None,
            closed=_closed(about["closed"]),
            events=events,
        )
    except ValueError as error:
        raise CsvError(f"study.json: {reason(error)}") from None
    if version < 3:
        history = replace(history, events=log_of_old(history))
    # Version 1 kept no digest to compare arrays with: they are made again.
    return replace(history, arrays=_arrays(files, history) if version > 1 else None)


def _configs(
    config: StudyConfig, events: list[Event]
) -> tuple[dict[int, StudyConfig], StudyConfig]:
    """The configuration of each plan, and the one with all changes."""
    try:
        for event in events:
            if event.kind == "history_added":
                records.read_history(event.content["records"].encode(), config)
        changes = [(e.kind, e.content) for e in events if e.kind in CHANGES]
        return configs_of_plans(config, events), changed(config, changes)
    except ValueError as error:
        raise CsvError(f"events.csv: a change cannot be made: {reason(error)}") from None


# --- what study.json holds beside the configuration


def _objects(content: Any, what: str, keys: set[str]) -> Iterator[dict[str, Any]]:
    """The objects of a list, each with all these keys."""
    if not isinstance(content, list):
        raise ValueError(f"{what} is {brief(content)}: a list needed")
    for number, one in enumerate(content, start=1):
        if not isinstance(one, dict):
            raise ValueError(f"{what}: number {number} is {brief(one)}: an object needed")
        if missing := keys - one.keys():
            raise ValueError(f"{what}: number {number}: '{min(missing)}' is missing")
        yield one


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise ValueError(
            f"{what} is {brief(value)}: a whole number needed, at most {LARGEST_NUMBER}"
        )
    return value


def _people(content: Any) -> list[Person]:
    people: dict[str, Person] = {}
    for about in _objects(content, "annotators", {"name", "joined_at", "practised", "repeats"}):
        name = about["name"]
        if not isinstance(name, str) or name != check_name(name):
            raise ValueError(f"annotators: {brief(name)} is no name")
        if name in people:
            raise ValueError(f'annotators: "{name}" is there twice')
        if not isinstance(about["practised"], bool):
            raise ValueError(f'annotators: "{name}": practised is {brief(about["practised"])}')
        repeats = _whole(about["repeats"], f'annotators: "{name}": repeats')
        joined_at = milliseconds(about["joined_at"])
        people[name] = Person(name, joined_at, about["practised"], repeats)
    return list(people.values())


def _closed(content: Any) -> dict[Place, int]:
    if not isinstance(content, list):
        raise ValueError(f"closed is {brief(content)}: a list needed")
    closed: dict[Place, int] = {}
    for one in content:
        if not isinstance(one, list) or len(one) != 4:
            raise ValueError("closed: episode, epoch, duel and ratings needed")
        episode, epoch, duel, ratings = (_whole(number, "closed: a number") for number in one)
        closed[episode, epoch, duel] = ratings
    return closed


def _with_reports(moves: list[Move], content: Any) -> list[Move]:
    reports: dict[tuple[int, int], dict[str, dict[str, str]]] = {}
    for about in _objects(content, "reports", {"episode", "epoch", "columns"}):
        place = _whole(about["episode"], "episode"), _whole(about["epoch"], "epoch")
        if not isinstance(about["columns"], dict):
            raise ValueError(f"reports: columns is {brief(about['columns'])}: an object needed")
        for arm, columns in about["columns"].items():
            check_columns(f'reports: "{arm[:80]}"', columns)
        reports[place] = about["columns"]
    if unknown := reports.keys() - {
        (m.episode, m.epoch) for m in moves if m.next_states is not None
    }:
        raise ValueError(f"reports: epoch {min(unknown)} was not reported")
    return [replace(m, columns=reports.get((m.episode, m.epoch))) for m in moves]


# --- the files


def _unzip(source: Path | bytes) -> dict[str, bytes]:
    """The files that a bundle has; nothing else in it is looked at, and none is ever huge."""
    name = source.name if isinstance(source, Path) else "the bundle"
    content = source if isinstance(source, bytes) else _content(source)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            members = [m for m in bundle.infolist() if m.filename in _OURS]
            _check_members(members)
            files = {}
            for member in members:
                files[member.filename] = _read_member(bundle, member)
    except CsvError:
        raise
    except DAMAGES:
        raise CsvError(f"{name}: not a zip file, or a damaged one") from None
    if "study.json" not in files:
        raise CsvError("study.json is missing")
    return files


def _read_member(bundle: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """What a member holds; part by part, for zlib needs twice what it is asked for."""
    content = io.BytesIO()
    with bundle.open(member) as file:
        while part := file.read(_SMALL):
            content.write(part)
            if content.tell() > LARGEST:
                raise CsvError(f"{member.filename}: larger than it says; not a bundle of dopl")
    return content.getvalue()


def _content(source: Path) -> bytes:
    with source.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise CsvError(f"{source.name}: over {LARGEST >> 20} MB; not a bundle of dopl")
    return content


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    """Refuse, before anything is unpacked, what would be too large, or is not as we write it."""
    names = [member.filename for member in members]
    for member in members:
        if names.count(member.filename) > 1:
            raise CsvError(f"{member.filename} is there twice")
        if member.compress_type not in PLAIN or member.flag_bits & 1:
            raise CsvError(f"{member.filename}: compressed in a way that is not ours, or encrypted")
        if member.file_size > max(_SMALL, _BOMB * member.compress_size):
            raise CsvError(
                f"{member.filename}: {member.file_size >> 20} MB out of "
                f"{member.compress_size >> 10} kB; not a bundle of dopl"
            )
    if sum(member.file_size for member in members) > LARGEST:
        raise CsvError(f"over {LARGEST >> 20} MB when it is unpacked; not a bundle of dopl")


def _about(content: bytes) -> dict[str, Any]:
    try:
        about = read_json(csvtext.decode(content, "study.json"))
    except StudyError as error:
        raise CsvError(f"study.json {reason(error)}") from None
    if not isinstance(about, dict) or type(about.get("schema")) is not int:
        raise CsvError('study.json: "schema", the version of the bundle, is missing')
    if not 1 <= about["schema"] <= VERSION:
        raise CsvError(
            f"study.json: made by a newer version of dopl (schema {brief(about['schema'])}, this "
            f"program knows up to {VERSION}): update dopl"
        )
    for key in ("study", "status", "made_at", "config", "annotators", "asked", "given", "closed"):
        if key not in about:
            raise CsvError(f'study.json: "{key}" is missing')
    study, status = about["study"], about["status"]
    if not isinstance(study, str) or not re.fullmatch(r"[a-z0-9-]{1,80}", study):
        shown = study[:80] if isinstance(study, str) else brief(study)
        raise CsvError(f'study.json: study "{shown}" is not an id of dopl')
    if status not in STATUSES:
        shown = status[:80] if isinstance(status, str) else brief(status)
        raise CsvError(f'study.json: status "{shown}" is not one of {", ".join(STATUSES)}')
    return about


def _config(about: dict[str, Any]) -> StudyConfig:
    try:
        return from_json(json.dumps(about["config"]))
    except ValueError as error:
        raise CsvError(f"study.json: {reason(error)}") from None


def _columns(version: int) -> dict[str, tuple[str, ...]]:
    """The CSV files of a version, and their columns."""
    if version > 2:
        return {
            "plans.csv": bundle_csv.PLANS,
            "events.csv": bundle_csv.EVENT_COLUMNS,
            "duels.csv": bundle_csv.DUELS,
            "transitions.csv": bundle_csv.TRANSITIONS,
        }
    return {
        "plans.csv": bundle_csv.PLANS if version > 1 else bundle_csv.PLANS[:-1],
        "duels.csv": bundle_csv.FIRST_DUELS,
        "transitions.csv": bundle_csv.FIRST_TRANSITIONS,
    }


def _arrays(files: dict[str, bytes], history: History) -> Arrays | None:
    """What the learner held after the last plan, of the size that the configuration says."""
    if not history.plans or _ARRAYS not in files:
        return None
    try:
        now = history.now
        return unpack(files[_ARRAYS], *shapes(now.n_arms, now.n_states))
    except ValueError as error:
        raise CsvError(f"{_ARRAYS}: {reason(error)}") from None
