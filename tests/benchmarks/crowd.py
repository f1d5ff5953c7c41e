"""Fifty annotators on one process of the app, two seconds to think, on both databases.

They speak the app's protocol without browsers; measured from the click to the end of its run. The
plans of their study are made meanwhile, and the waits for them are included.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS / "browser")]

ANNOTATORS, THINK, SECONDS = 50, 2.0, 90


def main() -> None:
    """Print times, troubles, processor time a click, and memory after the first minute and last."""
    from databases import PostgreSQL, SQLite

    print(f"crowd: click to answer (load before: {os.getloadavg()[0]:.1f})")
    for kind in (SQLite, PostgreSQL):
        folder = Path(tempfile.mkdtemp())
        database = kind(folder)
        try:
            print(f"  {kind.__name__}: {play(folder, database.url)}", flush=True)
        finally:
            database.end()
            shutil.rmtree(folder)


def play(folder: Path, url: str) -> str:
    from app_server import Server

    from dopl_core import studies
    from dopl_core.studies import access

    server = Server(folder)
    server.environment["DOPL_DATABASE_URL"] = url
    server.start()
    store = studies.open_store(url)
    config = studies.from_environment("cpap", practice=False, horizon=100)
    study = studies.create_study(store, config)
    people = [access.invite(store, study, f"{n}") for n in range(ANNOTATORS)]
    script = str(Path(__file__).with_name("_crowd.py"))
    crowd = subprocess.Popen(
        [sys.executable, script, server.url, str(THINK), *people], stdout=subprocess.PIPE, text=True
    )
    try:
        time.sleep(SECONDS - 30)
        first, used = _memory(server.process.pid), _processor(server.process.pid)
        before = studies.get_study(store, study).answers
        time.sleep(30)
        last, used = _memory(server.process.pid), _processor(server.process.pid) - used
        answers = studies.get_study(store, study).answers
    finally:
        crowd.terminate()
        lines = crowd.communicate()[0].splitlines()
        server.kill()
        store.close()
    took = np.array([float(line) for line in lines if line != "trouble"][ANNOTATORS:])
    p50, p95 = np.percentile(took, [50, 95])
    return (
        f"median {p50:.0f} ms, 95 % under {p95:.0f} ms, slowest {took.max():.0f} ms, "
        f"{lines.count('trouble')} troubles in {answers} answers; "
        f"{1000 * used / max(1, answers - before):.0f} ms of processor time each; "
        f"{first} MB after {SECONDS - 30} s, {last} MB after {SECONDS} s"
    )


def _memory(process: int) -> int:
    """Resident megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _processor(process: int) -> float:
    """Seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
