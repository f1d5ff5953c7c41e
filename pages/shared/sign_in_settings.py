"""Settings of the sign-in: the section [auth] of Streamlit's secrets.toml, checked at the start."""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import streamlit as st
from streamlit.errors import StreamlitSecretNotFoundError

CALLBACK = "/oauth2callback"  # where the provider sends people back to
LOCAL = ("localhost", "127.0.0.1", "::1")

_NEEDED = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
_SHORTEST_SECRET, _FEWEST_CHARACTERS = 32, 10
_HOW_TO_MAKE_ONE = 'python3 -c "import secrets; print(secrets.token_hex(32))" makes one'


class SignInSettingsError(ValueError):
    """The settings cannot be used: which one, and what to do."""


@dataclass(frozen=True)
class SignInSettings:
    """What the app itself uses of [auth]; Streamlit reads the rest."""

    client_id: str


@cache
def sign_in_settings() -> SignInSettings | None:
    """The settings, read once; None if secrets.toml has no section [auth]."""
    try:
        found = st.secrets.to_dict().get("auth")
    except StreamlitSecretNotFoundError as error:
        if error.error_id == "no-secrets-found":
            return None
        raise SignInSettingsError(f"secrets.toml cannot be read: {error}") from None
    return None if found is None else checked(found)


def check_sign_in() -> None:
    """End the app with the reason if the sign-in is configured in a way that is not safe."""
    try:
        sign_in_settings()
    except SignInSettingsError as error:
        sys.exit(f"DOPL does not start. {error}")


def checked(auth: object) -> SignInSettings:
    """The settings in a section [auth]; refuses those that are missing or unsafe."""
    if not isinstance(auth, Mapping):
        raise _error("it must be a section with settings")
    for name in _NEEDED:
        if not isinstance(auth.get(name), str) or not auth[name].strip():
            raise _error(f"{name} is missing. It needs {', '.join(_NEEDED)}")
    secret = auth["cookie_secret"]
    if len(secret) < _SHORTEST_SECRET or len(set(secret)) < _FEWEST_CHARACTERS:
        raise _error(
            f"cookie_secret can be guessed. It needs at least {_SHORTEST_SECRET} random "
            f"characters; {_HOW_TO_MAKE_ONE}"
        )
    _check_address("redirect_uri", auth["redirect_uri"])
    _check_address("server_metadata_url", auth["server_metadata_url"])
    if urlsplit(auth["redirect_uri"]).path != CALLBACK:
        raise _error(f"redirect_uri must be the app's own address followed by {CALLBACK}")
    if importlib.util.find_spec("authlib") is None or importlib.util.find_spec("httpx") is None:
        raise _error(
            'sign-in needs two more packages. Install them with: pip install "dopl[signin]"'
        )
    return SignInSettings(auth["client_id"])


def _check_address(name: str, address: str) -> None:
    """Refuse addresses that a network could read or change on the way."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
        raise _error(f"{name} must begin with https:// unless it is on this computer")


def _error(words: str) -> SignInSettingsError:
    return SignInSettingsError(f"secrets.toml, section [auth]: {words}.")
