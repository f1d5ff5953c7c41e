"""The wheel alone, as the container runs it: built from what the Containerfile copies, started by
its command with its variables as another user, in a folder of programs that nothing is written to.

The environment has our dependencies and nothing of the checkout.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import containerfile
import pytest
from app_server import ROOT, Server
from memory import folder_in_memory
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.long

NOBODY = 65534


def can_be_nobody() -> bool:
    """Whether we may start programs as another user, and that user may read Python."""
    places = {Path(sys.prefix), Path(sys.base_prefix)}
    above = {parent for place in places for parent in (place, *place.parents)}
    return os.geteuid() == 0 and all(parent.stat().st_mode & 0o001 for parent in above)


class Installed(Server):
    """What the image starts, at home in an empty folder."""

    def __init__(self, folder: Path, dopl: Path) -> None:
        super().__init__(folder)
        self.dopl, home = dopl, folder / "home"
        kept = {"PATH", "LANG"}  # no PYTHONPATH, no database, no folder for runs
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self.environment |= containerfile.environment() | {"HOME": str(home)}
        self.environment |= {"STREAMLIT_SERVER_PORT": str(self.port), "OMP_NUM_THREADS": "1"}
        self.command, self.cwd = [str(dopl), *containerfile.command()[1:]], folder / "empty"
        for place in (self.cwd, home):
            place.mkdir()
            if can_be_nobody():
                self.user = NOBODY
                shutil.chown(place, NOBODY, NOBODY)

    def do(self, *words: str | Path) -> "subprocess.CompletedProcess[str]":
        given = {"cwd": self.cwd, "env": self.environment, "user": self.user}
        return subprocess.run(words, capture_output=True, text=True, check=False, **given)

    def run(self, *words: str) -> str:
        done = self.do(self.dopl, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file of the programs: when it was changed, and its size."""
        found = self.dopl.parents[1].rglob("*")
        return {str(one): (one.stat().st_mtime_ns, one.stat().st_size) for one in found}

    def is_well(self) -> bool:
        """What the health check of the image says."""
        _, *script = containerfile.health_check()
        return self.do(self.dopl.with_name("python"), *script).returncode == 0


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """Build the wheel, install it where only the dependencies are, and nothing is started yet."""
    folder = Path(tempfile.mkdtemp(prefix="dopl-wheel-", dir=folder_in_memory()))
    folder.chmod(0o755)  # pytest's own folders are closed to others
    containerfile.copy_sources(source := folder / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
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
    shutil.rmtree(folder)


def test_nothing_comes_from_the_checkout(installed):
    script = "import dopl_core, dopl_core.paths as p; print(dopl_core.__file__, p.ROOT, p.KEPT)"
    said = installed.do(installed.dopl.with_name("python"), "-c", script).stdout.split()
    assert len(said) == 3
    assert all(place.startswith(str(installed.folder)) for place in said)
    assert said[2] == str(installed.folder / "home/.local/share/dopl")


@pytest.mark.parametrize(
    ("folder", "file"), [("guides", "owner.md"), ("locale", "hi/LC_MESSAGES/dopl.po")]
)
def test_guides_and_languages_travel_in_the_wheel(installed, folder, file):
    [found] = (installed.folder / "venv").glob(
        f"lib/python*/site-packages/dopl_core/app/data/{folder}"
    )
    source = ROOT / "data" / folder
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    assert {path.relative_to(found) for path in found.rglob("*") if path.is_file()} == files
    assert (found / file).read_bytes() == (source / file).read_bytes()


def test_the_table_of_trials_travels_in_the_wheel(installed):
    script = "from dopl_core.learning import effects; print(effects.FILE, len(effects.trials()))"
    file, count = installed.do(installed.dopl.with_name("python"), "-c", script).stdout.split()
    assert Path(file).is_relative_to(installed.folder)
    assert int(count) == (ROOT / "data" / "effects.toml").read_text().count("[[trials]]")


def test_it_simulates(installed):
    installed.run("simulate", "cpap", "--episodes", "3", "--horizon", "5", "--out", "results")
    lines = (installed.cwd / "results" / "episodes.csv").read_text().splitlines()
    assert len(lines) == 1 + 3


def test_it_serves_and_writes_to_its_home_folder_only(installed, page: Page):
    before = installed.files()
    assert not installed.is_well()
    installed.start()
    assert installed.is_well()
    key = re.search(r"/\?key=\S+", installed.log())
    assert key is not None
    page.goto(f"{installed.url}{key[0]}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.goto(f"{installed.url}/studies")
    page.get_by_role("tab", name="New study").click()
    expect(page.get_by_role("button", name="An example roster (CSV)")).to_be_visible()
    page.goto(f"{installed.url}/help?guide=server")
    expect(page.get_by_role("heading", name="Run a server")).to_be_visible()
    kept = installed.folder / "home/.local/share/dopl"
    assert (kept / "dopl.db").stat().st_mode & 0o077 == 0
    assert (kept / "dopl.db").stat().st_uid == (installed.user or os.geteuid())
    assert installed.run("studies") == ""  # the same database, still empty
    assert [path.name for path in installed.cwd.iterdir()] in ([], ["results"])
    assert installed.files() == before
    installed.kill()
    assert not installed.is_well()
