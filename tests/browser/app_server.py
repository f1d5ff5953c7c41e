"""The real app on a free port with a database of its own, for browser tests and benchmarks."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _free_port() -> int:
    """A port that nothing listens on, below those that outgoing connections are given.

    One of these could be taken again before the server has it.
    """
    while True:
        port = secrets.choice(range(10_000, 32_000))
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


class Server:
    """`streamlit run` in a folder for its data; can be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.port = _free_port()
        self.url = f"http://localhost:{self.port}"
        self.environment = os.environ | {
            "DOPL_DATABASE_URL": f"sqlite:///{folder / 'dopl.db'}",
            "DOPL_RUNS": str(folder / "runs"),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py"]
        self.cwd = ROOT
        self.user: int | None = None  # who runs it; None: we do
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Server":
        options = ["--server.port", str(self.port), "--server.headless", "true", *self.options]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                self.command + options,
                cwd=self.cwd,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self.user,
            )
        deadline = time.monotonic() + 120  # a machine may be slow
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1):  # noqa: S310
                    return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the app did not start; see {self.folder / 'server.log'}")

    def kill(self) -> None:
        """End it as a power cut would, with the processes it started."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")
