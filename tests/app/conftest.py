"""Pages without a browser, on a database of their own, with plans made at once."""

import shutil
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from dopl_core.studies import service
from pages import _backend, _door, _who

ROOT = Path(__file__).resolve().parents[2]

# Every AppTest looks through all installed packages for components: what is found stays the same.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


class Clock:
    """A clock that moves two seconds whenever it is looked at: nobody clicks too fast."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        self.now += 2
        return self.now


class PlannerAtOnce:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, study: str) -> None:
        self.asked.append(study)
        service.advance(_backend.store(), study)

    def wait(self, study: str, seconds: float) -> None:
        self.ask(study)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, sqlite_template):
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}")
    monkeypatch.setenv("DOPL_RUNS", str(tmp_path / "runs"))
    planner = PlannerAtOnce()
    monkeypatch.setattr(_backend, "planner", lambda: planner)
    st.cache_resource.clear()
    config.set_option("server.address", "localhost")
    monkeypatch.delenv("DOPL_ASK_FOR_KEY", raising=False)
    # What a browser on this computer sends; AppTest has no headers.
    sent = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}
    monkeypatch.setattr(_who, "_handshake", lambda: (sent, None))
    yield
    st.cache_resource.clear()


@pytest.fixture
def store():
    opened = _backend.store()
    opened.clock = Clock()
    return opened


@pytest.fixture
def study(store):
    """App users in a simulated world: three duels a plan, no practice."""
    rules = {"practice": False, "horizon": 1}
    return service.create_study(store, service.from_environment("app_marketing", **rules))


@pytest.fixture
def visit():
    """Open a page by its own file, without the router, as the first request to a server does."""

    def open_page(name: str, **parameters: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=20)
        for key, value in parameters.items():
            app.query_params[key] = value
        return app.run()

    return open_page


@pytest.fixture
def router():
    """Open the app at its entrance."""
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=20)


@pytest.fixture
def come_in(monkeypatch):
    """Come from elsewhere, with what a browser keeps of the owner's key."""

    def bring(token: str = "") -> None:
        config.set_option("server.address", "0.0.0.0")  # noqa: S104
        sent = {"Host": "clinic.example", "Cookie": f"a=b; {_door.COOKIE}={token}"}
        monkeypatch.setattr(_who, "_handshake", lambda: (sent, "192.0.2.7"))

    return bring
