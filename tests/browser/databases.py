"""Databases that can be taken away from a running app, and given back."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

STUDIES = Path(__file__).resolve().parents[1] / "studies"


class SQLite:
    """A file that is moved away."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "dopl.db"
        self.url = f"sqlite:///{self.file}"
        self.secrets = (str(folder), "sqlite", "dopl.db")

    def stop(self) -> None:
        self.file.rename(self.file.with_name("elsewhere"))

    def start(self) -> None:
        self.file.with_name("elsewhere").rename(self.file)

    def end(self) -> None:
        pass


class PostgreSQL:
    """A server of our own that is stopped; the tests of studies know how to find one."""

    def __init__(self, _: Path) -> None:
        sys.path.append(str(STUDIES))
        spec = importlib.util.spec_from_file_location("of_studies", STUDIES / "conftest.py")
        of_studies = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(of_studies)
        self.folder = Path(tempfile.mkdtemp(prefix="dopl-out-"))
        self.folder.chmod(0o755)
        binaries, self.user = of_studies._binaries(), None
        if os.geteuid() == 0:
            self.user = "nobody"
            shutil.chown(self.folder, self.user)
            binaries = of_studies._for_everybody(binaries, self.folder)
        name = self.user or pwd.getpwuid(os.geteuid()).pw_name
        self.url = f"postgresql+psycopg://{name}@/postgres?host={self.folder}"
        self.secrets = (name, str(self.folder), "postgres", "connection", "socket")
        data = self.folder / "data"
        initdb = [binaries / "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, user=self.user, check=True, capture_output=True, cwd="/")
        self.command = [binaries / "postgres", "-D", data, "--fsync=off", "--listen_addresses="]
        self.command.append(f"--unix_socket_directories={self.folder}")
        self.wait_for = of_studies._wait_for
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                self.command, user=self.user, stdout=log, stderr=log, cwd="/"
            )
        self.wait_for(self.url, self.folder / "log")

    def stop(self) -> None:
        self.server.send_signal(signal.SIGINT)  # fast: ends every connection
        self.server.wait(20)

    def end(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
