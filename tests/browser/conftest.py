"""A real Chromium in front of a real server; tests that lack one say so, and in CI they fail."""

import os
import shutil

import pytest
from app_server import CHROMIUM_FLAGS, Server
from forged import cut_network, requests_away
from playwright.sync_api import expect

from dopl_core import studies

CHROMIUM = shutil.which("chromium")

# A machine may be busy: what holds sooner or later is waited for.
PATIENCE = 60_000  # ms
expect.set_options(timeout=PATIENCE)

# Browsers find no computer but this one: every page works without a network.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"


def pytest_collection_modifyitems(items):
    if CHROMIUM is None and not os.environ.get("CI"):
        here = os.path.dirname(__file__)
        for item in items:
            if str(item.path).startswith(here):
                item.add_marker(pytest.mark.skip(reason="needs a browser: install chromium"))


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    assert CHROMIUM, "no chromium on this machine: install Debian's package"
    return browser_type_launch_args | {
        "executable_path": CHROMIUM,
        "args": [*CHROMIUM_FLAGS, OFFLINE],
    }


@pytest.fixture(scope="session")
def base_url():
    """None: every test names its server. The plugin's own is in a form that pytest deprecates."""


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return browser_context_args | {"viewport": {"width": 1280, "height": 900}}


@pytest.fixture
def context(context):
    context.set_default_timeout(PATIENCE)
    away = requests_away(context)
    yield context
    assert away == []


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests, without a network: each test makes studies of its own."""
    started = Server(tmp_path_factory.mktemp("server"))
    cut_network(started)
    yield started.start()
    started.kill()
    assert not started.left.exists(), started.left.read_text()


@pytest.fixture(scope="session")
def store(server):
    """The server's own database."""
    opened = studies.open_store(server.environment["DOPL_DATABASE_URL"])
    yield opened
    opened.close()


@pytest.fixture
def study(store):
    """A study of CPAP patients, without practice."""
    return studies.create_study(store, studies.from_environment("cpap", practice=False))


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """A server that asks for a key although it is bound to this computer: behind a proxy."""
    started = Server(tmp_path_factory.mktemp("guarded"))
    started.environment["DOPL_ASK_FOR_KEY"] = "1"
    cut_network(started)
    started.store = studies.open_store(started.environment["DOPL_DATABASE_URL"])
    started.study = studies.create_study(
        started.store, studies.from_environment("cpap", practice=False)
    )
    yield started.start()
    started.kill()
