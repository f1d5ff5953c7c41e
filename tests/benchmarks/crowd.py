"""Fifty annotators on one process of the app, two seconds to think, on both databases; its memory.

They speak the app's protocol without browsers; measured from the click to the end of its run. The
plans of their study are made meanwhile, and the waits for them are included.

Then forty who think for half a second give DOPL_CLICKS answers (10,000), on SQLite. The
growth of the server's memory is printed; the first 2,000 fill the caches of open pages.
DOPL_DATABASES picks databases by their first letters, separated by commas ("none": memory only).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS / "browser")]

ANNOTATORS, THINK, SECONDS = 50, 2.0, 90
QUICK, QUICK_THINK, FIRST, STEPS = 40, 0.5, 2_000, 8
ENDED = "ended"


def main() -> None:
    """Print times, troubles, processor time a click, and memory after the first minute and last."""
    from databases import PostgreSQL, SQLite

    print(f"crowd: click to answer (load before: {os.getloadavg()[0]:.1f})")
    chosen = tuple(os.environ.get("DOPL_DATABASES", "").split(","))
    for kind in (SQLite, PostgreSQL):
        if not kind.__name__.startswith(chosen):
            continue
        folder = Path(tempfile.mkdtemp())
        database = kind(folder)
        try:
            print(f"  {kind.__name__}: {play(folder, database.url)}", flush=True)
        finally:
            database.end()
            shutil.rmtree(folder)
    clicks = int(os.environ.get("DOPL_CLICKS", 10_000))
    if clicks > FIRST:
        folder = Path(tempfile.mkdtemp())
        try:
            print(f"  memory: {grow(folder, clicks)}", flush=True)
        finally:
            shutil.rmtree(folder)


def play(folder: Path, url: str) -> str:
    """Times of clicks, while there is time to think."""
    with _crowd(folder, url, ANNOTATORS, THINK) as (server, answered, lines):
        time.sleep(SECONDS - 30)
        first, used = _memory(server), _processor(server)
        before = answered()
        time.sleep(30)
        last, used = _memory(server), _processor(server) - used
        answers = answered()
    took = np.array([float(line) for line in lines if line not in ("trouble", ENDED)][ANNOTATORS:])
    p50, p95 = np.percentile(took, [50, 95])
    return (
        f"median {p50:.0f} ms, 95 % under {p95:.0f} ms, slowest {took.max():.0f} ms, "
        f"{lines.count('trouble')} troubles in {answers} answers; "
        f"{1000 * used / max(1, answers - before):.0f} ms of processor time each; "
        f"{first:.0f} MB after {SECONDS - 30} s, {last:.0f} MB after {SECONDS} s"
    )


def grow(folder: Path, clicks: int) -> str:
    """Memory by the number of clicks: a line fitted to nine measurements."""
    marks, measured = np.linspace(FIRST, clicks, STEPS + 1), []
    url = f"sqlite:///{folder / 'dopl.db'}"
    with _crowd(folder, url, QUICK, QUICK_THINK) as (server, answered, lines):
        for mark in marks:
            while answered() < mark:
                time.sleep(0.5)
                if ENDED in lines:
                    raise RuntimeError("the annotators have ended")
            measured.append(_memory(server))
    slope = 10_000 * np.polyfit(marks, measured, 1)[0]
    return (
        f"{measured[0]:.0f} MB after {FIRST} clicks, {measured[-1]:.0f} MB after {clicks}, at most "
        f"{max(measured):.0f} MB: {slope:+.1f} MB for each 10,000"
    )


@contextmanager
def _crowd(
    folder: Path, url: str, people: int, think: float
) -> Iterator[tuple[int, Callable[[], int], list[str]]]:
    """Annotators who answer: the server's process, their answers so far, and what they print."""
    from app_server import Server

    from dopl_core import studies
    from dopl_core.studies import access

    server = Server(folder)
    server.environment["DOPL_DATABASE_URL"] = url
    server.start()
    store = studies.open_store(url)
    config = studies.from_environment("cpap", practice=False, horizon=100)
    study = studies.create_study(store, config)
    links = [access.invite(store, study, f"{n}") for n in range(people)]
    script = str(Path(__file__).with_name("_crowd.py"))
    crowd = subprocess.Popen(
        [sys.executable, script, server.url, str(think), *links], stdout=subprocess.PIPE, text=True
    )
    lines: list[str] = []

    def read() -> None:
        for line in crowd.stdout or ():
            lines.append(line.strip())
        lines.append(ENDED)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield server.process.pid, lambda: studies.get_study(store, study).answers, lines
    finally:
        crowd.terminate()
        crowd.wait()
        reading.join()
        server.kill()
        store.close()


def _memory(process: int) -> float:
    """Resident megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _processor(process: int) -> float:
    """Seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
