"""Settings of the sign-in: complete and safe, or the app does not start."""

import runpy
import secrets
import tomllib

import pytest
from sign_in_provider import CLIENT, auth_section
from streamlit import config
from streamlit.runtime.secrets import secrets_singleton

from dopl_core.paths import ROOT
from pages.shared import visitors
from pages.shared.sign_in_settings import SignInSettingsError, checked, sign_in_settings

APP, PROVIDER = "https://clinic.example", "https://login.example"


@pytest.fixture
def configure(monkeypatch):
    """Give the app other secrets; None: those in its files."""

    def set_secrets(given):
        monkeypatch.setattr(secrets_singleton, "_secrets", given)
        sign_in_settings.cache_clear()

    yield set_secrets
    sign_in_settings.cache_clear()


def test_with_settings_this_computer_is_not_the_owners_either(configure):
    configure({"auth": auth_section(APP, PROVIDER)})
    assert not visitors.is_local_only()
    configure({})
    assert visitors.is_local_only()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cookie_secret", "", "cookie_secret is missing"),
        ("cookie_secret", "xxx", "secrets.token_hex"),
        ("cookie_secret", "change-me-" * 5, "secrets.token_hex"),
        ("client_id", " ", "client_id is missing"),
        ("redirect_uri", f"{APP}/elsewhere", "followed by /oauth2callback"),
        ("redirect_uri", "http://clinic.example/oauth2callback", "https://"),
        ("server_metadata_url", "http://login.example/", "https://"),
    ],
)
def test_unsafe_settings_are_refused_with_a_remedy(name, value, words):
    auth = auth_section(APP, PROVIDER)
    assert checked(auth).client_id == CLIENT
    with pytest.raises(SignInSettingsError, match=r"secrets\.toml, section \[auth\]: ") as error:
        checked(auth | {name: value})
    assert words in str(error.value)
    assert not value.strip() or value not in str(error.value)


def test_the_guides_example_is_complete_and_its_secret_has_to_be_changed():
    guide = (ROOT / "data" / "guides" / "server.md").read_text(encoding="utf-8")
    auth = tomllib.loads(guide.partition("```toml\n")[2].partition("```")[0])["auth"]
    with pytest.raises(SignInSettingsError, match="cookie_secret can be guessed"):
        checked(auth)
    assert checked(auth | {"cookie_secret": secrets.token_hex(32)})


def test_the_app_does_not_start_with_unsafe_settings(configure, monkeypatch):
    monkeypatch.setattr(config, "_main_script_path", None)  # which the app sets
    configure({"auth": auth_section(APP, PROVIDER, cookie_secret="xxx")})
    with pytest.raises(SystemExit, match=r"does not start.*cookie_secret can be guessed"):
        runpy.run_path(str(ROOT / "streamlit_app.py"))


def test_a_file_of_secrets_that_cannot_be_read_does_not_open_the_app(configure, tmp_path):
    file = tmp_path / "secrets.toml"
    file.write_text("[auth\n")
    before = config.get_option("secrets.files")
    config.set_option("secrets.files", [str(file)])
    configure(None)
    try:
        with pytest.raises(SignInSettingsError, match=r"secrets\.toml cannot be read"):
            sign_in_settings()
        file.unlink()
        assert sign_in_settings() is None
    finally:
        config.set_option("secrets.files", before)
