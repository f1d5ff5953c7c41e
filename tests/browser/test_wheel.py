"""The wheel alone, in an environment that has our dependencies and nothing of the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from app_server import ROOT, Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.long


class Installed(Server):
    """`dopl app` of an installed wheel, at home in an empty folder."""

    def __init__(self, folder: Path, dopl: Path) -> None:
        super().__init__(folder)
        self.dopl = dopl
        kept = {"PATH", "LANG"}  # no PYTHONPATH, no database, no folder for runs
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self.environment |= {"HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
        self.command, self.cwd = [str(dopl), "app"], folder / "empty"
        self.cwd.mkdir()

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [self.dopl, *words],
            cwd=self.cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel, install it where only the dependencies are, and nothing is started yet."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *build], check=True, cwd=folder)
    (wheel,) = folder.glob("dopl-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install = ["install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, "--python", str(python), *install], check=True, cwd=folder)
    # Our dependencies, read only: .pth files in a folder named by one, such as that of this
    # checkout, are not followed.
    (own,) = (folder / "venv").glob("lib/python*/site-packages")
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (own / "dependencies.pth").write_text("\n".join(places))
    server = Installed(folder, folder / "venv" / "bin" / "dopl")
    yield server
    server.kill()


def test_nothing_comes_from_the_checkout(installed):
    script = "import dopl_core, dopl_core.paths as p; print(dopl_core.__file__, p.ROOT, p.KEPT)"
    python = installed.dopl.with_name("python")
    given = {"cwd": installed.cwd, "env": installed.environment, "text": True}
    said = subprocess.check_output([python, "-c", script], **given).split()
    assert all(place.startswith(str(installed.folder)) for place in said)
    assert said[2] == str(installed.folder / "home/.local/share/dopl")


def test_the_guides_travel_in_the_wheel(installed):
    [guides] = (installed.folder / "venv").glob(
        "lib/python*/site-packages/dopl_core/app/data/guides"
    )
    source = ROOT / "data" / "guides"
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    assert {path.relative_to(guides) for path in guides.rglob("*") if path.is_file()} == files
    assert (guides / "owner.md").read_bytes() == (source / "owner.md").read_bytes()


def test_it_simulates(installed):
    installed.run("simulate", "cpap", "--episodes", "3", "--horizon", "5", "--out", "results")
    lines = (installed.cwd / "results" / "episodes.csv").read_text().splitlines()
    assert len(lines) == 1 + 3


def test_it_serves_and_keeps_its_database_in_the_users_folder(installed, page: Page):
    installed.start()
    page.goto(installed.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.goto(f"{installed.url}/studies")
    page.get_by_role("tab", name="New study").click()
    expect(page.get_by_role("button", name="An example roster (CSV)")).to_be_visible()
    page.goto(f"{installed.url}/help?guide=server")
    expect(page.get_by_role("heading", name="Run a server")).to_be_visible()
    kept = installed.folder / "home/.local/share/dopl"
    assert (kept / "dopl.db").stat().st_mode & 0o077 == 0
    assert installed.run("studies") == ""  # the same database, still empty
    assert [path.name for path in installed.cwd.iterdir()] in ([], ["results"])
    assert not (installed.dopl.parents[1] / "data").exists()
