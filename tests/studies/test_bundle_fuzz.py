"""Bundles spoilt in every way: refused with a reason and nothing changed, or imported and sound.

DOPL_FUZZ=2000 tries that many; some hundred are tried with the other tests.
"""

import csv
import io
import json
import os
import random
import signal
import struct
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from bundles import files, zipped
from playing import ROSTER, STATES, Clock, clinic, cpap, play

from dopl_core.environments import BadEnvironmentError
from dopl_core.studies import arrays, bundle_csv, schema, service
from dopl_core.studies.history import HistoryError, log_digest
from dopl_core.studies.replay import ReplayError
from dopl_core.studies.service import Arm, Ask, CsvError, Store, StudyError

COUNT = int(os.environ.get("DOPL_FUZZ", "300"))
PARTS = 6  # tests that share them
SECONDS = 20  # more is a hang
OURS = (CsvError, StudyError, HistoryError, ReplayError, BadEnvironmentError)
KEPT = Path(__file__).resolve().parents[1] / "data" / "kept"

Members = dict[str, bytes]


# --- what is spoilt


def simulated(store: Store, clock: Clock) -> str:
    rules = {"ratings": 2, "ties_allowed": True, "practice": True, "repeat_every": 3}
    study = service.create_study(store, cpap(lease_seconds=9, **rules))
    play(store, study, 50, people=("Ann", "Bob", "Cy"), clock=clock)
    return study


PAST = (
    b"id,when,state,helped\np1,2026-01-05,Low,0\np1,2026-01-12,Low,1\nold,1,High,0\nold,8,Low,1\n"
)


def sitting(store: Store, clock: Clock) -> str:
    """A study before its first plan."""
    config = clinic(horizon=1, confidence="calibrated", sitting=5, practice=True)
    study = service.create_study(store, config, service.read_history(PAST, config))
    play(store, study, 4, clock=clock)
    return study


def eventful(store: Store, clock: Clock) -> str:
    """A roster study with one of every event."""
    rules = {"horizon": 2, "confidence": "calibrated", "sitting": 3, "answers": 3, "ratings": 2}
    arms = [*service.read_roster(ROSTER, STATES), Arm("p5", "Eva", "ward", "Low", {"age": "9"})]
    config = service.from_roster(
        arms, STATES, title="All", budget=3, practice=True, lease_seconds=60, **rules
    )
    study = service.create_study(store, config)
    service.add_history(store, study, service.read_history(PAST, config))
    service.skip_practice(store, study, "Ann")
    play(store, study, 6, clock=clock, undo=0.4)
    held = service.next_duel(store, study, "Ann")
    service.pause_study(store, study)
    service.reopen_study(store, study)
    service.keep_photos(store, study, {"p1": b"one"})
    service.remove_photos(store, study)
    clock.wait(1000)
    play(store, study, 2, people=("Cy", "Di"), clock=clock)
    service.close_duels(store, study)
    if isinstance(held, Ask):
        service.answer(store, held.impression, "left")  # too late: refused
        service.flag(store, held.impression, "Ann", "looks wrong", held.left.arm)
    service.advance(store, study)
    for week in range(5):
        play(store, study, 5, clock=clock, people=("Ann", "Bob"), seed=week)
        if week == 0:
            service.join(store, study, [Arm("p6", "Fay", "home", "")])
        if week == 1:
            service.leave(store, study, ["p2"])
            service.change_settings(store, study, budget=2, title="Some", ratings=1)
        if week == 1:
            service.exclude(store, study, "Bob")
        if week == 3:
            service.include(store, study, "Bob")
            service.exclude(store, study, "Ann")
        if week == 2:
            service.correct(store, study, 1, {"p1": "High"}, {"p3": True, "p1": True, "p4": True})
        while not service.get_study(store, study).plan_due:
            here = service.present_states(store, study)
            said = {arm: STATES[n % 3] for n, arm in enumerate(here)} | {"p4": None}
            service.observe(store, study, said, {"p1": {"hours": f"{week}"}}, helped=["p1", "p4"])
        service.advance(store, study)
    play(store, study, 3, clock=clock, people=("Ann", "Eve"))
    service.close_study(store, study)
    service.reopen_study(store, study)
    return study


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Bundles that are as they should be: kept ones of every version, and fresh ones."""
    clock = Clock()
    store = service.open_store(f"sqlite:///{tmp_path_factory.mktemp('f')}/f.db", clock=clock)
    with pytest.MonkeyPatch.context() as patch:  # the same bytes each time, so the same mutations
        patch.setattr("dopl_core.studies.running.secrets.token_hex", lambda size: "0" * 2 * size)
        patch.setattr("dopl_core.studies.episode.perf_counter", lambda: 0.0)
        studies = [make(store, clock) for make in (eventful, simulated, sitting)]
    kinds = {event.kind for event in _events(files(service.export_bundle(store, studies[0])))}
    missing = bundle_csv.EVENTS.keys() - kinds
    assert missing <= {"imported"}, missing
    fresh = [service.export_bundle(store, study) for study in studies]
    store.close()
    return [*fresh, *fresh[:2], *(path.read_bytes() for path in sorted(KEPT.glob("*.zip")))]


# --- how


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
        _set_last_digest(members, arrays.digest(kept))
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


def _events(members: Members) -> list[Any]:
    rows = bundle_csv.read_rows(members["events.csv"], "events.csv", bundle_csv.EVENT_COLUMNS)
    past = members.get("history.csv", b"").decode()
    return bundle_csv.read_events(rows, json.loads(members["study.json"])["study"], past)


def _seal(members: Members) -> None:
    """The log's digest put right, so that what is in it is looked at."""
    try:
        about = json.loads(members["study.json"])
        about["log"] = log_digest(_events(members))
        members["study.json"] = json.dumps(about).encode()
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return


# --- and what comes of it


def hung(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def rows_kept(store: Store) -> int:
    with store.read() as connection:
        tables = schema.metadata.sorted_tables
        return sum(
            connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one()
            for t in tables
        )


def tried(store: Store, content: bytes) -> str:
    """What became of a bundle: imported (and all of it is usable) or refused; else it fails."""
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    reason = ""
    try:
        study = service.import_bundle(store, content)
        use(store, study)
        service.delete_study(store, study)
    except OURS as error:
        reason = str(error)
    finally:
        signal.alarm(0)
    assert len(reason) < 2000
    assert rows_kept(store) == 0  # so it is where an imported one is refused when it is used
    return "refused" if reason else "imported"


def use(store: Store, study: str) -> None:
    """Everything that people do with a study."""
    assert [one.id for one in service.list_studies(store)] == [study]
    replayed = arrays.digest(service.replay_study(store, study).state())
    assert arrays.digest(service.load_learner(store, study).state()) == replayed
    exported = service.export_bundle(store, study)
    assert arrays.digest(service.replay_bundle(exported).state()) == replayed
    look(store, study)
    if service.get_study(store, study).status != "running":
        service.reopen_study(store, study)
    play(store, study, 4, people=("Ann", "Zoe"), states=_labels(store, study))
    service.close_duels(store, study)
    if service.get_study(store, study).waits_for == "owner":
        service.observe(store, study, {})
    service.advance(store, study)
    look(store, study)
    service.replay_study(store, study)


def _labels(store: Store, study: str) -> list[str]:
    return [state.label for state in service.get_study(store, study).config.states]


def look(store: Store, study: str) -> None:
    service.get_study(store, study)
    service.epoch_list(store, study)
    for week in service.read_lists(store, study):
        service.list_rows(week)
    service.present_states(store, study)
    service.next_duel(store, study, "Ann")
    service.next_duel(store, study, "Eve")
    service.answers(store, study)
    if service.get_study(store, study).episode:
        service.plans(store, study)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_spoilt_bundle_is_refused_or_is_sound(
    sqlite_store: Store, whole: list[bytes], part: int, tmp_path: Path
) -> None:
    rng = random.Random(f"dopl {part}")
    came: Counter[str] = Counter()
    for number in range(COUNT // PARTS):
        content = spoilt(whole[number % len(whole)], rng)
        (tmp_path / "last.zip").write_bytes(content)  # to look at, if it fails
        came[tried(sqlite_store, content)] += 1
    assert came["refused"] > came["imported"] > 0
    if log := os.environ.get("DOPL_FUZZ_LOG"):
        with Path(log).open("a") as file:
            file.write(f"{part} {dict(came)}\n")


@pytest.mark.long
def test_postgresql_takes_and_refuses_the_same(
    sqlite_store: Store, new_postgresql: Callable[..., str], template: str, whole: list[bytes]
) -> None:
    other = service.open_store(new_postgresql(template), clock=Clock())
    rng = random.Random("both")
    for number in range(COUNT // 15):
        content = spoilt(whole[number % len(whole)], rng)
        assert tried(other, content) == tried(sqlite_store, content)
    other.close()


@pytest.mark.long
def test_whole_bundles_are_sound(sqlite_store: Store, whole: list[bytes]) -> None:
    assert {tried(sqlite_store, content) for content in whole} == {"imported"}


# --- bombs: small files that would take all memory, or for ever


@pytest.fixture(scope="module")
def small(whole: list[bytes]) -> Members:
    return files(whole[1])


def with_config(members: Members, **fields: Any) -> bytes:
    about = json.loads(members["study.json"])
    about["config"] |= fields
    return zipped(members | {"study.json": json.dumps(about).encode()})


def huge_csv(members: Members) -> bytes:
    """A gigabyte of rows in a few MB, written part by part."""
    buffer = io.BytesIO(zipped({k: v for k, v in members.items() if k != "duels.csv"}))
    with (
        zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("duels.csv", "w", force_zip64=True) as file,
    ):
        part = b"\n" * (4 << 20)
        for _ in range(256):
            file.write(part)
    return buffer.getvalue()


def rows_again(members: Members) -> bytes:
    """Two million rows that are all the same, and far from being of a log."""
    first, row = members["events.csv"].splitlines(keepends=True)[:2]
    return zipped(members | {"events.csv": first + row * (200_000_000 // len(row))})


def lying_csv(members: Members) -> bytes:
    """The same, but its header says that it is small."""
    part = b"\n" * (64 << 20)
    content = zipped(members | {"duels.csv": part})
    return content.replace(struct.pack("<I", len(part)), struct.pack("<I", 100_000))


def huge_array(members: Members, count: int = 10**9) -> bytes:
    """An array of so many zeros, of which the header is true."""
    buffer = io.BytesIO()
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files(members["arrays.npz"]).items():
            is_it = name == "plan.start.npy"
            archive.writestr(name, header.getvalue() + bytes(1 << 20) if is_it else content)
    return zipped(members | {"arrays.npz": buffer.getvalue()})


def many_columns(members: Members) -> bytes:
    names = ",".join(f"c{n}" for n in range(60_000))
    return zipped(members | {"duels.csv": f"{names}\n{names}\n".encode()})


def many_arms(members: Members, count: int = 30_000) -> bytes:
    arms = [{"id": str(n), "label": str(n), "state": "Low"} for n in range(count)]
    rules = {"world": "observed", "environment": "", "states": [{"label": x} for x in STATES]}
    about = json.loads(members["study.json"])
    about["config"] |= rules | {"arms": arms, "sitting": 5}
    about |= {"schema": 2, "annotators": [], "closed": [], "asked": 0, "given": 0}
    heads = {"plans.csv": members["plans.csv"].splitlines(keepends=True)[0]}
    heads["duels.csv"] = ",".join(bundle_csv.FIRST_DUELS).encode()
    heads["transitions.csv"] = ",".join(bundle_csv.FIRST_TRANSITIONS).encode()
    return zipped(heads | {"study.json": json.dumps(about).encode()})


def arms_in_the_environment(members: Members, line: str) -> bytes:
    text = json.loads(members["study.json"])["config"]["environment"]
    return with_config(members, environment=text.replace("arms = ", f"arms = {line}", 1))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (huge_csv, "over 256 MB when it is unpacked; not a bundle of dopl"),
        (rows_again, 'events.csv row 3: seq is "1", not "2"|out of .* kB'),
        (lying_csv, "not a zip file, or a damaged one"),
        (lambda m: with_config(m, horizon=10**9), "horizon is 1000000000: a whole number from 1"),
        (lambda m: with_config(m, horizon=1e9), "horizon is 1000000000.0: a whole number"),
        (lambda m: with_config(m, sitting=10**9), "sitting is 1000000000"),
        (lambda m: with_config(m, lease_seconds=1e308), "lease_seconds is 1e\\+308"),
        (lambda m: with_config(m, arms=[{}] * 10**5), 'arm: "id" is missing'),
        (huge_array, "plan.start.* has <f8 \\(1000000000,\\): <f8 \\(61,\\) by the configuration"),
        (many_columns, "duels.csv row 1: the columns are not study, session"),
        (many_arms, "30000 arms with 3 states are more than can be learnt"),
        (lambda m: arms_in_the_environment(m, "100000000 #"), "arms is 100000000"),
        (lambda m: arms_in_the_environment(m, "9999 #"), "not those of the environment"),
        (
            lambda m: zipped(m | {"study.json": b"[" * 10**6}),
            "study.json not JSON: nested too deep",
        ),
        (lambda m: zipped(m | {"study.json": b"9" * 10**6}), "study.json not JSON: Exceeds"),
    ],
)
def test_a_bomb_gets_an_error_at_once(
    sqlite_store: Store, small: Members, make: Callable[[Members], bytes], reason: str
) -> None:
    content = make(small)
    assert len(content) < 8 << 20
    began = time.process_time()
    with pytest.raises(OURS, match=reason):
        service.import_bundle(sqlite_store, content)
    assert time.process_time() - began < 2
    tracemalloc.start()  # slows everything down
    with pytest.raises(OURS, match=reason):
        service.import_bundle(sqlite_store, content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 300 << 20
    assert rows_kept(sqlite_store) == 0


@pytest.mark.parametrize("config", [[], [1], "", "text", 5, 0.5, None, True, {}, {"a": 1}, [[]]])
def test_a_configuration_that_is_none_is_refused(
    sqlite_store: Store, small: Members, config: Any
) -> None:
    about = json.loads(small["study.json"]) | {"config": config}
    with pytest.raises(CsvError, match=r"study.json: config"):
        service.import_bundle(
            sqlite_store, zipped(small | {"study.json": json.dumps(about).encode()})
        )


def test_every_field_of_a_configuration_has_a_rule() -> None:
    from dataclasses import fields

    from dopl_core.learning.bandit import State
    from dopl_core.studies import config

    for kind, rules in ((config.StudyConfig, config.RULES), (Arm, config._ARM)):
        assert [f.name for f in fields(kind)] == list(rules)
    assert [f.name for f in fields(State)] == list(config._STATE)


def test_a_list_of_a_thousand_people_is_exported_and_imported(sqlite_store: Store) -> None:
    """One cell of events.csv: longer than what csv reads unless it is told."""
    arms = [Arm(f"p{n}", f"Patient {n}" * 3, "all", STATES[n % 3]) for n in range(1200)]
    rules = {"title": "Large", "budget": 1000, "horizon": 1, "confidence": "paper"}
    study = service.create_study(
        sqlite_store, service.from_roster(arms, STATES, engine="lagrangian", **rules)
    )
    exported = service.export_bundle(sqlite_store, study)
    service.delete_study(sqlite_store, study)
    assert service.import_bundle(sqlite_store, exported) == study
    assert len(service.read_lists(sqlite_store, study)[0].listed) == 1000
