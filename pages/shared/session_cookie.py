"""The cookie that keeps the token of a session: for its own host, and not for scripts."""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from dopl_core.studies import access
from pages.shared.visitors import cookie_name


def set_session_cookie(response: Response, scope: Scope, token: str) -> None:
    """Give the browser the token of a session."""
    response.set_cookie(
        cookie_name(Headers(scope=scope)),
        token,
        max_age=access.SESSION_SECONDS,
        path="/_stcore",  # the websocket and uploads
        httponly=True,
        samesite="strict",
        secure=is_https(scope),
    )


def is_https(scope: Scope) -> bool:
    """Whether the browser reached the app, or the proxy in front of it, by https."""
    return "https" in (scope["scheme"], Headers(scope=scope).get("x-forwarded-proto"))
