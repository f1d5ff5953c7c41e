"""The door of the server: what every request passes before Streamlit sees it.

Who is at home, who brings the owner's key, who may upload, and that nobody shows our pages inside
theirs. Where everybody on this computer is the owner, only requests that surely come from it are
let in: a name in `Host` that is not this computer's is another site's (DNS rebinding), or a
proxy's, behind which anybody may be.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from dopl_core.studies import access, service
from pages._backend import store

LOCAL = ("localhost", "127.0.0.1", "::1")
COOKIE = "dopl_owner"
MOST_UPLOADED = 60 << 20  # bytes that one visitor, and
MOST_UPLOADED_BY_ALL = 300 << 20  # that all visitors together may have in memory
WRONG_KEY_SECONDS = 1.0  # that a wrong key takes
MOST_WRONG_KEYS = 5  # that one address may try at a time

# What proxies, tunnels and caches add to a request, and no browser sends by itself.
_FORWARDED = re.compile(
    r"forward|proxy|client-?ip|real-?ip|connecting-ip|remote-(ip|addr)|^via$|^x-original|"
    r"^(cf|cdn|fly|fastly|akamai|tailscale|ngrok)-|^x-(envoy|amz|azure|arr|appengine|vercel|ngrok|"
    r"b3|request-id|request-start|correlation-id|scheme|host|port|url-scheme)|^front-end|"
    r"^traceparent$|^x-cloud"
)
_SAFE = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # links have keys and invites in them
}
_NOT_HERE = (
    "This app is open to the computer it runs on, and to nobody else.\n"
    "To reach it by another name, through a proxy or a tunnel, start it with: dopl app --key\n"
)


def is_open_house() -> bool:
    """Whether everybody on this computer is the owner: bound to it alone, and no key asked for."""
    return st.get_option("server.address") in LOCAL and not os.environ.get("DOPL_ASK_FOR_KEY")


def is_at_home(headers: Mapping[str, str], peer: str | None) -> bool:
    """Whether a request surely comes from this computer, and from a page of this app.

    headers: of the request, or of the websocket's handshake;  peer: None on this computer
    """
    sent = {name.lower(): value for name, value in headers.items()}
    host, origin = sent.get("host"), sent.get("origin")
    return (
        is_open_house()
        and peer in (None, *LOCAL)
        and _is_local(host)
        and (origin is None or urlsplit(origin).netloc == host)
        and not any(_FORWARDED.search(name) for name in sent)
    )


def session_in(headers: Mapping[str, str]) -> str:
    """The token that a browser keeps in place of the owner's key, or nothing."""
    sent = next((value for name, value in headers.items() if name.lower() == "cookie"), "")
    found = re.search(rf"(?:^|;)\s*{COOKIE}=([\w-]+)", sent)
    return found[1] if found else ""


class Door:
    """Middleware around all of Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.trying: Counter[str] = Counter()  # keys being tried, by address
        self.coming: Counter[str] = Counter()  # bytes being uploaded, by visitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if is_open_house() and not _is_local(headers.get("host")):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await PlainTextResponse(_NOT_HERE, 403)(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SAFE)
            await send(message)

        response: Response | None = None
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and "key" in given:
            response = await self._take_key(scope, given)
        if "_stcore/upload_file" in scope["path"] and scope["method"] != "OPTIONS":
            await self._upload(scope, receive, send_safely)
        else:
            await (response or self.app)(scope, receive, send_safely)

    async def _take_key(self, scope: Scope, given: dict[str, str]) -> Response:
        """A session in place of the key, in a cookie that no script can read, and back.

        The redirect keeps the key out of the page's address and of the browser's way back.
        """
        address = _whose_tries(scope)
        if self.trying[address] >= MOST_WRONG_KEYS:
            return PlainTextResponse("Too many keys at a time: wait a second\n", 429)
        self.trying[address] += 1
        try:
            token = await asyncio.to_thread(access.begin_session, store(), given.pop("key"))
            if token is None:
                await asyncio.sleep(WRONG_KEY_SECONDS)
        except service.StoreError:
            words = "The database cannot be used just now: try the link again in a moment\n"
            return PlainTextResponse(words, 503)
        finally:
            self.trying[address] -= 1
            if not self.trying[address]:
                del self.trying[address]
        # One slash: two would name another server.
        path = "/" + scope["path"].lstrip("/\\") + ("?" + urlencode(given) if given else "")
        response = RedirectResponse(path, 303, {"Cache-Control": "no-store"})
        if token is not None:
            response.set_cookie(
                COOKIE,
                token,
                max_age=access.SESSION_SECONDS,
                httponly=True,
                samesite="strict",
                secure="https" in (scope["scheme"], Headers(scope=scope).get("x-forwarded-proto")),
            )
        return response

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let owners upload while there is room; nothing stays of a visit that is over."""
        headers, visit = Headers(scope=scope), scope["path"].split("/")[-2]
        try:
            allowed = await asyncio.to_thread(_is_owners, headers, _peer(scope))
        except service.StoreError:
            allowed = False
        if not allowed:
            await PlainTextResponse("Only the owner uploads\n", 403)(scope, receive, send)
            return
        size = headers.get("content-length", "")
        coming = int(size) if size.isdecimal() else st.get_option("server.maxUploadSize") << 20
        files = runtime.get_instance().uploaded_file_mgr
        kept = {
            name: sum(len(file.data) for file in list(own.values()))
            for name, own in list(files.file_storage.items())
        }
        if (
            kept.get(visit, 0) + self.coming[visit] + coming > MOST_UPLOADED
            or sum(kept.values()) + self.coming.total() + coming > MOST_UPLOADED_BY_ALL
        ):
            words = "Too much is uploaded already: remove a file, or reload the page\n"
            await PlainTextResponse(words, 413)(scope, receive, send)
            return
        self.coming[visit] += coming
        try:
            await self.app(scope, receive, send)
        finally:
            self.coming[visit] -= coming
            if not self.coming[visit]:
                del self.coming[visit]
            if not runtime.get_instance().is_active_session(visit):
                files.remove_session_files(visit)


def _is_owners(headers: Headers, peer: str | None) -> bool:
    if is_at_home(headers, peer):
        return True
    token = session_in(headers)
    return bool(token) and access.has_session(store(), token)


def _whose_tries(scope: Scope) -> str:
    """The address that wrong keys are counted by.

    Where the owner has said that a proxy is in front (FORWARDED_ALLOW_IPS, its address, which the
    server reads), that of whoever is behind it. Else nobody's word is taken for who they are: all
    who bring a word of another address are one.
    """
    told = "x-forwarded-for" in Headers(scope=scope)
    if told and not os.environ.get("FORWARDED_ALLOW_IPS"):
        return "forwarded"
    return _peer(scope) or ""


def _peer(scope: Scope) -> str | None:
    return scope["client"][0] if scope.get("client") else None


def _is_local(host: str | None) -> bool:
    """Whether a Host header names this computer; its port does not matter."""
    try:
        return urlsplit(f"//{host}").hostname in LOCAL and "@" not in str(host)
    except ValueError:
        return False
