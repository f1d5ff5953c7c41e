"""Bundles spoilt in every way: their JSON, their tables, their arrays, the zip itself."""

import csv
import io
import json
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from bundles import Members, files, zipped

from dopl_core.studies.exchange import bundle_csv
from dopl_core.studies.model.study_log import log_digest
from dopl_core.studies.store import blobs

ODD: tuple[Any, ...] = (None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**63, 10**9, 10**400)
ODD += (0.5, -0.5, 1e300, 1e999, float("nan"), "", " ", "x", "Low", "p1", "p6", "Ann", "x" * 5000)
ODD += ("=1", "\ud800", "\u2028", "0", "-1", "1e9", "nan", "99999999999999999999", [], {}, [[]])
ODD += ([1], ["p1"], {"a": 1}, {"p1": ["Low", "High"]}, {"p1": None}, [[0, 0, 0, 1]])
CELLS = ("", " ", "0", "1", "-1", "2", "7", "2147483648", "9" * 30, "1.5", "nan", "inf", "1e999")
CELLS += ("x", "Low", "High", "p1", "p6", "Ann", "left", "skip", "undone", "expired", "policy")
CELLS += ("repeat", "sitting", "practice", "owner", "planned", "observed", "answered", "shown")
CELLS += ("[]", "5", "{}", "null", '{"state": []}', "{" * 3000, "[" * 90_000, '{"a": NaN}', "٣")
CELLS += ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:00", "2026-01-01", "1969-01-01T00:00Z")
CELLS += ("2030-01-01T00:00:00Z", "=1+1", "'", "y" * 200_000, '{"week": 1}', '{"heard": 3}')


def spoil_json(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """One change somewhere inside."""
    inside = isinstance(value, dict | list) and len(value) > 0
    if not inside or (depth and rng.random() < 0.25):
        return deepcopy(rng.choice(ODD))
    value = value.copy()
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    how = rng.random()
    if how < 0.08:
        del value[key]
    elif how < 0.14 and isinstance(value, list):
        value.insert(key, value[rng.randrange(len(value))])
    elif how < 0.18 and isinstance(value, dict):
        value[rng.choice(("odd", "", "present", "seed", "id"))] = deepcopy(rng.choice(ODD))
    elif how < 0.24:
        other = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value[key], value[other] = value[other], value[key]
    else:
        value[key] = spoil_json(value[key], rng, depth + 1)
    return value


def spoil_study(members: Members, rng: random.Random) -> None:
    about = json.loads(members["study.json"])
    if rng.random() < 0.5:
        about["config"] = spoil_json(about["config"], rng, rng.randrange(2))
    else:
        about = spoil_json(about, rng)
    members["study.json"] = json.dumps(about).encode()


def spoil_csv(members: Members, rng: random.Random) -> None:
    name = rng.choice([name for name in members if name.endswith(".csv")])
    rows = list(csv.reader(io.StringIO(members[name].decode(), newline="")))
    if len(rows) > 1:
        rng.choice((_cell, _cell, _cell, _swap, _row, _row, _column, _body, _body))(rows, rng)
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    members[name] = buffer.getvalue().encode()


def _cell(rows: list[list[str]], rng: random.Random) -> None:
    row = rng.choice(rows[1:])
    row[rng.randrange(len(row))] = rng.choice(CELLS)


def _swap(rows: list[list[str]], rng: random.Random) -> None:
    one, other = rng.choice(rows[1:]), rng.choice(rows[1:])
    at = rng.randrange(len(one))
    to = at if rng.random() < 0.7 else rng.randrange(len(one))
    one[at], other[to] = other[to], one[at]


def _row(rows: list[list[str]], rng: random.Random) -> None:
    at, to = (rng.randrange(1, len(rows)) for _ in range(2))
    how = rng.randrange(4)
    if how == 0:
        del rows[at]
    elif how == 1:
        rows.insert(to, list(rows[at]))
    elif how == 2:
        rows[at], rows[to] = rows[to], rows[at]
    else:
        del rows[rng.choice((at, 1)) :]
    if rows[0][1:2] == ["seq"] and rng.random() < 0.8:  # as if it had been so
        for number, row in enumerate(rows[1:], start=1):
            row[1] = str(number)


def _column(rows: list[list[str]], rng: random.Random) -> None:
    at = rng.randrange(len(rows[0]))
    how = rng.randrange(4)
    if how == 0:
        rows[0][at] = rng.choice(("", "odd", rows[0][0]))
    elif how == 1:
        for row in rows:
            del row[at : at + 1]
    elif how == 2:
        text = rng.choice(CELLS)
        for row in rows[1:]:
            row[at] = text
    else:
        to = rng.randrange(len(rows[0]))
        for row in rows:
            row[at], row[to] = row[to], row[at]


def _body(rows: list[list[str]], rng: random.Random) -> None:
    """What is in a cell as JSON, changed inside."""
    cells = [(r, c) for r in range(1, len(rows)) for c, x in enumerate(rows[r]) if x[:1] == "{"]
    kinds = {rows[r][3]: (r, c) for r, c in rng.sample(cells, len(cells))}
    if kinds:
        r, c = rng.choice(list(kinds.values()))
        rows[r][c] = json.dumps(spoil_json(json.loads(rows[r][c]), rng))


def spoil_arrays(members: Members, rng: random.Random) -> None:
    if "arrays.npz" not in members:
        return spoil_study(members, rng)
    with np.load(io.BytesIO(members["arrays.npz"])) as npz:
        kept = {name: npz[name] for name in npz.files}
    name = rng.choice(list(kept))
    array = kept[name]
    changes: list[Callable[[], Any]] = [
        lambda: array.astype("f4") if array.dtype.kind == "f" else np.array(0.5),
        lambda: array[..., None],
        lambda: np.zeros((3, 2)),
        lambda: np.full(array.shape, np.nan),
        lambda: np.full(array.shape, np.inf) if array.dtype.kind == "f" else np.array("x" * 50),
        lambda: np.array([None, {}], dtype=object),
        lambda: array + 1 if array.dtype.kind in "if" else np.array("odd"),
        lambda: np.zeros(array.shape, dtype=array.dtype),
        lambda: np.asfortranarray(array) if array.ndim else np.array(2**40),
    ]
    if rng.random() < 0.15:
        del kept[name]
    else:
        kept[rng.choice((name, name, name, "odd", "visits"))] = rng.choice(changes)()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **kept)  # type: ignore[arg-type]
    members["arrays.npz"] = buffer.getvalue()
    if rng.random() < 0.6 and not any(a.dtype.hasobject for a in kept.values()):  # sealed again
        _set_last_digest(members, blobs.digest(kept))
    return None


def _set_last_digest(members: Members, digest: str) -> None:
    rows = list(csv.reader(io.StringIO(members["plans.csv"].decode(), newline="")))
    if len(rows) > 1 and rows[-1]:
        rows[-1][-1] = digest
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    members["plans.csv"] = buffer.getvalue().encode()


def spoil_members(members: Members, rng: random.Random) -> None:
    name = rng.choice(list(members))
    content = members[name]
    at = rng.randrange(len(content) or 1)
    how = rng.randrange(5)
    if how == 0:
        del members[name]
    elif how == 1:
        members[name] = content[:at]
    elif how == 2:
        members[name] = members[rng.choice(list(members))]
    elif how == 3:
        members[name] = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    else:
        members[name] = content[:at] + content[at + rng.randrange(1, 30) :]


def spoil_zip(content: bytes, rng: random.Random) -> bytes:
    members = files(content)
    name = rng.choice(list(members))
    how = rng.randrange(6)
    at = rng.randrange(len(content))
    if how == 0:
        return content[:at]
    if how == 1:
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if how == 2:
        tail = max(len(content) - rng.randrange(1, 700), 0)
        return content[:tail] + struct.pack("<I", rng.getrandbits(32)) + content[tail + 4 :]
    if how == 3:
        return zipped(members, rng.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 0)))
    if how == 4:
        buffer = io.BytesIO(content)
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as archive:
            warnings.simplefilter("ignore")
            archive.writestr(name, members[rng.choice(list(members))])
        return buffer.getvalue()
    return b"junk before" * rng.randrange(3) + content + b"and after" * rng.randrange(3)


HOW = (spoil_study, spoil_study, spoil_csv, spoil_csv, spoil_csv, spoil_arrays, spoil_members)


def spoilt(content: bytes, rng: random.Random) -> bytes:
    members = files(content)
    if rng.random() < 0.1:
        return spoil_zip(content, rng)
    for _ in range(rng.choice((1, 1, 1, 2))):
        try:
            rng.choice(HOW)(members, rng)
        except (ValueError, KeyError, IndexError, zipfile.BadZipFile, csv.Error):
            continue  # spoilt too far to be spoilt again
        if not members:
            break
    if rng.random() < 0.8:
        _seal(members)
    return zipped(members)


def read_events(members: Members) -> list[Any]:
    rows = bundle_csv.read_rows(members["events.csv"], "events.csv", bundle_csv.EVENTS)
    texts = {name: members.get(name, b"").decode() for name in ("history.csv", "answers.csv")}
    return bundle_csv.read_events(rows, json.loads(members["study.json"])["study"], texts)


def _seal(members: Members) -> None:
    """The log's digest put right, so that what is in it is looked at."""
    try:
        about = json.loads(members["study.json"])
        about["log"] = log_digest(read_events(members))
        members["study.json"] = json.dumps(about).encode()
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return
