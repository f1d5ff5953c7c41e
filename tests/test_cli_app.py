"""`dopl app`: at home it just starts; open to the network it first makes the owner a key."""

import os
import re
import socket
import sys
import time
from pathlib import Path

import pytest
from app_server import Server
from raw_visit import Visit

from dopl_core import cli, studies
from dopl_core.studies import access


@pytest.fixture
def started(tmp_path, monkeypatch):
    """What would have been started."""
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path / 'dopl.db'}")
    monkeypatch.delenv("STREAMLIT_SERVER_ADDRESS", raising=False)
    monkeypatch.delenv("DOPL_ASK_FOR_KEY", raising=False)
    commands: list[list[str]] = []

    def execve(program, command, env):
        commands.append(command if "DOPL_ASK_FOR_KEY" not in env else [*command, "asks for a key"])

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.chdir(tmp_path)  # and back again: the app runs in a folder of its own
    return commands


def run(*words):
    cli.main(["app", *words])


@pytest.mark.parametrize(
    "words", [(), ("--server.port", "8600"), ("--server.address=localhost",)], ids=str
)
def test_on_this_computer_nothing_asks_for_a_key(started, capsys, words):
    run(*words)
    assert started[0][-len(words) :] == list(words) if words else True
    assert "asks for a key" not in started[0]
    assert "key=" not in capsys.readouterr().out
    assert not access.has_owner_key(studies.open_store())


@pytest.mark.parametrize(
    "words",
    [("--server.address", "0.0.0.0"), ("--server.address=::",), ("--server.address=",)],  # noqa: S104
    ids=str,
)
def test_open_to_the_network_a_key_is_made_and_printed_once(started, capsys, words):
    run(*words, "--server.port", "8600")
    key = re.search(r"http://\S+:8600/\?key=(\S+)", capsys.readouterr().out)[1]
    assert access.is_owner(studies.open_store(), key)
    run(*words)
    assert "key=" not in capsys.readouterr().out
    assert len(started) == 2


def test_behind_a_proxy_the_key_is_asked_for_on_this_computer_too(started, capsys):
    run("--key", "--server.port", "8600")
    key = re.search(r"http://localhost:8600/\?key=(\S+)", capsys.readouterr().out)[1]
    assert access.is_owner(studies.open_store(), key)
    assert started[0][-3:] == ["--server.port", "8600", "asks for a key"]


def test_the_address_may_come_from_the_environment(started, capsys, monkeypatch):
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "clinic.example")
    run()
    assert "http://clinic.example:8501/?key=" in capsys.readouterr().out


def test_files_are_named_from_where_the_command_is_run(started, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(os, "execve", lambda program, command, env: given.append(env))
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
    store = studies.open_store()
    assert access.is_owner(store, new)
    assert not access.is_owner(store, old)


def test_the_link_is_to_where_a_proxy_is(started, capsys):
    cli.main(["key", "--address", "https://dopl.example/"])
    said = capsys.readouterr().out
    key = re.search(r" https://dopl\.example/\?key=(\S+)\n", said)[1]
    assert access.is_owner(studies.open_store(), key)


def test_what_is_wrong_is_said_without_moving_the_cursor(started):
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", "\x1b[2Jno-such"])
    assert ended.value.code == 'dopl: there is no study " [2Jno-such"'


def test_a_file_that_is_not_there_is_named_in_plain_words(started):
    with pytest.raises(SystemExit) as ended:
        cli.main(["new", "roster.csv", "--states", "Low,High", "--budget", "2", "--title", "C"])
    assert ended.value.code == "dopl: roster.csv: No such file or directory"


def test_a_reader_who_has_read_enough_is_no_error(started, monkeypatch):
    """As in `dopl studies | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        with pytest.raises(SystemExit) as ended:
            cli.main(["key"])
    assert ended.value.code == 1


@pytest.mark.long
def test_the_app_ended_by_a_signal_leaves_nothing_running(tmp_path):
    server = Server(tmp_path)
    server.command = [sys.executable, "-m", "dopl_core.cli", "app"]
    server.start()
    assert b"streamlit" in Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    visit = Visit(server.port)  # the first visit starts the planner
    visit.run()
    children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    [planner] = [pid for task in children for pid in task.read_text().split()]
    server.process.terminate()
    server.process.wait(60)
    for _ in range(3000):
        if not Path(f"/proc/{planner}").exists():
            break
        time.sleep(0.02)
    assert not Path(f"/proc/{planner}").exists()
    with pytest.raises(OSError, match="refused"), socket.socket() as again:
        again.connect(("127.0.0.1", server.port))
