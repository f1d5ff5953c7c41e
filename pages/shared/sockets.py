"""Websockets: which messages of a visitor reach Streamlit, how large, and how often.

Streamlit obeys every message of its own protocol from any visitor: one empties all caches, others
install files or stop the server. Here only messages that our pages need are passed on.

A member is an owner, coordinator or reader with a session, or anybody on the owner's own computer.
A stranger is a visitor who has shown neither a session nor a valid link on this websocket.
Strangers may load a page; after some messages they wait before each further one. Waiting costs
nothing: the server does not read from a websocket whose last message is not passed on yet.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs

from google.protobuf.message import DecodeError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.server import ServerProtocol

from dopl_core import studies
from dopl_core.studies import access
from pages.shared.backend import store
from pages.shared.visitors import has_role, peer_of, request_actor

FOR_ALL = {"rerun_script", "stop_script"}
FOR_MEMBERS = FOR_ALL | {"file_urls_request", "backend_operation_request"}
OPERATIONS = {"deferred_file", "dataframe_chunk"}  # of backend_operation_request

MOST_SENT = 64 << 10  # bytes of a message
MOST_SENT_BY_MEMBERS = 8 << 20
MOST_WAITING = 100  # messages of a visitor that were read and not passed on; more are dropped
AT_ONCE = 2  # messages of a stranger that are passed on without a wait
PACE_SECONDS = 10.0  # before each further one
TURN_SECONDS = 0.1  # between two messages of any strangers, so that they do not come all at once
OUTAGE_SECONDS = 1.0  # before each one while the database cannot be asked
MOST_STRANGERS = 200  # open websockets; one more closes the oldest

_POLICY, _TOO_BIG = 1008, 1009  # codes of RFC 6455
_log = logging.getLogger(__name__)


class Websockets:
    """The door for websockets, in front of Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.strangers: dict[int, Callable[[int], object]] = {}  # how to close each, oldest first
        self.turn = asyncio.Lock()  # strangers pass one after the other
        self.closing: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = _Visit(Headers(scope=scope), peer_of(scope), receive, send)
        limit_frames(receive, MOST_SENT)
        limit_waiting(receive)
        self.strangers[id(visit)] = lambda code: self._close(visit, code)
        if len(self.strangers) > MOST_STRANGERS:
            self.strangers.pop(next(iter(self.strangers)))(_POLICY)
        try:
            await self._recognise(visit)
            await self.app(scope, lambda: self._next(visit), visit.send)
        finally:
            self.strangers.pop(id(visit), None)

    async def _next(self, visit: "_Visit") -> Message:
        """The next message that may be passed on."""
        while True:
            message = await visit.receive()
            if message["type"] != "websocket.receive":
                return message
            sent = _parsed(message.get("bytes"))
            if sent is None or len(message["bytes"]) > visit.most:
                code = _POLICY if sent is None else _TOO_BIG
                await visit.close(code)
                return {"type": "websocket.disconnect", "code": code}
            await self._pace(visit, sent)
            if _may_send(sent, visit.is_member):
                return message

    async def _pace(self, visit: "_Visit", sent: BackMsg) -> None:
        """Let strangers wait for each other, and longer once they have sent some messages."""
        if visit.is_known:
            return
        visit.messages += 1
        if visit.messages > AT_ONCE:
            await asyncio.sleep(PACE_SECONDS)
        await self._recognise(visit, sent.rerun_script.query_string)
        if not visit.is_known:
            async with self.turn:
                await asyncio.sleep(TURN_SECONDS)

    async def _recognise(self, visit: "_Visit", query: str = "") -> None:
        """Find out whether a visitor is a member or has a valid link.

        What a page shows does not depend on this: its guard checks at every click.
        """
        try:
            found = await asyncio.to_thread(_recognised, visit.headers, visit.peer, query)
        except studies.StoreError:  # people who wait for the database look again every 2 s
            visit.messages = 0
            await asyncio.sleep(OUTAGE_SECONDS)
            return
        visit.is_member, visit.is_known = found
        if visit.is_member:
            limit_frames(visit.receive, MOST_SENT_BY_MEMBERS)
            visit.most = MOST_SENT_BY_MEMBERS
        if visit.is_known:
            self.strangers.pop(id(visit), None)

    def _close(self, visit: "_Visit", code: int) -> None:
        """Close a websocket without waiting for a visitor who does not read."""
        task = asyncio.create_task(visit.close(code))
        self.closing.add(task)
        task.add_done_callback(self.closing.discard)


class _Visit:
    """One websocket, and what is known of its visitor."""

    def __init__(self, headers: Headers, peer: str | None, receive: Receive, send: Send) -> None:
        self.headers, self.peer, self.receive, self._send = headers, peer, receive, send
        self.is_member = self.is_known = self.is_closed = False
        self.most, self.messages = MOST_SENT, 0

    async def send(self, message: Message) -> None:
        if not self.is_closed:
            await self._send(message)

    async def close(self, code: int) -> None:
        if not self.is_closed:
            self.is_closed = True
            with suppress(OSError, RuntimeError):  # it has gone already
                await self._send({"type": "websocket.close", "code": code})


def limit_frames(receive: Receive, most: int) -> bool:
    """Have the server refuse larger messages by their first bytes; whether it can.

    Uvicorn has one limit for everybody, so this reaches for the protocol of this websocket. A
    message is limited by its length, too, after it was read.
    """
    protocol = getattr(getattr(receive, "__self__", None), "conn", None)
    if not isinstance(protocol, ServerProtocol) or not hasattr(protocol, "max_message_size"):
        _log.warning("This version of uvicorn or websockets reads messages before they are limited")
        return False
    protocol.max_message_size = most
    return True


class _Waiting(asyncio.Queue[Message]):
    """Messages that were read; those above a number are dropped."""

    def put_nowait(self, message: Message) -> None:
        if message["type"] != "websocket.receive" or self.qsize() < MOST_WAITING:
            super().put_nowait(message)


def limit_waiting(receive: Receive) -> bool:
    """Have the server keep few messages that wait; whether it can.

    Uvicorn stops reading when a message waits, but keeps all that came with it: thousands of small
    ones fit into the 256 kB that are read at a time.
    """
    server = getattr(receive, "__self__", None)
    found = getattr(server, "queue", None)
    if not isinstance(found, asyncio.Queue):
        _log.warning("This version of uvicorn keeps any number of messages that wait")
        return False
    waiting = _Waiting()
    while not found.empty():
        waiting.put_nowait(found.get_nowait())
    server.queue = waiting  # type: ignore[union-attr]
    return True


def _parsed(data: bytes | None) -> BackMsg | None:
    """A message of Streamlit's protocol; None if it is something else."""
    try:
        return None if data is None else BackMsg.FromString(data)
    except DecodeError:
        return None


def _may_send(sent: BackMsg, is_member: bool) -> bool:
    kind = sent.WhichOneof("type")
    if kind == "backend_operation_request":
        operation = sent.backend_operation_request.WhichOneof("payload")
        return is_member and operation in OPERATIONS
    return kind in (FOR_MEMBERS if is_member else FOR_ALL)


def _recognised(headers: Headers, peer: str | None, query: str) -> tuple[bool, bool]:
    """Whether a visitor is a member, and whether they have a session or a valid link."""
    actor = request_actor(headers, peer)
    if actor.roles:
        return has_role(actor, "owner", "coordinator", "reader"), True
    given = parse_qs(query)
    links: list[tuple[str, access.Opens]] = [("invite", "duels"), ("read", "list")]
    found = (access.find_invite(store(), given[name][0], by) for name, by in links if name in given)
    return False, any(found)
