"""The door for websockets: which messages reach Streamlit, of whom, how large and how often."""

import asyncio
from types import SimpleNamespace

import loops
import pytest
from starlette.datastructures import Headers
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.server import ServerProtocol

from dopl_core.studies import StoreError, access
from pages.shared import sockets
from pages.shared.sockets import Websockets

KINDS = [field.name for field in BackMsg.DESCRIPTOR.fields]


def message(kind, query=""):
    """One of Streamlit's messages, as bytes."""
    sent = BackMsg()
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if field.message_type is None:
        setattr(sent, kind, True if field.type == field.TYPE_BOOL else "x")
    else:
        getattr(sent, kind).SetInParent()
    if query:
        sent.rerun_script.query_string = query
    return sent.SerializeToString()


def operation(kind):
    sent = BackMsg()
    getattr(sent.backend_operation_request, kind).SetInParent()
    return sent.SerializeToString()


class Socket:
    """A visitor's websocket: sends messages, and notes what reaches the app and how it ends."""

    def __init__(self, *sent, owner=False, text=None):
        host = b"localhost:8501" if owner else b"clinic.example"
        self.scope = {"headers": [(b"host", host)], "client": ("127.0.0.1", 1)}
        self.to_send = [{"type": "websocket.receive", "bytes": one} for one in sent]
        if text is not None:
            self.to_send.append({"type": "websocket.receive", "text": text})
        self.passed, self.code = [], None

    async def receive(self):
        await asyncio.sleep(0)
        return self.to_send.pop(0) if self.to_send else {"type": "websocket.disconnect"}

    async def send(self, reply):
        if reply["type"] == "websocket.close":
            self.code = reply["code"]

    async def app(self, scope, receive, send):
        while (one := await receive())["type"] != "websocket.disconnect":
            self.passed.append(one["bytes"])
        await send({"type": "websocket.send", "bytes": b""})

    def play(self, door=None):
        loops.run((door or Websockets(self.app))(self.scope, self.receive, self.send))
        return self


@pytest.fixture
def slept(monkeypatch):
    """The seconds that visitors would have waited."""
    seconds, sleep = [], asyncio.sleep

    async def note(wait):
        if wait:
            seconds.append(wait)
        await sleep(0)

    monkeypatch.setattr(sockets.asyncio, "sleep", note)
    return seconds


def test_streamlit_still_has_the_messages_that_pages_need():
    operations = BackMsg.DESCRIPTOR.fields_by_name["backend_operation_request"].message_type
    words = "Streamlit has renamed a message: name it in pages/shared/sockets.py"
    assert set(KINDS) >= sockets.FOR_MEMBERS, words
    assert {field.name for field in operations.fields} >= sockets.OPERATIONS, words


@pytest.mark.parametrize("kind", KINDS)
def test_only_messages_that_pages_need_are_passed_on(store, kind):
    sent, page = message(kind), message("rerun_script")
    stranger = Socket(sent, page).play()
    assert stranger.passed == [
        one for one in (sent, page) if kind in sockets.FOR_ALL or one == page
    ]
    operations = kind == "backend_operation_request"  # this one without an operation
    allowed = kind in sockets.FOR_MEMBERS and not operations
    assert Socket(sent, owner=True).play().passed == [sent] * allowed


@pytest.mark.parametrize(
    "kind", ["deferred_file", "dataframe_chunk", "install_skills", "dismiss_skills_nudge"]
)
def test_only_owners_ask_for_files_and_rows_and_nobody_installs_anything(store, kind):
    sent = operation(kind)
    assert Socket(sent).play().passed == []
    assert Socket(sent, owner=True).play().passed == [sent] * (kind in sockets.OPERATIONS)


@pytest.mark.parametrize("sent", [b"\xff\xff\xff", b"\x08"])
def test_what_is_no_message_closes_the_websocket(store, sent):
    socket = Socket(sent, message("rerun_script"), owner=True).play()
    assert (socket.passed, socket.code) == ([], 1008)


def test_text_closes_the_websocket(store):
    assert Socket(text="hello").play().code == 1008


def test_messages_are_limited_by_who_sends_them(store):
    large = message("rerun_script", "x" * sockets.MOST_SENT)
    assert Socket(large).play().code == 1009
    assert Socket(large, owner=True).play().passed == [large]
    huge = message("rerun_script", "x" * sockets.MOST_SENT_BY_MEMBERS)
    assert Socket(huge, owner=True).play().code == 1009


def test_strangers_wait_after_some_messages(store, slept):
    sent = [message("rerun_script", "invite=wrong")] * (sockets.AT_ONCE + 3)
    assert Socket(*sent).play().passed == sent
    assert slept.count(sockets.PACE_SECONDS) == 3
    assert slept.count(sockets.TURN_SECONDS) == len(sent)  # between any two strangers


def test_people_with_a_valid_link_and_owners_do_not_wait(store, study, slept):
    links = (
        f"invite={access.invite(store, study, 'Ann')}&participant=7",
        f"read={access.invite(store, study, 'Bo', 'list')}",
    )
    for link in links:
        Socket(*[message("rerun_script", link)] * 50).play()
    Socket(*[message("rerun_script")] * 50, owner=True).play()
    assert slept == []


def test_messages_that_are_not_passed_on_are_waited_for_too(store, slept):
    assert Socket(*[message("clear_cache")] * (sockets.AT_ONCE + 2)).play().passed == []
    assert slept.count(sockets.PACE_SECONDS) == 2


def test_whoever_waits_for_the_database_waits_a_second(store, slept, monkeypatch):
    def fail(*_):
        raise StoreError("down")

    monkeypatch.setattr(access, "find_invite", fail)
    sent = [message("rerun_script", "invite=x")] * (sockets.AT_ONCE + 3)
    assert Socket(*sent).play().passed == sent
    assert slept.count(sockets.OUTAGE_SECONDS) == len(sent)
    assert sockets.PACE_SECONDS not in slept


def test_one_stranger_too_many_closes_the_oldest(store, study, monkeypatch):
    monkeypatch.setattr(sockets, "MOST_STRANGERS", 3)
    token = access.invite(store, study, "Ann")

    async def crowd():
        end = asyncio.Event()

        async def stay(scope, receive, send):
            await receive()
            await end.wait()

        door = Websockets(stay)
        known = Socket(message("rerun_script", f"invite={token}"))
        many = [known, *(Socket(message("rerun_script")) for _ in range(5))]
        visits = []
        for one in many:
            visits.append(asyncio.create_task(door(one.scope, one.receive, one.send)))
            while one.to_send or (one is known and door.strangers):
                await asyncio.sleep(0.001)
        end.set()
        await asyncio.gather(*visits, *door.closing)
        assert door.strangers == {}
        return [one.code for one in many]

    assert loops.run(crowd()) == [None, 1008, 1008, None, None, None]


def test_frames_are_limited_in_the_servers_own_protocol():
    server = SimpleNamespace(conn=ServerProtocol(max_size=1000))
    server.receive = Socket.receive.__get__(server)
    assert sockets.limit_frames(server.receive, 10)
    assert server.conn.max_message_size == 10
    assert not sockets.limit_frames(Headers, 10)


def test_few_messages_of_a_visitor_wait_and_their_end_is_never_dropped():
    connect, end = {"type": "websocket.connect"}, {"type": "websocket.disconnect"}
    server = SimpleNamespace(queue=asyncio.Queue())
    server.receive = Socket.receive.__get__(server)
    server.queue.put_nowait(connect)
    assert sockets.limit_waiting(server.receive)
    for _ in range(5 * sockets.MOST_WAITING):  # what comes in one packet is read at once
        server.queue.put_nowait({"type": "websocket.receive", "bytes": b"x"})
    server.queue.put_nowait(end)
    waiting = [server.queue.get_nowait() for _ in range(server.queue.qsize())]
    assert len(waiting) == sockets.MOST_WAITING + 1
    assert (waiting[0], waiting[-1]) == (connect, end)
    assert not sockets.limit_waiting(Headers)
