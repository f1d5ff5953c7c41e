"""Sweeps that the app starts: each in a process of its own, and in a folder that says all of it.

run.json beside the sweep's own files: what is played, the process that plays it, since when, and
whether a person stopped it. So a page may be left, and a server restarted, while it goes on.

A process is known by its number and its birth: numbers are used again, after a restart of the
computer at the latest, and nobody else's process is ever stopped.
"""

import io
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from dopl_core.experiments import results
from dopl_core.experiments.runs import grid
from dopl_core.places import KEPT, ROOT

Status = Literal["running", "finished", "stopped", "failed", "broken"]
Measure = Literal["reward", "cumulative_regret", "index_error"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PATIENCE = 3.0  # seconds in which a process that is told to end may do so
_NICE = 10  # simulations give way to clicks
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "settings": dict,
    "jobs": int,
    "pid": int,
    "birth": str,
    "started": (int, float),
    "had": int,
    "stopped": bool,
}
_KINDS = {
    dict: "table",
    int: "whole number",
    str: "text",
    (int, float): "number",
    bool: "yes or no",
}
_POINTS = {
    "reward": 40,
    "cumulative_regret": 200,
    "index_error": 100,
}  # of a curve; noise is averaged


@dataclass(frozen=True)
class Settings:
    """What is played: each learner with seeds 0, 1, ... in one environment."""

    environment: str
    learners: tuple[str, ...]
    confidence: str
    episodes: int
    horizon: int
    seeds: int

    def __post_init__(self) -> None:
        if not self.learners:
            raise ValueError("no learner is chosen: choose one at least")
        if self.seeds < 1:
            raise ValueError(f"seeds is {self.seeds}: at least 1 needed")
        grid(
            [self.environment],
            self.learners,
            [0],
            episodes=self.episodes,
            horizon=self.horizon,
            confidence=self.confidence,
        )

    @property
    def title(self) -> str:
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return (
            f"{self.environment}, {self.confidence}: {', '.join(self.learners)}; "
            f"{self.episodes} episodes of {self.horizon}, {seeds}"
        )


@dataclass(frozen=True)
class Simulation:
    """A sweep as it stands.

    done, total: episodes played and wanted;  seconds_left: None when nothing can be said yet
    trouble: the last thing a process that failed has said, or why run.json cannot be read
    settings: None where it is broken: all that can be done with it is to delete it
    """

    id: str
    folder: Path
    settings: Settings | None
    status: Status
    done: int
    total: int
    seconds_left: float | None
    trouble: str

    @property
    def title(self) -> str:
        return "A simulation that cannot be read" if self.settings is None else self.settings.title

    def rows(self) -> pd.DataFrame:
        """What has been played by now: the columns of episodes.csv."""
        if not (self.folder / "episodes.csv").exists():
            return pd.DataFrame(columns=list(results.COLUMNS))
        return results.read(self.folder)


def start(settings: Settings, *, jobs: int = 1) -> str:
    """Play in the background; the simulation's id."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    folder = home() / name
    folder.mkdir(parents=True)
    _launch(folder, {"settings": asdict(settings), "jobs": jobs})
    return name


def go_on(simulation: Simulation) -> None:
    """Play on what was stopped or has failed."""
    if simulation.status in ("stopped", "failed"):
        _launch(simulation.folder, _about(simulation.folder))


def stop(simulation: Simulation) -> None:
    """End it; what was played stays, and it can go on later."""
    about = _about(simulation.folder)
    if not _is_alive(about):
        return
    _note(simulation.folder, about | {"stopped": True})
    os.killpg(about["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while _is_alive(about):
        if time.monotonic() > deadline:
            os.killpg(about["pid"], signal.SIGKILL)
        time.sleep(0.02)


def delete(simulation: Simulation) -> None:
    """Remove it and its rows."""
    if simulation.status != "broken":
        stop(simulation)
    shutil.rmtree(simulation.folder)


def find(name: str) -> Simulation:
    """A simulation as it stands now."""
    folder = home() / Path(name).name
    if not (folder / "run.json").exists():
        raise ValueError(f'there is no simulation "{name}"')
    try:
        about = _about(folder)
        settings = _settings(about)
    except (ValueError, OSError) as error:
        return Simulation(name, folder, None, "broken", _count(folder), 0, None, str(error))
    alive, done = _is_alive(about), _count(folder)
    total = settings.episodes * settings.seeds * len(settings.learners)
    status: Status = "failed"
    if alive:
        status = "running"
    elif done >= total:
        status = "finished"
    elif about["stopped"]:
        status = "stopped"
    played, took = done - about["had"], time.time() - about["started"]
    left = took * (total - done) / played if alive and played > 0 else None
    trouble = _last_words(folder) if status == "failed" else ""
    return Simulation(name, folder, settings, status, done, total, left, trouble)


def find_all() -> list[Simulation]:
    """All simulations, the newest first."""
    found = []
    for about in sorted(home().glob("*/run.json"), reverse=True):
        with suppress(ValueError):  # deleted just now
            found.append(find(about.parent.name))
    return found


def home() -> Path:
    """Where simulations are kept: DOPL_RUNS, else runs/ beside the database."""
    return Path(os.environ.get("DOPL_RUNS") or KEPT / "runs")


def curves(simulations: Sequence[Simulation], measure: Measure) -> pd.DataFrame:
    """Means over seeds against the epochs played: columns run, learner, epochs, value.

    Neighbouring episodes are averaged where a curve has more points than a screen can show. The
    oracle and random help on the same luck are curves too, where a reward is asked for.
    """
    parts = []
    for number, simulation in enumerate(simulations, 1):
        if simulation.settings is None or (rows := simulation.rows()).empty:
            continue
        values = {str(name): own for name, own in rows.groupby("learner", sort=False)}
        if measure == "reward":
            for reference in ("oracle", "random"):
                if reference not in values:
                    values[reference] = rows.assign(reward=rows[f"{reference}_reward"])
        for learner, own in values.items():
            last = own.groupby("seed").episode.max().min()  # where all seeds have got to
            mean = own[own.episode <= last].groupby("episode")[measure].mean()
            width = max(1, -(-len(mean) // _POINTS[measure]))
            mean = mean.groupby((np.arange(len(mean)) // width + 1) * width).mean()
            part = pd.DataFrame({"epochs": mean.index * simulation.settings.horizon, "value": mean})
            if measure == "cumulative_regret":
                part["value"] *= simulation.settings.horizon
            parts.append(part.assign(run=str(number), learner=learner))
    columns = ["run", "learner", "epochs", "value"]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def finding(curves: pd.DataFrame) -> str:
    """What the curves of rewards say of the first run: where DOPL is between random and oracle."""
    first = curves[curves.run == curves.run.iloc[0]]
    late = first[first.epochs > 0.8 * first.epochs.max()].groupby("learner").value.mean()
    gap = late["oracle"] - late["random"]
    if "dopl" not in late or gap <= 0:
        return "Rewards against the epochs played"
    share = (late["dopl"] - late["random"]) / gap
    return (
        f"After {first.epochs.max()} epochs DOPL gains {share:.0%} of what the oracle, who knows "
        "everything, gains over random help"
    )


def picture(simulation: Simulation) -> bytes:
    """The paper's picture of a simulation as PNG."""
    from dopl_core.experiments.figures import reward_and_regret  # slow to import, and seldom needed

    buffer = io.BytesIO()
    reward_and_regret(simulation.rows(), buffer, simulation.title)
    return buffer.getvalue()


def _launch(folder: Path, about: dict[str, Any]) -> None:
    given = about["settings"]
    command = [sys.executable, "-m", "dopl_core.cli", "simulate", given["environment"]]
    command += ["--learner", *given["learners"], "--confidence", given["confidence"]]
    for option in ("episodes", "horizon", "seeds"):
        command += [f"--{option}", str(given[option])]
    command += ["--jobs", str(about["jobs"]), "--out", str(folder)]
    with open(folder / "log.txt", "ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
    now = {
        "pid": process.pid,
        "birth": _birth(process.pid),  # ours until it is waited for, even if it has ended
        "started": time.time(),
        "had": _count(folder),
        "stopped": False,
    }
    _note(folder, about | now)


def _about(folder: Path) -> dict[str, Any]:
    """What run.json says; in a ValueError what is wrong with it."""
    try:
        about = json.loads((folder / "run.json").read_text("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("run.json is not JSON") from None
    if not isinstance(about, dict):
        raise ValueError("run.json has no fields")
    about.setdefault("birth", "")  # files of earlier versions have none
    for name, kind in _FIELDS.items():
        value = about.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"run.json: {name} is missing, or no {_KINDS[kind]}")
    return about


def _settings(about: dict[str, Any]) -> Settings:
    try:
        given = about["settings"]
        return Settings(**(given | {"learners": tuple(given["learners"])}))
    except (KeyError, TypeError) as error:
        raise ValueError(f"run.json: settings cannot be read: {error}") from None


def _note(folder: Path, about: dict[str, Any]) -> None:
    new = folder / "run.json.new"
    new.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    os.replace(new, folder / "run.json")


def _count(folder: Path) -> int:
    """Rows there are by now."""
    rows = folder / "episodes.csv"
    return max(0, rows.read_bytes().count(b"\n") - 1) if rows.exists() else 0


def _is_alive(about: dict[str, Any]) -> bool:
    """Whether the very process that was started still plays; one that has ended is reaped."""
    pid: int = about["pid"]
    if pid <= 1 or not about["birth"]:
        return False
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except (ChildProcessError, OverflowError):
        pass  # started by a server that is no more
    try:
        return os.getpgid(pid) == pid and _birth(pid) == about["birth"]
    except (ProcessLookupError, PermissionError, OverflowError):
        return False


def _birth(pid: int) -> str:
    """When a process was started, in words that no two processes of one number share; or ""."""
    try:
        # The 22nd field, after the name in parentheses: ticks since the computer was started.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"{_BOOT.read_text().strip()} {fields[19]}"
    except (OSError, IndexError):
        pass
    command = ["ps", "-o", "lstart=", "-p", str(pid)]  # where there is no /proc
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _last_words(folder: Path) -> str:
    log = folder / "log.txt"
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][:300] if lines else "it ended without a word"
