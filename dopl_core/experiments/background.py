"""Sweeps that the app starts, each in its own process and its own folder.

run.json beside the files of a sweep holds what is played, the process that plays it, when it began,
and whether a person stopped it. So a sweep continues when its page is left or the server restarts.

A process is identified by its number and the time of its start: numbers are used again, and the
process of somebody else must never be stopped.
"""

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from dopl_core import environments
from dopl_core.experiments import results
from dopl_core.experiments.runs import grid
from dopl_core.paths import KEPT, ROOT
from dopl_core.validation import convert

Status = Literal["running", "finished", "stopped", "failed", "broken"]
Measure = Literal["reward", "cumulative_regret", "index_error"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PATIENCE = 3.0  # seconds until a process that does not end is killed
_NICE = 10  # clicks come before simulations
_POINTS = {"reward": 40, "cumulative_regret": 200, "index_error": 100}  # of a curve, at most


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """What is played: each learner with seeds 0, 1, ... in one environment."""

    environment: str
    learners: tuple[str, ...]
    confidence: str
    episodes: int
    horizon: int
    seeds: int

    def __post_init__(self) -> None:
        if not self.learners:
            raise ValueError("no learner is chosen: choose at least one")
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
            f"{Path(self.environment).stem}, {self.confidence}: {', '.join(self.learners)}; "
            f"{self.episodes} episodes of {self.horizon}, {seeds}"
        )


class _RunFile(Struct, frozen=True):
    """What run.json holds.

    pid, birth: the process that plays, see `_birth`; birth is "" in files of earlier versions
    started: when it began, in seconds since 1970;  had: episodes that were played before
    stopped: a person stopped it
    """

    settings: Settings
    jobs: int
    pid: int
    started: float
    had: int
    stopped: bool
    birth: str = ""


@dataclass(frozen=True)
class Simulation:
    """A sweep as it stands.

    done, total: episodes played and wanted;  seconds_left: None while it is unknown
    trouble: the last line of the log of a process that failed, or why run.json cannot be read
    settings: None if run.json is broken; such a simulation can only be deleted
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

    @property
    def label(self) -> str:
        """The title, and when it was started: simulations with equal settings differ in it."""
        try:
            started = time.strptime(self.id[:15], "%Y%m%d-%H%M%S")
        except ValueError:
            return f"{self.title} ({self.id})"
        return f"{self.title} ({time.strftime('%d %b %Y, %H:%M:%S', started)})"

    def rows(self) -> pd.DataFrame:
        """The episodes played so far: the columns of episodes.csv."""
        if not (self.folder / "episodes.csv").exists():
            return pd.DataFrame(columns=list(results.COLUMNS))
        return results.read(self.folder)


def keep_environment(name: str, content: bytes) -> str:
    """Keep an uploaded TOML file beside the simulations, and return its path.

    Files of one name and other contents stay apart, so that a simulation can always continue.
    """
    stem = re.sub(r"[^\w-]+", "-", Path(name).stem)[:40].strip("-") or "world"
    try:
        environments.parse(environments.read_toml(content.decode()))
    except UnicodeDecodeError:
        raise ValueError(f"{name}: not a TOML file") from None
    except environments.BadEnvironmentError as error:
        raise ValueError(f"{name}: {error}") from None
    folder = home().absolute() / "environments" / hashlib.sha256(content).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.toml"
    path.write_bytes(content)
    return str(path)


def start(settings: Settings, *, jobs: int = 1) -> str:
    """Play in the background; the simulation's id."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    folder = home() / name
    folder.mkdir(parents=True)
    _launch(folder, settings, jobs)
    return name


def go_on(simulation: Simulation) -> None:
    """Continue a simulation that was stopped or has failed."""
    if simulation.status in ("stopped", "failed"):
        about = _read(simulation.folder)
        _launch(simulation.folder, about.settings, about.jobs)


def stop(simulation: Simulation) -> None:
    """End it; its episodes stay, and it can continue later."""
    about = _read(simulation.folder)
    if not _is_alive(about):
        return
    _write(simulation.folder, replace(about, stopped=True))
    os.killpg(about.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while _is_alive(about):
        if time.monotonic() > deadline:
            os.killpg(about.pid, signal.SIGKILL)
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
        about = _read(folder)
    except (ValueError, OSError) as error:
        return Simulation(name, folder, None, "broken", _count(folder), 0, None, str(error))
    alive, done, settings = _is_alive(about), _count(folder), about.settings
    total = settings.episodes * settings.seeds * len(settings.learners)
    status: Status = "failed"
    if alive:
        status = "running"
    elif done >= total:
        status = "finished"
    elif about.stopped:
        status = "stopped"
    played, took = done - about.had, time.time() - about.started
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
    """Means over seeds against the epochs played: run, learner, epochs, value, low, high.

    low, high: one standard deviation over seeds below and above the mean
    Neighbouring episodes are averaged if a curve has more points than a screen can show. For
    rewards, the oracle and random help with the same seeds are curves too.
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
            last = own.groupby("seed").episode.max().min()  # reached by all seeds
            played = own[own.episode <= last].groupby(["episode", "seed"])[measure].mean()
            by_seed = played.unstack()  # [episodes, seeds]
            width = max(1, -(-len(by_seed) // _POINTS[measure]))
            by_seed = by_seed.groupby((np.arange(len(by_seed)) // width + 1) * width).mean()
            if measure == "cumulative_regret":
                by_seed *= simulation.settings.horizon
            mean, spread = by_seed.mean(axis=1), by_seed.std(axis=1, ddof=0)
            epochs = by_seed.index * simulation.settings.horizon
            part = {"epochs": epochs, "value": mean, "low": mean - spread, "high": mean + spread}
            parts.append(pd.DataFrame(part).assign(run=str(number), learner=learner))
    columns = ["run", "learner", "epochs", "value", "low", "high"]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def finding(curves: pd.DataFrame) -> str:
    """A title for curves of rewards: where DOPL is between random and oracle in the first run."""
    first = curves[curves.run == curves.run.iloc[0]]
    # A run that was stopped has learners that came further than others.
    end = first.groupby("learner").epochs.max().min()
    late = first[(first.epochs > 0.8 * end) & (first.epochs <= end)]
    late = late.groupby("learner").value.mean()
    if not {"dopl", "oracle", "random"} <= set(late.index) or late["oracle"] <= late["random"]:
        return "Rewards against the epochs played"
    share = (late["dopl"] - late["random"]) / (late["oracle"] - late["random"])
    percent = f"{100 * share:.0f} %"
    return f"After {end} epochs DOPL gains {percent} of what the oracle gains over random help"


def comparison(simulations: Sequence[Simulation]) -> pd.DataFrame:
    """The arena's table of the rows played so far, by run; empty if there are none."""
    from dopl_core.experiments import arena  # slow to import

    parts = [
        simulation.rows().assign(start=number)
        for number, simulation in enumerate(simulations, 1)
        if simulation.settings is not None and simulation.done
    ]
    if not parts:
        return pd.DataFrame()
    return arena.table(pd.concat(parts, ignore_index=True)).rename(columns={"start": "run"})


def picture(simulation: Simulation) -> bytes:
    """The paper's figure of a simulation as PNG."""
    from dopl_core.experiments.figures import reward_and_regret  # slow to import, seldom needed

    buffer = io.BytesIO()
    reward_and_regret(simulation.rows(), buffer, simulation.title)
    return buffer.getvalue()


def _launch(folder: Path, settings: Settings, jobs: int) -> None:
    command = [sys.executable, "-m", "dopl_core.cli", "simulate", settings.environment]
    command += ["--learner", *settings.learners, "--confidence", settings.confidence]
    for option in ("episodes", "horizon", "seeds"):
        command += [f"--{option}", str(getattr(settings, option))]
    command += ["--jobs", str(jobs), "--out", str(folder)]
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
    about = _RunFile(
        settings,
        jobs,
        pid=process.pid,
        birth=_birth(process.pid),  # known even if it has ended: nobody has waited for it yet
        started=time.time(),
        had=_count(folder),
        stopped=False,
    )
    _write(folder, about)


def _read(folder: Path) -> _RunFile:
    """What run.json holds, or a ValueError with the reason why it cannot be read."""
    try:
        data = json.loads((folder / "run.json").read_text("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("run.json is not JSON") from None
    return convert(data, _RunFile, "run.json")


def _write(folder: Path, about: _RunFile) -> None:
    new = folder / "run.json.new"
    new.write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n")
    os.replace(new, folder / "run.json")


def _count(folder: Path) -> int:
    """The number of episodes played so far."""
    rows = folder / "episodes.csv"
    return max(0, rows.read_bytes().count(b"\n") - 1) if rows.exists() else 0


def _is_alive(about: _RunFile) -> bool:
    """Whether the process that was started still plays; a process that has ended is reaped."""
    pid = about.pid
    if pid <= 1 or not about.birth:
        return False
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except (ChildProcessError, OverflowError):
        pass  # another process started it
    try:
        return os.getpgid(pid) == pid and _birth(pid) == about.birth
    except (ProcessLookupError, PermissionError, OverflowError):
        return False


def _birth(pid: int) -> str:
    """When a process was started, unique among processes with the same number; "" if unknown."""
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
    return lines[-1][:300] if lines else "it ended without a message"
