"""Sign-in by OpenID Connect: from the provider's answer to a session of our own.

Streamlit asks the provider and checks its answer (`st.login`). It would keep who somebody is in a
cookie for 30 days, and no server could end that. So nothing here trusts its cookie: the middleware
takes the claims out of Streamlit's own reply and begins a session in the database. From then on
only that row counts.

For the provider's sign-out the browser keeps one token, in a cookie that is sent to /auth only.
"""

import asyncio
import html
import json
import logging
from http.cookies import SimpleCookie
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope
from streamlit.auth_util import get_cookie_with_chunks, set_cookie_with_chunks
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import (
    create_signed_value,
    decode_signed_value,
)
from streamlit.web.server.starlette.starlette_server_config import (
    TOKENS_COOKIE_NAME,
    USER_COOKIE_NAME,
)

from dopl_core import studies
from dopl_core.studies import access
from pages.shared.backend import store
from pages.shared.session_cookie import is_https, set_session_cookie
from pages.shared.sign_in_settings import CALLBACK, sign_in_settings

LOGIN, LOGOUT = "/auth/login", "/auth/logout"
ADDRESSES = (LOGIN, LOGOUT, CALLBACK)  # Streamlit's own

# Claims about a token, and what Streamlit adds to them.
_NOT_OF_PEOPLE = {"iss", "aud", "azp", "exp", "iat", "nbf", "jti", "sid", "nonce", "auth_time"}
_NOT_OF_PEOPLE |= {"acr", "amr", "at_hash", "c_hash", "origin", "provider", "is_logged_in"}
_LONGEST_NAME = 98  # characters of each part: an annotator's name has at most 200
_PATH = "/auth"  # of Streamlit's cookies: not sent with pages, websockets or uploads
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title} - DOPL</title>
<style>body{{font:1.05rem/1.5 sans-serif;max-width:34rem;margin:15vh auto;padding:0 1.2rem;
background:#FBFAF6;color:#1D2733;overflow-wrap:anywhere}}h1{{font-family:serif;font-weight:600}}
a{{display:inline-block;padding:.5rem 1.2rem;border-radius:.6rem;background:#0F766E;color:#fff;
text-decoration:none}}@media (prefers-color-scheme:dark){{body{{background:#11181E;color:#E9EEF0}}}}
</style><h1>{title}</h1><p>{words}</p><p><a href="{address}">{link}</a></p></html>
"""
_log = logging.getLogger(__name__)


async def sign_in_reply(app: ASGIApp, scope: Scope, receive: Receive) -> Response:
    """The reply to a request to one of Streamlit's addresses for signing in and out."""
    path, headers = scope["path"], Headers(scope=scope)
    if path != CALLBACK and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return _page("This link is not ours", "Another site made this request. Open DOPL.", 403)
    if path == CALLBACK and not scope["query_string"]:  # back from the provider's sign-out
        return RedirectResponse("/", 303)
    status, given = await _reply(app, scope, receive)
    location = given.get("location") if 300 <= status < 400 else None
    if path == CALLBACK:
        response = await _end_of_sign_in(scope, given)
    elif location is None:
        response = _page(
            "You cannot sign in at the moment",
            "Your organisation's sign-in does not answer. Please try again soon. "
            "Links that you were sent still work.",
            503,
        )
    else:
        response = RedirectResponse(location, 303)
    if path == LOGOUT:
        _delete_tokens(headers, response)
    _pass_on_state(given, response, is_https(scope))
    response.headers["Cache-Control"] = "no-store"
    return response


async def _reply(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[int, Headers]:
    """Status and headers of Streamlit's reply."""
    started: list[Message] = []

    async def keep(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message)

    try:
        await app(scope, receive, keep)
    except Exception:
        _log.exception("Streamlit failed at %s", scope["path"])
    if not started:
        return 500, Headers({})
    return started[0]["status"], Headers(raw=started[0]["headers"])


async def _end_of_sign_in(scope: Scope, given: Headers) -> Response:
    """Begin a session for the person whom the provider names, or say why not."""
    user, tokens = _signed(given, USER_COOKIE_NAME), _signed(given, TOKENS_COOKIE_NAME)
    if not user or not _is_for_us(user):
        return _page(
            "You are not signed in",
            "You cancelled it, it took too long, or the answer of your organisation's sign-in was "
            "not valid. Please sign in again. If it fails again, tell the administrator: the "
            "reason is in the app's log.",
            403,
        )
    claims = trusted_claims(user)
    name = name_of(claims)
    host = Headers(scope=scope).get("host", "")
    try:
        token = await asyncio.to_thread(_begin_session, name, claims, host)
    except studies.StoreError:
        words = "The database is down at the moment. Please sign in again soon."
        return _page("You cannot sign in at the moment", words, 503)
    if token is None:
        words = f"You are signed in as {name}, but nobody has given you access. Ask the owner."
        response = _page("You have no access yet", words, 403, ("Sign out", LOGOUT))
    else:
        response = RedirectResponse("/", 303)
        set_session_cookie(response, scope, token)
    _keep_for_sign_out(response, user, tokens, is_https(scope))
    return response


def trusted_claims(claims: dict[str, Any]) -> dict[str, Any]:
    """Claims about a person by which roles may be found: an address only if it is verified.

    Anybody could give the address of somebody else to a provider that does not verify addresses.
    """
    found = {name: value for name, value in claims.items() if name not in _NOT_OF_PEOPLE}
    if str(claims.get("email_verified")).lower() != "true":
        found.pop("email", None)
    return found


def name_of(claims: dict[str, Any]) -> str:
    """Under which name somebody is signed in: an address, or the provider's number and an account.

    People may choose their account's name, also that of somebody else; nobody chooses the number.
    """
    address, account, number = (
        "".join(filter(str.isprintable, str(claims.get(name) or "")))[:_LONGEST_NAME]
        for name in ("email", "preferred_username", "sub")
    )
    if address:
        return address.casefold()
    return f"{account} ({number})" if account else number


def _is_for_us(claims: dict[str, Any]) -> bool:
    """Whether a token was issued for this app.

    Authlib also accepts tokens for other apps that name this one as the authorised party.
    """
    settings, audience = sign_in_settings(), claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if settings is None or settings.client_id not in audiences or not claims.get("sub"):
        _log.warning("A token for another app was refused: audience %r", audience)
        return False
    return True


def _begin_session(name: str, claims: dict[str, Any], host: str) -> str | None:
    return access.begin_member_session(store(), name, claims, host)


# --- Streamlit's cookies


def _set_cookies(given: Headers) -> list[tuple[str, str, str]]:
    """Name, value and whole header of each cookie that a reply sets."""
    found = []
    for header in given.getlist("set-cookie"):
        name, _, value = header.partition(";")[0].partition("=")
        found.append((name.strip(), value.strip('"'), header))
    return found


def _signed(given: Headers, name: str) -> dict[str, Any]:
    """What Streamlit's reply says in a signed cookie; nothing if it does not set this cookie."""
    values = {set_name: value for set_name, value, _ in _set_cookies(given)}

    def one(part: str) -> bytes | None:
        return decode_signed_value(get_cookie_secret(), part, values.get(part, ""))

    found = get_cookie_with_chunks(one, name)
    return json.loads(found) if found else {}


def _keep_for_sign_out(
    response: Response, user: dict[str, Any], tokens: dict[str, Any], secure: bool
) -> None:
    """Let the browser keep what Streamlit needs to sign people out at their provider."""

    def sign(name: str, value: str) -> bytes:
        return create_signed_value(get_cookie_secret(), name, value)

    def keep(name: str, value: str) -> None:
        response.set_cookie(
            name,
            sign(name, value).decode(),
            max_age=access.SESSION_SECONDS,
            path=_PATH,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    kept = {
        USER_COOKIE_NAME: {name: user.get(name) for name in ("provider", "origin")},
        TOKENS_COOKIE_NAME: {name: tokens[name] for name in ("id_token",) if name in tokens},
    }
    for name, value in kept.items():
        set_cookie_with_chunks(keep, sign, name, value, cookie_attr_size=100)


def _delete_tokens(headers: Headers, response: Response) -> None:
    for name in SimpleCookie(headers.get("cookie", "")):
        if name.startswith(USER_COOKIE_NAME):
            response.delete_cookie(name, path=_PATH)


def _pass_on_state(given: Headers, response: Response, secure: bool) -> None:
    """Pass on the cookie by which Streamlit knows an answer to a question that this browser asked.

    Streamlit's cookies about people are not passed on.
    """
    for name, _, header in _set_cookies(given):
        if not name.startswith(USER_COOKIE_NAME):
            response.headers.append("set-cookie", header + ("; Secure" if secure else ""))


def _page(
    title: str, words: str, status: int, link: tuple[str, str] = ("Back to DOPL", "/")
) -> HTMLResponse:
    shown = {"title": title, "words": words, "link": link[0], "address": link[1]}
    safe = {name: html.escape(text) for name, text in shown.items()}
    return HTMLResponse(_PAGE.format(**safe), status)
