"""Sweeps that the app starts: each in a process of its own, and in a folder that says all of it.

run.json beside the sweep's own files: the runs, the process that plays them, since when, and
whether a person stopped it. So a page may be left, and a server restarted, while it goes on.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from dopl_core import results
from dopl_core.runs import Run

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "data" / "runs"

Status = Literal["running", "finished", "stopped", "failed"]

_NICE = 10  # simulations give way to clicks


@dataclass(frozen=True)
class Simulation:
    """A sweep as it stands.

    done, total: episodes played and wanted;  seconds_left: None when nothing can be said yet
    trouble: the last thing a process that failed has said
    """

    id: str
    folder: Path
    runs: tuple[Run, ...]
    status: Status
    started: float
    done: int
    total: int
    seconds_left: float | None
    trouble: str

    @property
    def title(self) -> str:
        run = self.runs[0]
        learners = ", ".join(dict.fromkeys(r.learner for r in self.runs))
        seeds = len({r.seed for r in self.runs})
        size = f"{run.episodes} episodes of {run.horizon}, {seeds} seed{'s' if seeds > 1 else ''}"
        return f"{Path(run.environment).stem}: {learners} ({run.confidence}), {size}"

    def rows(self) -> pd.DataFrame:
        """What has been played by now: the columns of episodes.csv."""
        if not (self.folder / "episodes.csv").exists():
            return pd.DataFrame(columns=list(results.COLUMNS))
        return results.read(self.folder)


def start(runs: Sequence[Run], *, jobs: int = 1, folder: Path | None = None) -> str:
    """Play runs that differ in learner and seed only; the id of their simulation."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    place = home(folder) / name
    place.mkdir(parents=True)
    _launch(place, {"runs": [asdict(run) for run in runs], "jobs": jobs})
    return name


def go_on(simulation: Simulation) -> None:
    """Play on what was stopped or has failed."""
    if simulation.status in ("stopped", "failed"):
        _launch(simulation.folder, _about(simulation.folder))


def stop(simulation: Simulation) -> None:
    """End it; what was played stays, and it can go on later."""
    about = _about(simulation.folder)
    if _is_alive(about["pid"]):
        os.killpg(about["pid"], signal.SIGTERM)
        _note(simulation.folder, about | {"stopped": True})


def delete(simulation: Simulation) -> None:
    """Remove it and its rows."""
    stop(simulation)
    shutil.rmtree(simulation.folder)


def find(name: str, folder: Path | None = None) -> Simulation:
    """A simulation as it stands now."""
    place = home(folder) / Path(name).name
    if not (place / "run.json").exists():
        raise ValueError(f'there is no simulation "{name}"')
    about = _about(place)
    runs = tuple(Run(**run) for run in about["runs"])
    done, total = _count(place), sum(run.episodes for run in runs)
    status: Status = "failed"
    if _is_alive(about["pid"]):
        status = "running"
    elif done >= total:
        status = "finished"
    elif about["stopped"]:
        status = "stopped"
    played, took = done - about["had"], time.time() - about["started"]
    left = took * (total - done) / played if status == "running" and played > 0 else None
    trouble = _last_words(place) if status == "failed" else ""
    return Simulation(name, place, runs, status, about["started"], done, total, left, trouble)


def find_all(folder: Path | None = None) -> list[Simulation]:
    """All simulations, the newest first."""
    places = sorted(home(folder).glob("*/run.json"), reverse=True)
    return [find(place.parent.name, folder) for place in places]


def home(folder: Path | None = None) -> Path:
    """Where simulations are kept: DOPL_RUNS, else data/runs."""
    return folder or Path(os.environ.get("DOPL_RUNS") or FOLDER)


def _launch(place: Path, about: dict[str, Any]) -> None:
    runs = [Run(**run) for run in about["runs"]]
    first = runs[0]
    command = [sys.executable, "-m", "dopl_core.cli", "simulate", first.environment, "--learner"]
    command += dict.fromkeys(run.learner for run in runs)
    for option in ("confidence", "engine", "design", "ties", "episodes", "horizon", "temperature"):
        command += [f"--{option}", str(getattr(first, option))]
    command += ["--seeds", str(len({run.seed for run in runs})), "--jobs", str(about["jobs"])]
    command += ["--environment-seed", str(first.environment_seed), "--out", str(place)]
    command += ["--restart"] if first.restart else []
    with open(place / "log.txt", "ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
    now = {"pid": process.pid, "started": time.time(), "had": _count(place), "stopped": False}
    _note(place, about | now)


def _about(place: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((place / "run.json").read_text("utf-8"))
    return about


def _note(place: Path, about: dict[str, Any]) -> None:
    new = place / "run.json.new"
    new.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    os.replace(new, place / "run.json")


def _count(place: Path) -> int:
    """Rows there are by now."""
    rows = place / "episodes.csv"
    return max(0, rows.read_bytes().count(b"\n") - 1) if rows.exists() else 0


def _is_alive(pid: int) -> bool:
    """Whether the process that leads this group still plays; one that has ended is laid to rest."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass  # started by a server that is no more
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def _last_words(place: Path) -> str:
    log = place / "log.txt"
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][:300] if lines else "it ended without a word"
