"""Pages without a browser, with their own database; plans are made at once."""

import shutil
from functools import cache
from pathlib import Path

import pytest
from clinic_page import make
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from dopl_core import studies
from pages.shared import backend, browser_cookie, guards, visitors

ROOT = Path(__file__).resolve().parents[2]

# Every AppTest scans all installed packages for components: cache what it finds.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


class Clock:
    """A clock that moves two seconds with each reading: no click is too fast."""

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
        studies.advance(backend.store(), study)

    def wait(self, study: str, seconds: float) -> None:
        self.ask(study)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, sqlite_template):
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}")
    monkeypatch.setenv("DOPL_RUNS", str(tmp_path / "runs"))
    planner = PlannerAtOnce()
    monkeypatch.setattr(backend, "planner", lambda: planner)
    backend.forget()
    config.set_option("server.address", "localhost")
    monkeypatch.delenv("DOPL_ASK_FOR_KEY", raising=False)
    # The headers of a browser on this computer; AppTest has none.
    sent = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}
    sent["Cookie"] = f"{browser_cookie.COOKIE}={'b' * 32}"
    monkeypatch.setattr(guards, "_handshake", lambda: (sent, None))
    yield
    backend.forget()


@pytest.fixture
def store():
    opened = backend.store()
    opened.clock = Clock()
    return opened


@pytest.fixture
def study(store):
    """App users in a simulated world: three comparisons for each plan, no practice."""
    rules = {"practice": False, "horizon": 1}
    return studies.create_study(store, studies.from_environment("app_marketing", **rules))


@pytest.fixture
def visit():
    """Open a page's file directly, as the first request to a server does."""

    def open_page(name: str, **parameters: str) -> AppTest:
        file = ROOT / "pages" / name / "page.py"
        file = file if file.exists() else ROOT / "pages" / f"{name}.py"
        app = AppTest.from_file(str(file), default_timeout=120)
        for key, value in parameters.items():
            app.query_params[key] = value
        return app.run()

    return open_page


@pytest.fixture
def router():
    """Open the app with its navigation."""
    return AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=120)


@pytest.fixture
def come_in(monkeypatch):
    """Visit from another computer, with the cookie of an owner's session."""

    def bring(token: str = "") -> None:
        config.set_option("server.address", "0.0.0.0")  # noqa: S104
        sent = {"Host": "clinic.example", "Cookie": f"a=b; {visitors.COOKIE}={token}"}
        monkeypatch.setattr(guards, "_handshake", lambda: (sent, "192.0.2.7"))

    return bring


@pytest.fixture
def clinic(store):
    """A clinic's study: a list of three, no first round."""
    return make(store)
