"""`dopl doctor`: what is wrong is said, with its remedy; nothing is changed, nothing is secret."""

import os
import shutil
import time
from collections import namedtuple
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import clinic

from dopl_core import cli
from dopl_core.learning.arithmetic import fingerprint
from dopl_core.learning.planning import PlanningError
from dopl_core.studies import access, doctor, schema, service
from dopl_core.studies.store import Store, look_at


def examine(url: str) -> tuple[dict[str, str], set[str]]:
    """What is said of each thing, and which of them are wrong."""
    findings = doctor.examine(url)
    said = {one.thing: one.found for one in findings}
    return said, {one.thing for one in findings if one.is_wrong}


@pytest.fixture
def study(url: str) -> str:
    store = service.open_store(url)
    made = service.create_study(store, clinic())
    store.close()
    return made


def test_all_is_well(url: str, study: str) -> None:
    said, wrong = examine(url)
    assert wrong == set()
    assert f"schema {schema.VERSIONS[-1]}" in said["database"]
    assert said["writing"].startswith("works")
    assert said["studies"] == "1 with 0 answers"
    assert said["owner"] == "whoever sits at this computer; no key was made yet"
    assert "numpy 2." in said["parts"]
    assert f"arithmetic {fingerprint()}" in said["parts"]


def test_the_owners_key_is_dated_and_not_shown(url: str) -> None:
    store = service.open_store(url)
    key = access.make_owner_key(store)
    access.begin_session(store, key)
    store.close()
    said, wrong = examine(url)
    assert not wrong
    assert said["owner"].startswith("has a key since 20")
    assert "1 sessions run" in said["owner"]
    assert key not in str(said)


def test_looking_changes_nothing(empty_url: str, tmp_path: Path) -> None:
    """No file, no table, no right."""
    said, wrong = examine(empty_url)
    assert not wrong
    if empty_url.startswith("sqlite"):
        assert "not there yet" in said["database"]
        assert not (tmp_path / "empty.db").exists()
    else:
        assert "schema none yet" in said["database"]
        store = look_at(empty_url)
        with store.read() as connection:
            assert sa.inspect(connection).get_table_names() == []
        store.close()


def test_a_file_that_others_may_read_is_said_and_left(tmp_path: Path) -> None:
    file = tmp_path / "dopl.db"
    service.open_store(f"sqlite:///{file}").close()
    file.chmod(0o644)
    said, wrong = examine(f"sqlite:///{file}")
    assert wrong == {"writing"}
    assert "file mode 644, 0." in said["writing"]
    assert f"MB; others may read it: chmod 600 {file}" in said["writing"]
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_database_of_before_is_not_brought_up_to_date(tmp_path: Path) -> None:
    kept = Path(__file__).resolve().parents[1] / "data" / "kept" / "schema3.db"
    file = Path(shutil.copy(kept, tmp_path / "dopl.db"))
    file.chmod(0o600)
    for _ in range(2):
        said, wrong = examine(f"sqlite:///{file}")
        assert not wrong
        assert "schema 0003 (this program's is" in said["database"]


def test_a_newer_database_is_wrong(url: str) -> None:
    store = service.open_store(url)
    with store.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    said, wrong = examine(url)
    assert wrong == {"database"}
    assert "update dopl" in said["database"]


def test_a_clock_that_was_put_back_is_wrong(url: str, study: str) -> None:
    store = service.open_store(url)
    with store.write() as connection:
        connection.execute(sa.update(schema.events).values(at=store.now() + 100_000))
    store.close()
    said, wrong = examine(url)
    assert wrong == {"last event"}
    assert "the clock was put back: set it right" in said["last event"]


def test_a_clock_unlike_the_databases_is_wrong(
    url: str, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def an_hour_ahead(url: str) -> Store:
        store = look_at(url)
        store.clock = lambda: time.time() + 3600
        return store

    monkeypatch.setattr(doctor, "look_at", an_hour_ahead)
    said, wrong = examine(url)
    if url.startswith("postgresql"):
        assert wrong == {"clock"}
        assert "the database's is 3,600 s behind it: set both" in said["clock"]
    else:
        assert not wrong  # there is one clock


def test_leases_of_planners_are_said(url: str, study: str) -> None:
    store = service.open_store(url)
    s = schema.studies.c
    for until, words in ((5000, "1 due, 1 being made"), (-5000, f"whoever made {study} has ended")):
        with store.write() as connection:
            lease = {"planner": "x", "planner_until": store.now() + until}
            connection.execute(sa.update(schema.studies).where(s.id == study).values(lease))
        said, wrong = examine(url)
        assert words in said["plans"]
        assert not wrong
    store.close()


def test_a_damaged_study_is_named(url: str, study: str) -> None:
    store = service.open_store(url)
    with store.write() as connection:
        connection.execute(sa.update(schema.configs).values(content="{"))
        connection.execute(sa.update(schema.studies).values(config_digest="x"))
    store.close()
    said, wrong = examine(url)
    assert wrong == {"studies"}
    assert f"damaged: {study}" in said["studies"]


def test_an_answer_left_in_the_wal_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "dopl.db-wal").write_bytes(b"x")
    said, wrong = examine(f"sqlite:///{tmp_path}/dopl.db")
    assert wrong == {"database"}
    assert "put it back" in said["database"]


def test_a_damaged_file_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "dopl.db"
    service.open_store(f"sqlite:///{file}").close()
    content = bytearray(file.read_bytes())
    content[8192:12288] = os.urandom(4096)
    file.write_bytes(content)
    _, wrong = examine(f"sqlite:///{file}")
    assert wrong


def test_cbc_and_the_disk_can_be_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PlanningError("CBC could not be run")

    usage = namedtuple("usage", "free")
    monkeypatch.setattr(doctor, "plan", fail)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(1 << 20))
    said, wrong = examine(f"sqlite:///{tmp_path}/dopl.db")
    assert wrong == {"CBC", "disk"}
    assert "pip install --force-reinstall pulp" in said["CBC"]
    assert said["disk"].endswith(": free some")


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:secret@localhost:1/none", "postgresql://ann@localhost:1/a?password=secret"],
)
def test_the_command_says_all_but_the_password_and_fails(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", address)
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor"])
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "WRONG database    postgresql+psycopg://ann" in said
    assert "localhost:1" in said
    assert "secret" not in said
    assert said.endswith("1 of these 5 need help.\n")


@pytest.mark.parametrize("address", ["nonsense", "mysql://u:secret@h/d", "sqlite://"])
def test_an_address_that_is_none_is_wrong(address: str) -> None:
    said, wrong = examine(address)
    assert wrong == {"database"}
    assert "secret" not in said["database"]
