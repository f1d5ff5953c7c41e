"""Visitors: who a request comes from, told by its headers and its address.

If everybody on this computer is the owner, only requests that surely come from this computer are
the owner's. Another name in `Host` is the name of another site (DNS rebinding) or of a proxy, which
anybody may use. Elsewhere, browsers of owners and members have a session in a cookie.
"""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import streamlit as st
from starlette.types import Scope

from dopl_core.studies import NOBODY, Actor, Role, access, everywhere
from pages.shared.backend import store
from pages.shared.sign_in_settings import LOCAL, sign_in_settings

COOKIE = "dopl_owner"
LOCAL_OWNER = everywhere(access.OWNER, "local")

# Headers that proxies, tunnels and caches add, and that no browser sends by itself.
_FORWARDED = re.compile(
    r"forward|proxy|client-?ip|real-?ip|connecting-ip|remote-(ip|addr)|^via$|^x-original|"
    r"^(cf|cdn|fly|fastly|akamai|tailscale|ngrok)-|^x-(envoy|amz|azure|arr|appengine|vercel|ngrok|"
    r"b3|request-id|request-start|correlation-id|scheme|host|port|url-scheme)|^front-end|"
    r"^traceparent$|^x-cloud"
)


def is_local_only() -> bool:
    """Whether everybody on this computer is the owner: on localhost, without key and sign-in."""
    is_bound_here = st.get_option("server.address") in LOCAL
    return is_bound_here and not os.environ.get("DOPL_ASK_FOR_KEY") and sign_in_settings() is None


def is_local_visit(headers: Mapping[str, str], peer: str | None) -> bool:
    """Whether a request surely comes from this computer, and from a page of this app.

    headers: of the request, or of the websocket's handshake;  peer: None on this computer
    """
    return (
        is_local_only()
        and peer in (None, *LOCAL)
        and is_local_name(_header(headers, "host") or "")
        and is_same_origin(headers)
        and not any(_FORWARDED.search(name.lower()) for name in headers)
    )


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a page of this app, or no page at all, makes this request.

    Browsers name the page's origin in every websocket handshake and every request that changes
    something. A request without it comes from a program, which no page of another site can drive.
    """
    origin = _header(headers, "origin")
    if origin is None:
        return True
    scheme, _, site = origin.partition("://")
    return scheme in ("http", "https") and site == _header(headers, "host")


def cookie_name(headers: Mapping[str, str]) -> str:
    """The name of the session's cookie: browsers send cookies to all ports of a host."""
    port = re.search(r":(\d+)$", _header(headers, "host") or "")
    return f"{COOKIE}_{port[1]}" if port else COOKIE


def session_token(headers: Mapping[str, str]) -> str:
    """The token that a browser keeps in place of the owner's key, or an empty text."""
    name = cookie_name(headers)
    found = re.search(rf"(?:^|;)\s*{name}=([\w-]+)", _header(headers, "cookie") or "")
    return found[1] if found else ""


def request_actor(headers: Mapping[str, str], peer: str | None) -> Actor:
    """Who makes a request: an owner on this computer, the person with the session, or nobody.

    peer: the address that it comes from, None on this computer
    """
    if is_local_visit(headers, peer):
        return LOCAL_OWNER
    token, host = session_token(headers), _header(headers, "host") or ""
    return (access.session_actor(store(), token, host) if token else None) or NOBODY


def has_role(actor: Actor, *roles: Role) -> bool:
    """Whether somebody has one of these roles in any study."""
    return any(not own.isdisjoint(roles) for own in actor.roles.values())


def is_local_name(host: str) -> bool:
    """Whether a Host header names this computer, at any port."""
    try:
        return urlsplit(f"//{host}").hostname in LOCAL and "@" not in host
    except ValueError:
        return False


def peer_of(scope: Scope) -> str | None:
    """The address that a request comes from."""
    return scope["client"][0] if scope.get("client") else None


def _header(headers: Mapping[str, str], name: str) -> str | None:
    return next((value for given, value in headers.items() if given.lower() == name), None)
