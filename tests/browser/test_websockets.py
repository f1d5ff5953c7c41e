"""Websockets against strangers: what they send neither changes nor fills the server."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from app_server import ROOT
from forged import ask, signed_in, visited
from raw_visit import Visit
from streamlit import net_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web import bootstrap
from websockets.exceptions import InvalidStatus

from dopl_core import studies
from dopl_core.studies import access


def processes_of(server):
    """The processes that a server has started."""
    tasks = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text().split()}


def memory_of(server):
    """Resident megabytes."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096 >> 20


def test_nobody_can_empty_the_caches_of_the_server(guarded):
    """Streamlit would drop the store, the planner and drafts, and start others."""
    stranger, owner = Visit(guarded.port), Visit(guarded.port, {"Cookie": signed_in(guarded)})
    owner.run()
    before = processes_of(guarded)
    assert len(before) == 1
    for visit in (stranger, owner):
        visit.socket.send(BackMsg(clear_cache=True).SerializeToString())
        visit.run()
        visit.close()
    assert processes_of(guarded) == before


@pytest.mark.parametrize("who", ["stranger", "owner"])
def test_a_frame_that_is_too_large_is_not_read(guarded, who):
    headers = {"Cookie": signed_in(guarded)} if who == "owner" else {}
    visit = Visit(guarded.port, headers)
    visit.run()
    before, sent, chunk = memory_of(guarded), 0, bytes(1 << 20)
    raw = visit.socket.socket
    raw.sendall(bytes([0x82, 0xFF]) + (180 << 20).to_bytes(8, "big") + bytes(4))
    with contextlib.suppress(OSError):
        while sent < 180:
            raw.sendall(chunk)
            sent += 1
    assert sent < 20
    assert memory_of(guarded) - before < 20
    visit.close()


def test_the_server_can_limit_what_waits(guarded):
    visited(guarded)
    assert "This version of uvicorn" not in guarded.log()


@pytest.mark.long
def test_a_flood_of_strangers_starts_nothing_and_loses_nothing(guarded):
    """Everything that Streamlit understands, over 20 websockets for three seconds."""
    store, study = guarded.store, guarded.study
    studies.change_draft(store, study, 1, lambda draft: draft.states.update(p1="Low"))
    ann = Visit(guarded.port)
    link = f"invite={access.invite(store, study, 'Ann')}"
    ann.run(link, "annotate")
    before = processes_of(guarded)
    script = [sys.executable, str(ROOT / "tests" / "benchmarks" / "_flood.py"), str(guarded.port)]
    flood = subprocess.Popen([*script, "20", "3"], stdout=subprocess.PIPE, text=True)
    pages = 0
    while flood.poll() is None:
        pages += "You need a link" not in ann.run(link, "annotate")
    messages, websockets = map(int, flood.communicate()[0].split())
    assert messages > 100
    assert websockets >= 20
    assert pages
    assert processes_of(guarded) == before
    assert studies.read_draft(store, study, 1).states == {"p1": "Low"}
    assert "You need a link" in visited(guarded)
    ann.close()


@pytest.mark.long
def test_no_request_leaves_the_server(guarded):
    token = access.invite(guarded.store, guarded.study, "Cy")
    stranger, owner = Visit(guarded.port), Visit(guarded.port, {"Cookie": signed_in(guarded)})
    stranger.run(f"invite={token}", "annotate")
    for page in ("", "annotate", "studies", "insights", "simulate", "help"):
        owner.run(f"study={guarded.study}" if page in ("studies", "insights") else "", page)
    for origin in ("https://evil.example", "http://192.0.2.1", "", "null"):
        with pytest.raises(InvalidStatus):
            visited(guarded, {"Origin": origin})
        ask(guarded, "GET", "/_stcore/host-config", {"Origin": origin})
    owner.close()
    stranger.close()
    assert not guarded.left.exists(), guarded.left.read_text()


def test_streamlit_does_not_ask_other_servers_for_its_address(monkeypatch, capsys):
    """It would at the start, where it is bound to all addresses, to print them."""
    asked = []
    monkeypatch.setattr(net_util, "get_external_ip", lambda: asked.append("external"))
    monkeypatch.setattr(net_util, "get_internal_ip", lambda: asked.append("internal"))
    monkeypatch.setattr(bootstrap.config, "_config_options", None)
    monkeypatch.chdir(ROOT)
    options = {"server_address": "0.0.0.0", "server_headless": True}  # noqa: S104
    bootstrap.load_config_options(options)
    bootstrap._print_url(is_running_hello=False)
    assert "http://localhost:8501" in capsys.readouterr().out
    assert asked == []


def member(server, role, study):
    """The cookie of somebody who signed in and has a role."""
    name, host = f"{role}@clinic.example", f"localhost:{server.port}"
    studies.add_member(server.store, study, name, role)
    token = access.begin_member_session(server.store, name, {"email": name}, host)
    return {"Cookie": f"dopl_owner_{server.port}={token}"}


@pytest.mark.long
def test_forged_messages_of_members_do_what_their_role_allows(guarded):
    """Every page, an owner's button and a fragment, as each role; with a role that shrinks."""
    store, study = guarded.store, guarded.study
    other = studies.create_study(store, studies.from_environment("cpap", practice=False))
    owner = Visit(guarded.port, member(guarded, "owner", study))
    assert "Pause" in owner.run(f"study={study}", "studies")
    pause, _ = owner.button("pause")
    [fragment] = {
        one.delta.fragment_id
        for one in owner.seen
        if one.delta.new_element.metric.label == "Answers"
    }
    opens = {"coordinator": {"studies", "insights"}, "reader": {"list"}, "annotator": {"annotate"}}
    for role, pages in opens.items():
        visit = Visit(guarded.port, member(guarded, role, study))
        for page in ("studies", "insights", "list", "annotate", "simulate", "audit"):
            reply = visit.run(f"study={study}", page, click=pause)
            is_closed = "This page is closed to you" in reply
            # A page that is not in the navigation is "not found", and home opens their own.
            assert (not is_closed and "page_not_found" not in reply) == (page in pages), page
            if page in pages - {"insights"}:
                assert "This needs the role" in visit.run(f"study={other}", page)
        visit.close()
    owner.run(f"study={study}", "studies")
    member(guarded, "owner", other)
    studies.add_member(store, study, "owner@clinic.example", "coordinator")
    assert "This needs the role owner in this study" in owner.run(
        f"study={study}", "studies", click=pause
    )
    assert studies.get_study(store, study).status == "running"
    for where in (study, other):
        studies.remove_member(store, where, "owner@clinic.example")
    assert "Answers" not in owner.run(f"study={study}", "studies", fragment=fragment)
    assert "You need a link" in owner.run(f"study={study}", "studies", click=pause)
    assert studies.get_study(store, study).status == "running"
    owner.close()
    refused = {(one.who, one.act) for one in studies.read_audit(store, study) if one.refused}
    assert ("owner@clinic.example (signed in)", "study paused") in refused


@pytest.mark.parametrize(("role", "refused"), [("coordinator", False), ("reader", True)])
def test_coordinators_upload_and_readers_do_not(guarded, role, refused):
    """Streamlit then refuses it for lack of its own token."""
    headers = member(guarded, role, guarded.study)
    reply = ask(guarded, "PUT", "/_stcore/upload_file/none/1", headers, b"x")
    assert reply.status == 403
    assert (b"Only owners and coordinators may upload" in reply.content) == refused
