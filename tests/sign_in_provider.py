"""A real provider of OpenID Connect on this computer, and the app's settings for it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import httpx
import oidc_provider_mock
from werkzeug.serving import make_server

CLIENT = "dopl"
PATIENCE = 60  # seconds: a machine may be slow


class Provider:
    """Its people sign in by their number, without a password."""

    def __init__(self, port: int) -> None:
        self.url = f"http://localhost:{port}"

    def person(self, number: str, **claims: object) -> None:
        """Somebody with an account; claims are put into the token as they are."""
        httpx.put(f"{self.url}/users/{number}", json=claims, timeout=PATIENCE).raise_for_status()

    def sign_in(self, question: httpx.URL, number: str) -> str:
        """Answer an app's question who somebody is: where their browser is sent to."""
        answer = httpx.post(question, data={"sub": number}, timeout=PATIENCE)
        return str(answer.headers["Location"])


@contextmanager
def running_provider() -> Iterator[Provider]:
    # Its own way to run in a thread gives up if the machine is slow.
    server = make_server("localhost", 0, oidc_provider_mock.app(), threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Provider(server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


def auth_section(app: str, provider: str, **changed: str) -> dict[str, object]:
    """The section [auth] of secrets.toml for an app and a provider, each by its address."""
    return {
        "redirect_uri": f"{app}/oauth2callback",
        "cookie_secret": secrets.token_hex(32),
        "client_id": CLIENT,
        "client_secret": "of-this-computer",
        "server_metadata_url": f"{provider}/.well-known/openid-configuration",
        "client_kwargs": {"timeout": PATIENCE},
    } | changed
