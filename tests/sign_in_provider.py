"""A real provider of OpenID Connect on this computer, and the app's settings for it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import oidc_provider_mock

CLIENT = "dopl"


class Provider:
    """Its people sign in by a click on their name, without a password."""

    def __init__(self, port: int) -> None:
        self.url = f"http://localhost:{port}"

    def person(self, number: str, **claims: object) -> None:
        """Somebody with an account; claims are put into the token as they are."""
        httpx.put(f"{self.url}/users/{number}", json=claims).raise_for_status()


@contextmanager
def running_provider() -> Iterator[Provider]:
    with oidc_provider_mock.run_server_in_thread() as server:
        yield Provider(server.server_port)


def auth_section(app: str, provider: str, **changed: str) -> dict[str, str]:
    """The section [auth] of secrets.toml for an app and a provider, each by its address."""
    return {
        "redirect_uri": f"{app}/oauth2callback",
        "cookie_secret": secrets.token_hex(32),
        "client_id": CLIENT,
        "client_secret": "of-this-computer",
        "server_metadata_url": f"{provider}/.well-known/openid-configuration",
    } | changed
