"""A hundred strangers flood the app for a minute while twenty annotators answer.

Both speak the app's protocol, on this computer. Printed for each part: from click to answer, and
the server's share of a core; then whether the server has the same processes and the draft of a
report, and its memory before, at the end of, and after the flood. DOPL_SECONDS sets the length of
each part (60). On a busy machine, run it at real-time priority: `chrt -f 10 dopl bench flood`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parent / "browser")]

ANNOTATORS, THINK, STRANGERS = 20, 2.0, 100
SETTLED = 150  # seconds after which Streamlit forgets a closed websocket, when another is closed


def main() -> None:
    """Print a line for each part."""
    folder, seconds = Path(tempfile.mkdtemp()), int(os.environ.get("DOPL_SECONDS", 60))
    load = f"(load before: {os.getloadavg()[0]:.1f})"
    print(f"flood: {STRANGERS} strangers, {ANNOTATORS} annotators, {seconds} s {load}", flush=True)
    try:
        play(folder, seconds)
    finally:
        shutil.rmtree(folder)


def play(folder: Path, seconds: int) -> None:
    from app_server import Server
    from crowd import _memory
    from raw_visit import Visit

    from dopl_core import studies
    from dopl_core.studies import access

    server = Server(folder)
    server.environment["DOPL_ASK_FOR_KEY"] = "1"
    server.start()
    store = studies.open_store(server.environment["DOPL_DATABASE_URL"])
    config = studies.from_environment("cpap", practice=False, horizon=100)
    study = studies.create_study(store, config)
    studies.change_draft(store, study, 1, lambda draft: draft.states.update(p1="Low"))
    people = [access.invite(store, study, f"{n}") for n in range(ANNOTATORS)]
    script = [sys.executable, str(_HERE / "_crowd.py"), server.url, str(THINK), *people]
    crowd = subprocess.Popen(script, stdout=subprocess.PIPE, text=True)
    clicks: list[float] = []
    try:
        _listen(crowd, clicks)
        time.sleep(min(30, seconds))  # imports, and the first pages
        without = _part(clicks, seconds, server.process.pid)
        before, processes = _memory(server.process.pid), _processes(server.process.pid)
        sent = [sys.executable, str(_HERE / "_flood.py"), str(server.port), str(STRANGERS)]
        flood = subprocess.Popen([*sent, str(seconds)], stdout=subprocess.PIPE, text=True)
        during = _part(clicks, seconds, server.process.pid)
        peak = _memory(server.process.pid)
        counts = flood.communicate()[0].split()
        after = _part(clicks, seconds, server.process.pid)
        kept = studies.read_draft(store, study, 1).states
        same = _processes(server.process.pid) == processes
    finally:
        crowd.terminate()
        crowd.wait()
    time.sleep(max(0, SETTLED - seconds))
    visit = Visit(server.port)
    visit.run()
    visit.close()
    time.sleep(5)
    print(f"  without: {without}\n  during:  {during}\n  after:   {after}")
    print(f"  {counts[0]} messages over {counts[1]} websockets; processes the same: {same}; ")
    print(f"  draft kept: {bool(kept)}; {before:.0f} MB before, {peak:.0f} MB at the end, ", end="")
    print(f"{_memory(server.process.pid):.0f} MB {SETTLED} s later", flush=True)
    server.kill()
    store.close()


def _listen(crowd: "subprocess.Popen[str]", clicks: list[float]) -> None:
    """Collect the milliseconds from each click to its answer; NaN for a trouble."""

    def read() -> None:
        assert crowd.stdout is not None
        for line in crowd.stdout:
            clicks.append(float("nan") if line.startswith("trouble") else float(line))

    threading.Thread(target=read, daemon=True).start()


def _part(clicks: list[float], seconds: int, server: int) -> str:
    from crowd import _processor

    start, used = len(clicks), _processor(server)
    time.sleep(seconds)
    used = _processor(server) - used
    took = np.array(clicks[start:])
    p50, p95 = np.nanpercentile(took, [50, 95])
    return (
        f"{len(took)} clicks, median {p50:.0f} ms, 95 % under {p95:.0f} ms, "
        f"{np.isnan(took).sum()} troubles, {100 * used / seconds:.0f} % of a core"
    )


def _processes(server: int) -> set[str]:
    tasks = Path(f"/proc/{server}/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text().split()}


if __name__ == "__main__":
    main()
