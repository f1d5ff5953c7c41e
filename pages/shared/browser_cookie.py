"""The cookie by which the browser of a panel's participant is known again.

Only a reply of the server can set a cookie that scripts cannot read. So the middleware sets it with
the page that a participant's link opens. Pages read it from the handshake of the websocket.
"""

import re
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope

COOKIE = "dopl_browser"
IDS = ("participant", "PROLIFIC_PID")  # the parameters of a link in which panels put their ids
_SECONDS = 365 * 24 * 3600


def browser_token(headers: Mapping[str, str]) -> str:
    """The token that this browser keeps, or an empty text."""
    sent = next((value for name, value in headers.items() if name.lower() == "cookie"), "")
    found = re.search(rf"(?:^|;)\s*{COOKIE}=([\w-]{{32,64}})(?:;|$)", sent)
    return found[1] if found else ""


def add_browser_cookie(scope: Scope, message: Message) -> None:
    """Give a browser that opens a participant's link a token, if it has none.

    It is kept when somebody comes from the panel's site, so it is not for this site only
    ("strict"): no other site can act with it, because pages act by websockets, whose Origin is
    checked.
    message: the start of the reply
    """
    given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    sent = Headers(scope=scope)
    is_participant = "invite" in given and any(name in given for name in IDS)
    if scope["method"] != "GET" or not is_participant or browser_token(sent):
        return
    cookie = Response()
    cookie.set_cookie(
        COOKIE,
        secrets.token_urlsafe(24),
        max_age=_SECONDS,
        httponly=True,
        samesite="lax",
        secure="https" in (scope["scheme"], sent.get("x-forwarded-proto")),
    )
    headers = MutableHeaders(scope=message)
    headers.append("set-cookie", cookie.headers["set-cookie"])
    headers["cache-control"] = "no-store"
