"""Bombs: small bundles that would take all memory, or for ever, get an error at once."""

import io
import json
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bundles import OURS, Members, files, rows_kept, zipped
from playing import STATES, Clock, cpap, play

from dopl_core import studies
from dopl_core.studies import Arm, CsvError, Store
from dopl_core.studies.exchange import bundle_csv, transitions_csv
from dopl_core.studies.model.study_log import log_digest


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Members:
    """The files of a bundle that is as it should be."""
    store = studies.open_store(f"sqlite:///{tmp_path_factory.mktemp('b')}/b.db", clock=Clock())
    study = studies.create_study(store, cpap())
    play(store, study, 10)
    exported = studies.export_bundle(store, study)
    store.close()
    return files(exported)


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
    """An array of that many zeros, with a true header."""
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
    about |= {
        "schema": 3,
        "log": log_digest([]),
        "annotators": [],
        "closed": [],
        "asked": 0,
        "given": 0,
    }
    heads = {"plans.csv": members["plans.csv"].splitlines(keepends=True)[0]}
    heads["duels.csv"] = ",".join(bundle_csv.DUELS_5).encode()
    heads["transitions.csv"] = ",".join(transitions_csv.COLUMNS).encode()
    heads["events.csv"] = ",".join(bundle_csv.EVENTS).encode()
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
        (lambda m: with_config(m, arms=[{}] * 10**5), 'arms: number 1: key "id" is missing'),
        (huge_array, "plan.start.* has <f8 \\(1000000000,\\): <f8 \\(61,\\) by the configuration"),
        (many_columns, "duels.csv row 1: the columns are not study, session"),
        (many_arms, "30000 arms with 3 states exceed the limit"),
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
        studies.import_bundle(sqlite_store, content)
    assert time.process_time() - began < 2
    tracemalloc.start()  # slows everything down
    with pytest.raises(OURS, match=reason):
        studies.import_bundle(sqlite_store, content)
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
        studies.import_bundle(
            sqlite_store, zipped(small | {"study.json": json.dumps(about).encode()})
        )


def test_a_list_of_a_thousand_people_is_exported_and_imported(sqlite_store: Store) -> None:
    """One cell of events.csv: longer than what csv reads unless it is told."""
    arms = [Arm(f"p{n}", f"Patient {n}" * 3, "all", STATES[n % 3]) for n in range(1200)]
    rules = {"title": "Large", "budget": 1000, "horizon": 1, "confidence": "paper"}
    study = studies.create_study(
        sqlite_store, studies.from_roster(arms, STATES, engine="lagrangian", **rules)
    )
    exported = studies.export_bundle(sqlite_store, study)
    studies.delete_study(sqlite_store, study)
    assert studies.import_bundle(sqlite_store, exported) == study
    assert len(studies.read_lists(sqlite_store, study)[0].listed) == 1000
