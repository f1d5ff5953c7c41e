"""`dopl app`: at home it just starts; open to the network it first makes the owner a key."""

import re
import subprocess

import pytest

from dopl_core import cli
from dopl_core.studies import access, service


@pytest.fixture
def started(tmp_path, monkeypatch):
    """What would have been started."""
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path / 'dopl.db'}")
    monkeypatch.delenv("STREAMLIT_SERVER_ADDRESS", raising=False)
    monkeypatch.delenv("DOPL_ASK_FOR_KEY", raising=False)
    commands: list[list[str]] = []

    def call(command, cwd, env):
        commands.append(command if "DOPL_ASK_FOR_KEY" not in env else [*command, "asks for a key"])
        return 0

    monkeypatch.setattr(subprocess, "call", call)
    return commands


def run(*words):
    with pytest.raises(SystemExit) as ended:
        cli.main(["app", *words])
    assert ended.value.code == 0


@pytest.mark.parametrize(
    "words", [(), ("--server.port", "8600"), ("--server.address=localhost",)], ids=str
)
def test_on_this_computer_nothing_asks_for_a_key(started, capsys, words):
    run(*words)
    assert started[0][-len(words) :] == list(words) if words else True
    assert "asks for a key" not in started[0]
    assert "key=" not in capsys.readouterr().out
    assert not access.has_owner_key(service.open_store())


@pytest.mark.parametrize(
    "words",
    [("--server.address", "0.0.0.0"), ("--server.address=::",), ("--server.address=",)],  # noqa: S104
    ids=str,
)
def test_open_to_the_network_a_key_is_made_and_printed_once(started, capsys, words):
    run(*words, "--server.port", "8600")
    key = re.search(r"http://\S+:8600/\?key=(\S+)", capsys.readouterr().out)[1]
    assert access.is_owner(service.open_store(), key)
    run(*words)
    assert "key=" not in capsys.readouterr().out
    assert len(started) == 2


def test_behind_a_proxy_the_key_is_asked_for_on_this_computer_too(started, capsys):
    run("--key", "--server.port", "8600")
    key = re.search(r"http://localhost:8600/\?key=(\S+)", capsys.readouterr().out)[1]
    assert access.is_owner(service.open_store(), key)
    assert started[0][-3:] == ["--server.port", "8600", "asks for a key"]


def test_the_address_may_come_from_the_environment(started, capsys, monkeypatch):
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "clinic.example")
    run()
    assert "http://clinic.example:8501/?key=" in capsys.readouterr().out


def test_files_are_named_from_where_the_command_is_run(started, tmp_path, monkeypatch):
    """The app runs in a folder of its own."""
    given = []
    monkeypatch.setattr(subprocess, "call", lambda command, cwd, env: given.append(env) or 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOPL_DATABASE_URL", "sqlite:///mine.db")
    monkeypatch.setenv("DOPL_RUNS", "runs")
    run()
    assert given[0]["DOPL_DATABASE_URL"] == f"sqlite:///{tmp_path}/mine.db"
    assert given[0]["DOPL_RUNS"] == f"{tmp_path}/runs"
    monkeypatch.setenv("DOPL_DATABASE_URL", "postgresql://ann:a%40b@host/clinic")
    run()
    assert given[1]["DOPL_DATABASE_URL"] == "postgresql+psycopg://ann:a%40b@host/clinic"


def test_a_new_key_replaces_the_old_one(started, capsys):
    run("--server.address", "0.0.0.0")  # noqa: S104
    old = capsys.readouterr().out.rpartition("key=")[2].strip()
    cli.main(["key"])
    new = capsys.readouterr().out.rpartition("key=")[2].strip()
    store = service.open_store()
    assert access.is_owner(store, new)
    assert not access.is_owner(store, old)


def test_the_link_is_to_where_a_proxy_is(started, capsys):
    cli.main(["key", "--address", "https://dopl.example/"])
    said = capsys.readouterr().out
    key = re.search(r" https://dopl\.example/\?key=(\S+)\n", said)[1]
    assert access.is_owner(service.open_store(), key)


def test_what_is_wrong_is_said_without_moving_the_cursor(started):
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", "\x1b[2Jno-such"])
    assert ended.value.code == 'dopl: there is no study " [2Jno-such"'
