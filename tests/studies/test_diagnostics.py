"""`dopl doctor`: failed checks name a remedy; checks change nothing and show no secret."""

import os
import time
from collections import namedtuple
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import clinic

from dopl_core import cli, studies
from dopl_core.learning.planning import PlanningError
from dopl_core.learning.reproducibility import fingerprint
from dopl_core.studies import access, diagnostics
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store, look_at


def run_checks(url: str) -> tuple[dict[str, str], set[str]]:
    """The result of each check by name, and the names of the failed ones."""
    checks = diagnostics.run_checks(url)
    results = {check.name: check.result for check in checks}
    return results, {check.name for check in checks if check.failed}


@pytest.fixture
def study(url: str) -> str:
    store = studies.open_store(url)
    made = studies.create_study(store, clinic())
    store.close()
    return made


def test_all_checks_pass_on_a_new_database(url: str, study: str) -> None:
    results, failed = run_checks(url)
    assert failed == set()
    assert f"schema {tables.VERSIONS[-1]}" in results["database"]
    assert results["writing"].startswith("works")
    assert results["studies"] == "1 with 0 answers"
    assert results["owner"] == "no key yet; anybody at this computer is the owner"
    assert "numpy 2." in results["packages"]
    assert f"arithmetic {fingerprint()}" in results["packages"]


def test_the_owner_key_is_dated_and_not_shown(url: str) -> None:
    store = studies.open_store(url)
    key = access.make_owner_key(store)
    access.begin_session(store, key, "clinic.example")
    store.close()
    results, failed = run_checks(url)
    assert not failed
    assert results["owner"].startswith("key made 20")
    assert results["owner"].endswith("active sessions: 1")
    assert key not in str(results)


def test_checks_change_nothing(empty_url: str, tmp_path: Path) -> None:
    """No file, no table, no permission."""
    results, failed = run_checks(empty_url)
    assert not failed
    if empty_url.startswith("sqlite"):
        assert "does not exist yet" in results["database"]
        assert not (tmp_path / "empty.db").exists()
    else:
        assert "schema none yet" in results["database"]
        store = look_at(empty_url)
        with store.read() as connection:
            assert sa.inspect(connection).get_table_names() == []
        store.close()


def test_a_file_that_other_users_can_read_fails_and_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "dopl.db"
    studies.open_store(f"sqlite:///{file}").close()
    file.chmod(0o644)
    results, failed = run_checks(f"sqlite:///{file}")
    assert failed == {"writing"}
    assert "file mode 644, 0." in results["writing"]
    assert f"MB; other users can read it: chmod 600 {file}" in results["writing"]
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_database_of_a_newer_schema_fails(url: str) -> None:
    store = studies.open_store(url)
    with store.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    results, failed = run_checks(url)
    assert failed == {"database"}
    assert "use a version of dopl that knows it" in results["database"]


def test_a_clock_that_was_set_back_fails(url: str, study: str) -> None:
    store = studies.open_store(url)
    with store.write() as connection:
        connection.execute(sa.update(tables.events).values(at=store.now() + 100_000))
    store.close()
    results, failed = run_checks(url)
    assert failed == {"last event"}
    assert "the clock was set back; correct it" in results["last event"]


def test_a_clock_that_differs_from_the_databases_fails(
    url: str, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def an_hour_ahead(url: str) -> Store:
        store = look_at(url)
        store.clock = lambda: time.time() + 3600
        return store

    monkeypatch.setattr(diagnostics, "look_at", an_hour_ahead)
    results, failed = run_checks(url)
    if url.startswith("postgresql"):
        assert failed == {"clock"}
        assert "the database's clock is 3,600 s behind it: synchronise both" in results["clock"]
    else:
        assert not failed  # there is one clock


def test_plans_being_made_and_interrupted_ones_are_reported(url: str, study: str) -> None:
    store = studies.open_store(url)
    s = tables.studies.c
    for until, words in ((5000, "1 due, 1 being made"), (-5000, f"interrupted: {study}")):
        with store.write() as connection:
            lease = {"planner": "x", "planner_until": store.now() + until}
            connection.execute(sa.update(tables.studies).where(s.id == study).values(lease))
        results, failed = run_checks(url)
        assert words in results["plans"]
        assert not failed
    store.close()


def test_a_damaged_study_is_named(url: str, study: str) -> None:
    store = studies.open_store(url)
    with store.write() as connection:
        connection.execute(sa.update(tables.configs).values(content="{"))
        connection.execute(sa.update(tables.studies).values(config_digest="x"))
    store.close()
    results, failed = run_checks(url)
    assert failed == {"studies"}
    assert f"damaged: {study}" in results["studies"]


def test_a_wal_without_its_database_fails(tmp_path: Path) -> None:
    (tmp_path / "dopl.db-wal").write_bytes(b"x")
    results, failed = run_checks(f"sqlite:///{tmp_path}/dopl.db")
    assert failed == {"database"}
    assert "put it back" in results["database"]


def test_a_damaged_file_fails(tmp_path: Path) -> None:
    file = tmp_path / "dopl.db"
    studies.open_store(f"sqlite:///{file}").close()
    content = bytearray(file.read_bytes())
    content[8192:12288] = os.urandom(4096)
    file.write_bytes(content)
    _, failed = run_checks(f"sqlite:///{file}")
    assert failed


def test_a_missing_cbc_and_a_full_disk_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PlanningError("CBC could not be run")

    usage = namedtuple("usage", "free")
    monkeypatch.setattr(diagnostics, "plan", fail)
    monkeypatch.setattr(diagnostics.shutil, "disk_usage", lambda _: usage(1 << 20))
    results, failed = run_checks(f"sqlite:///{tmp_path}/dopl.db")
    assert failed == {"CBC", "disk"}
    assert "pip install --force-reinstall pulp" in results["CBC"]
    assert results["disk"].endswith(": free some space")


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:secret@localhost:1/none", "postgresql://ann@localhost:1/a?password=secret"],
)
def test_the_command_shows_no_password_and_exits_with_an_error(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", address)
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor"])
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "FAIL  database    postgresql+psycopg://ann" in said
    assert "localhost:1" in said
    assert "secret" not in said
    assert said.endswith("1 of 5 checks failed.\n")


@pytest.mark.parametrize("password", ["x@secret", "x@y:secret", "secret@x", "se/cret@x:y@secret"])
def test_no_part_of_a_password_with_an_at_sign_is_shown(
    password: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", f"postgresql://ann:{password}@localhost:1/none")
    monkeypatch.setattr(diagnostics, "_cbc", lambda: diagnostics.Check("CBC", "runs"))
    for command in ("doctor", "studies"):
        with pytest.raises(SystemExit) as ended:
            cli.main([command])
        said = str(capsys.readouterr()) + str(ended.value)
        assert "write @ in a user name or a password as %40" in said
        assert "secret" not in said


@pytest.mark.parametrize("address", ["nonsense", "mysql://u:secret@h/d", "sqlite://"])
def test_an_invalid_database_address_fails(address: str) -> None:
    results, failed = run_checks(address)
    assert failed == {"database"}
    assert "secret" not in results["database"]
