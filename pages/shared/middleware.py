"""Middleware: what every request passes before Streamlit sees it.

It refuses requests that pages of other sites make, exchanges the owner's key for a session, limits
uploads, and forbids other sites to show our pages in a frame. If everybody on this computer is the
owner, it lets in only requests to this computer's own names.

Streamlit would ask other servers for its own address to judge a foreign `Origin`, while everybody
waits. So it never sees one.
"""

import asyncio
import logging
import os
from collections import Counter
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from dopl_core import studies
from dopl_core.studies import access
from pages.shared.backend import store
from pages.shared.browser_cookie import add_browser_cookie
from pages.shared.session_cookie import set_session_cookie
from pages.shared.sign_in import ADDRESSES, sign_in_reply
from pages.shared.sign_in_settings import sign_in_settings
from pages.shared.sockets import Websockets
from pages.shared.visitors import (
    has_role,
    is_local_name,
    is_local_only,
    is_same_origin,
    peer_of,
    request_actor,
)

MOST_UPLOADED = 60 << 20  # bytes that one visitor may have in memory
MOST_UPLOADED_BY_ALL = 300 << 20  # bytes that all visitors together may have in memory
WRONG_KEY_SECONDS = 1.0  # delay of the reply to a wrong key
MOST_WRONG_KEYS = 5  # keys that one address may try at the same time

# What pages need of Streamlit's own addresses: not its metrics, nor its interface for programs.
_CORE = {"stream", "health", "host-config", "upload_file", "bidi-components"}
_SAFE = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # links contain keys and invitations
}
_NOT_HERE = (
    "This app is open only to the computer it runs on.\n"
    "To open it by another name, through a proxy or a tunnel, start it with: dopl app --key\n"
)
_FOREIGN = (
    "A page of another site made this request.\n"
    "If this is your own proxy: let it pass on Host with the port (nginx: $http_host).\n"
)
_log = logging.getLogger(__name__)


class AccessControl:
    """Middleware around all of Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.websockets = Websockets(app)
        self.key_attempts: Counter[str] = Counter()  # keys being checked, by address
        self.uploading: Counter[str] = Counter()  # bytes on their way, by visitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if (words := _refusal(scope)) is not None:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await PlainTextResponse(*words)(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self.websockets(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SAFE)
                add_browser_cookie(scope, message)
            await send(message)

        response: Response | None = None
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and "key" in given:
            response = await self._exchange_key(scope, given)
        elif scope["path"] in ADDRESSES:
            response = await sign_in_reply(self.app, scope, receive)
        if "_stcore/upload_file" in scope["path"] and scope["method"] != "OPTIONS":
            await self._upload(scope, receive, send_safely)
        else:
            await (response or self.app)(scope, receive, send_safely)

    async def _exchange_key(self, scope: Scope, given: dict[str, str]) -> Response:
        """Exchange the key for a session in a cookie that scripts cannot read, and redirect.

        The redirect keeps the key out of the page's address and of the browser's history.
        """
        headers, address = Headers(scope=scope), _counted_address(scope)
        if self.key_attempts[address] >= MOST_WRONG_KEYS:
            return PlainTextResponse("Too many keys at once. Wait a second and try again.\n", 429)
        self.key_attempts[address] += 1
        try:
            host = headers.get("host", "")
            token = await asyncio.to_thread(_begin_session, given.pop("key"), host)
            if token is None:
                await asyncio.sleep(WRONG_KEY_SECONDS)
        except studies.StoreError:
            words = "The database is down at the moment. Please try the link again soon.\n"
            return PlainTextResponse(words, 503)
        finally:
            self.key_attempts[address] -= 1
            if not self.key_attempts[address]:
                del self.key_attempts[address]
        # One slash: two would name another server.
        path = "/" + scope["path"].lstrip("/\\") + ("?" + urlencode(given) if given else "")
        response = RedirectResponse(path, 303, {"Cache-Control": "no-store"})
        if token is not None:
            set_session_cookie(response, scope, token)
        return response

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let owners and coordinators upload within the limits; delete files of past visits."""
        headers, visit = Headers(scope=scope), scope["path"].split("/")[-2]
        try:
            actor = await asyncio.to_thread(request_actor, headers, peer_of(scope))
            allowed = has_role(actor, "owner", "coordinator")
        except studies.StoreError:
            allowed = False
        if not allowed:
            await PlainTextResponse("Only owners and coordinators may upload files.\n", 403)(
                scope, receive, send
            )
            return
        size = headers.get("content-length", "")
        size_bytes = int(size) if size.isdecimal() else st.get_option("server.maxUploadSize") << 20
        files = runtime.get_instance().uploaded_file_mgr
        kept = {
            name: sum(len(file.data) for file in list(own.values()))
            for name, own in list(files.file_storage.items())
        }
        if (
            kept.get(visit, 0) + self.uploading[visit] + size_bytes > MOST_UPLOADED
            or sum(kept.values()) + self.uploading.total() + size_bytes > MOST_UPLOADED_BY_ALL
        ):
            words = "The limit for uploads is reached. Remove a file, or reload the page.\n"
            await PlainTextResponse(words, 413)(scope, receive, send)
            return
        self.uploading[visit] += size_bytes
        try:
            await self.app(scope, receive, send)
        finally:
            self.uploading[visit] -= size_bytes
            if not self.uploading[visit]:
                del self.uploading[visit]
            if not runtime.get_instance().is_active_session(visit):
                files.remove_session_files(visit)


def _refusal(scope: Scope) -> tuple[str, int] | None:
    """Why a request is refused, in words and as a status of HTTP; None if it is not."""
    headers = Headers(scope=scope)
    if is_local_only() and not is_local_name(headers.get("host", "")):
        return _NOT_HERE, 403
    if not is_same_origin(headers):
        found = {name: headers.get(name) for name in ("origin", "host")}
        _log.warning("A page of another site was refused: %r", found)
        return _FOREIGN, 403
    _, core, rest = scope["path"].rpartition("_stcore/")
    is_closed = scope["path"] in ADDRESSES and sign_in_settings() is None
    if is_closed or (core and rest.split("/")[0] not in _CORE):
        return "Not found.\n", 404
    return None


def _begin_session(key: str, host: str) -> str | None:
    return access.begin_session(store(), key, host)


def _counted_address(scope: Scope) -> str:
    """The address for which wrong keys are counted.

    FORWARDED_ALLOW_IPS names the trusted proxy for X-Forwarded-For; the server then puts the
    visitor's own address into the scope. Without a trusted proxy the header proves nothing, so all
    requests that have it are counted together.
    """
    is_forwarded = "x-forwarded-for" in Headers(scope=scope)
    if is_forwarded and not os.environ.get("FORWARDED_ALLOW_IPS"):
        return "forwarded"
    return peer_of(scope) or ""
