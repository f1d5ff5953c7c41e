"""A study as a zip of CSV files: written, read back, and put into a database again.

study.json       schema version, configuration, annotators, what owners reported beside states
duels.csv        one row an impression: design's columns; `confidence` and `plan` are those of the
                 learner that asked; `winner_arm` and `loser_arm` are empty for ties and skips
transitions.csv  one row an arm and epoch; an epoch still open has no next_state
plans.csv        one row a plan; `digest` is of all its arrays
arrays.npz       what the learner held after the last plan, so that it need not be made again

Arms go by their owner's ids, states by their labels, times are UTC. The same study gives the same
bytes. Invites and keys stay in the database. Version 1 had no arrays, and no digests of them: its
plans are made again when it is read.
"""

import io
import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dopl_core.learning.learner import Dopl
from dopl_core.studies import csvtext, fold, history, schema, tables
from dopl_core.studies.config import StudyConfig, from_json
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.history import History
from dopl_core.studies.loading import write_history
from dopl_core.studies.replay import replay
from dopl_core.studies.store import Store
from dopl_core.studies.turn import Record, config_of, study_row

SCHEMA = 2
LARGEST = 1 << 30  # bytes that a member may unpack to

_FILES = ("study.json", "duels.csv", "transitions.csv", "plans.csv", "arrays.npz")


def export_bundle(store: Store, study: str) -> bytes:
    """The zip of a study as it is now."""
    with store.read() as connection:
        row = study_row(connection, study)
        config = config_of(store, connection, row)
        arrays = fold.plan_arrays(fold.planned(connection, config, row))
        files: dict[str, bytes] = _texts(connection, row, config)
    files["arrays.npz"] = fold.pack(arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            # A fixed date: the bytes depend on the study only.
            bundle.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, bundle.compression
            )
    return buffer.getvalue()


def remade_plan(connection: Connection, config: StudyConfig, row: Record) -> Dopl:
    """The learner after its last plan, computed from the start: where its arrays were damaged."""
    return replay(_history(_texts(connection, row, config)))


def import_bundle(store: Store, source: Path | bytes) -> str:
    """Put the study of a bundle into the database, all of it or nothing; its id."""
    read = read_bundle(source)
    learner = replay(read) if read.arrays is None else None
    write_history(store, read, learner)
    return read.study


def replay_bundle(source: Path | bytes) -> Dopl:
    """The learner of a bundle, computed from the start and compared with it at every step."""
    return replay(read_bundle(source))


def replay_study(store: Store, study: str) -> Dopl:
    """The same for a study in the database."""
    return replay_bundle(export_bundle(store, study))


def read_bundle(source: Path | bytes) -> History:
    """What a bundle holds; refused with the file, the row and the reason."""
    found = _history(_unzip(source))
    history.check(found)
    if found.version > 1:
        if found.arrays is None:
            raise CsvError("arrays.npz is missing")
        if fold.digest(found.arrays) != found.plans[-1]["digest"]:
            raise CsvError("arrays.npz: not the arrays of the last plan in plans.csv")
    return found


def _history(files: dict[str, bytes]) -> History:
    about = _about(files["study.json"])
    version, study = about["schema"], str(about["study"])
    config = _config(about)
    names = ("duels.csv", "transitions.csv", "plans.csv")
    duels, transitions, plans = (_csv(files[name], name) for name in names)
    arrays = _arrays(files["arrays.npz"]) if version > 1 and "arrays.npz" in files else None
    try:
        return History(
            version=version,
            study=study,
            status=about["status"],
            made_at=tables.milliseconds(about["made_at"]),
            config=config,
            asked=int(about["asked"]),
            given=int(about["given"]),
            annotators=[
                {
                    "name": str(person["name"]),
                    "joined_at": tables.milliseconds(person["joined_at"]),
                    "practised": bool(person["practised"]),
                    "repeats": int(person["repeats"]),
                }
                for person in about["annotators"]
            ],
            impressions=history.read_impressions(*duels, config, study),
            moves=history.read_moves(*transitions, config, study),
            plans=history.read_plans(*plans, study, version > 1),
            arrays=arrays,
            closed={(k, h, n): int(ratings) for k, h, n, ratings in about["closed"]},
            reports={
                (int(report["episode"]), int(report["epoch"])): report["columns"]
                for report in about.get("reports", ())
            },
        )
    except CsvError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise CsvError(f"study.json: {_reason(error)}") from None


def _texts(connection: Connection, row: Record, config: StudyConfig) -> dict[str, bytes]:
    """The files that are text."""
    texts = {
        "study.json": _study_json(connection, row, config),
        "duels.csv": csvtext.write(tables.DUELS, tables.duel_rows(connection, config, row.id)),
        "transitions.csv": csvtext.write(
            tables.TRANSITIONS, tables.transition_rows(connection, config, row.id)
        ),
        "plans.csv": csvtext.write(tables.PLANS, tables.plan_rows(connection, row.id)),
    }
    return {name: text.encode() for name, text in texts.items()}


def _study_json(connection: Connection, row: Record, config: StudyConfig) -> str:
    a, d, e = schema.annotators.c, schema.duels.c, schema.epochs.c
    people = sa.select(schema.annotators).where(a.study == row.id).order_by(a.joined_at, a.name)
    closed = sa.select(d.episode, d.epoch, d.number, d.ratings).where(
        d.study == row.id,
        d.episode == row.episode,
        d.purpose == "policy",
        d.ratings < config.ratings,
    )
    reports = sa.select(e.episode, e.epoch, e.columns).where(
        e.study == row.id, e.columns.is_not(None)
    )
    text = connection.execute(
        sa.select(schema.studies.c.config).where(schema.studies.c.id == row.id)
    ).scalar_one()
    about = {
        "schema": SCHEMA,
        "study": row.id,
        "status": row.status,
        "made_at": tables.iso(row.made_at),
        "asked": row.asked,
        "given": row.given,
        "annotators": [
            {
                "name": person.name,
                "joined_at": tables.iso(person.joined_at),
                "practised": bool(person.practised),
                "repeats": person.repeats,
            }
            for person in connection.execute(people)
        ],
        "closed": [list(c) for c in connection.execute(closed.order_by(d.epoch, d.number))],
        "reports": [
            {"episode": r.episode, "epoch": r.epoch, "columns": json.loads(r.columns)}
            for r in connection.execute(reports.order_by(e.episode, e.epoch))
        ],
        "config": json.loads(text),
    }
    return json.dumps(about, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _unzip(source: Path | bytes) -> dict[str, bytes]:
    """The files that a bundle has; nothing else in it is looked at, and none is ever huge."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as bundle:
            files = {}
            for name in _FILES:
                if name in bundle.namelist():
                    with bundle.open(name) as member:
                        files[name] = member.read(LARGEST + 1)
                    if len(files[name]) > LARGEST:
                        raise CsvError(f"{name}: over {LARGEST >> 20} MB; not a bundle of dopl")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
        name = source.name if isinstance(source, Path) else "the bundle"
        raise CsvError(f"{name}: not a zip file, or a damaged one") from None
    for name in _FILES[:-1]:
        if name not in files:
            raise CsvError(f"{name} is missing")
    return files


def _about(content: bytes) -> dict[str, Any]:
    try:
        about = json.loads(csvtext.decode(content, "study.json"))
    except json.JSONDecodeError as error:
        raise CsvError(f"study.json line {error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(about, dict) or not isinstance(about.get("schema"), int):
        raise CsvError('study.json: "schema", the version of the bundle, is missing')
    if not 1 <= about["schema"] <= SCHEMA:
        raise CsvError(
            f"study.json: made by a newer version of dopl (schema {about['schema']}, this program "
            f"knows up to {SCHEMA}): update dopl"
        )
    for key in ("study", "status", "made_at", "config", "annotators", "asked", "given", "closed"):
        if key not in about:
            raise CsvError(f'study.json: "{key}" is missing')
    if not re.fullmatch(r"[a-z0-9-]{1,80}", str(about["study"])):
        raise CsvError(f'study.json: study "{about["study"]}" is not an id of dopl')
    if about["status"] not in ("running", "paused", "closed"):
        raise CsvError(f'study.json: status "{about["status"]}" is not running, paused or closed')
    return about


def _config(about: dict[str, Any]) -> StudyConfig:
    try:
        return from_json(json.dumps(about["config"]))
    except (ValueError, TypeError, KeyError) as error:
        raise CsvError(f"study.json: {_reason(error)}") from None


def _csv(content: bytes, name: str) -> tuple[history.Rows, list[str]]:
    columns, rows = csvtext.read(csvtext.decode(content, name), name)
    for _, row in rows:
        for column, cell in row.items():
            row[column] = csvtext.unquote(cell)
    return rows, columns


def _arrays(content: bytes) -> fold.Arrays:
    try:
        return fold.unpack(content)
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        raise CsvError("arrays.npz: not arrays, or damaged ones") from None


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
