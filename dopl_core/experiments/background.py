"""Sweeps that the app starts: each in a process of its own, and in a folder that says all of it.

run.json beside the sweep's own files: what is played, the process that plays it, since when, and
whether a person stopped it. So a page may be left, and a server restarted, while it goes on.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from dopl_core.experiments import results
from dopl_core.experiments.runs import grid

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "runs"

Status = Literal["running", "finished", "stopped", "failed"]
Measure = Literal["reward", "cumulative_regret", "index_error"]

_PATIENCE = 3.0  # seconds in which a process that is told to end may do so
_NICE = 10  # simulations give way to clicks
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
    trouble: the last thing a process that failed has said
    """

    id: str
    folder: Path
    settings: Settings
    status: Status
    done: int
    total: int
    seconds_left: float | None
    trouble: str

    @property
    def title(self) -> str:
        return self.settings.title

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
    if not _is_alive(about["pid"]):
        return
    _note(simulation.folder, about | {"stopped": True})
    os.killpg(about["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while _is_alive(about["pid"]):
        if time.monotonic() > deadline:
            os.killpg(about["pid"], signal.SIGKILL)
        time.sleep(0.02)


def delete(simulation: Simulation) -> None:
    """Remove it and its rows."""
    stop(simulation)
    shutil.rmtree(simulation.folder)


def find(name: str) -> Simulation:
    """A simulation as it stands now."""
    folder = home() / Path(name).name
    if not (folder / "run.json").exists():
        raise ValueError(f'there is no simulation "{name}"')
    about = _about(folder)
    settings = Settings(**(about["settings"] | {"learners": tuple(about["settings"]["learners"])}))
    alive, done = _is_alive(about["pid"]), _count(folder)
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
    return [find(about.parent.name) for about in sorted(home().glob("*/run.json"), reverse=True)]


def home() -> Path:
    """Where simulations are kept: DOPL_RUNS, else data/runs."""
    return Path(os.environ.get("DOPL_RUNS") or FOLDER)


def curves(simulations: Sequence[Simulation], measure: Measure) -> pd.DataFrame:
    """Means over seeds against the epochs played: columns run, learner, epochs, value.

    Neighbouring episodes are averaged where a curve has more points than a screen can show. The
    oracle and random help on the same luck are curves too, where a reward is asked for.
    """
    parts = []
    for number, simulation in enumerate(simulations, 1):
        rows = simulation.rows()
        if rows.empty:
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
    now = {"pid": process.pid, "started": time.time(), "had": _count(folder), "stopped": False}
    _note(folder, about | now)


def _about(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
    return about


def _note(folder: Path, about: dict[str, Any]) -> None:
    new = folder / "run.json.new"
    new.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    os.replace(new, folder / "run.json")


def _count(folder: Path) -> int:
    """Rows there are by now."""
    rows = folder / "episodes.csv"
    return max(0, rows.read_bytes().count(b"\n") - 1) if rows.exists() else 0


def _is_alive(pid: int) -> bool:
    """Whether the process that leads this group still plays; one that has ended is reaped."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass  # started by a server that is no more
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def _last_words(folder: Path) -> str:
    log = folder / "log.txt"
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][:300] if lines else "it ended without a word"
