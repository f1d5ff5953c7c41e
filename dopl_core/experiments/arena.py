"""An arena: chosen learners in many environments, with many seeds and several starts.

START/              a sweep for each start (results.py), which continues where it stopped
arena.csv           all rows of them, with the start in the first column
table.csv           mean reward per epoch of each learner, with standard errors over seeds
arena.png           the same as a figure, less the reward of random help
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dopl_core import environments
from dopl_core.experiments import figures, sweep
from dopl_core.experiments.runs import Run
from dopl_core.experiments.worlds import WORLDS, is_drawn

# What a learner is given before its first plan.
STARTS: dict[str, dict[str, int]] = {
    "nothing": {},
    "records": {"history_epochs": 26},
    "records_and_answers": {"history_epochs": 26, "sitting": 200},
}
_WHERE = ["environment", "start"]
_WHO = ["learner", "confidence"]


def everywhere() -> list[str]:
    """The names of all environments and drawn worlds."""
    return [*environments.names(), *WORLDS]


def play(
    learners: Sequence[str],
    names: Sequence[str],
    starts: Sequence[str],
    out: str | Path,
    *,
    seeds: int,
    jobs: int = 1,
    dask: str | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Play what is left of an arena into the folder `out`, and write its files: its table.

    settings: episodes, horizon, confidence and others of Run. A drawn world is another one for each
    seed, and the same one for all learners.
    """
    for start in starts:
        if start not in STARTS:
            raise ValueError(f'start "{start}" is not one of {", ".join(STARTS)}')
    parts = []
    for start in starts:
        runs = sweep.grid(names, learners, range(seeds), **(settings | STARTS[start]))
        rows = sweep.run([_own_world(run) for run in runs], Path(out) / start, jobs=jobs, dask=dask)
        rows.insert(0, "start", start)
        parts.append(rows)
    played = pd.concat(parts, ignore_index=True)
    played.to_csv(Path(out) / "arena.csv", index=False)
    found = table(played)
    found.to_csv(Path(out) / "table.csv", index=False)
    draw(played, Path(out) / "arena.png")
    return found


def _own_world(run: Run) -> Run:
    return replace(run, environment_seed=run.seed) if is_drawn(run.environment) else run


def table(played: pd.DataFrame) -> pd.DataFrame:
    """One row for each environment, start and learner.

    reward, reward_se: mean per epoch, and its standard error over seeds
    gain, gain_se: the same less the reward of random help with the same random numbers
    difference, difference_se: less the reward of the first learner, paired by seed
    seconds: mean time of an episode
    """
    played = played.assign(gain=played.reward - played.random_reward)
    keys = [*_WHERE, *_WHO]
    by_seed = played.groupby([*keys, "seed"], sort=False)[["reward", "gain", "seconds"]].mean()
    first = tuple(played.iloc[0][_WHO])
    rival = by_seed.reward.unstack([*_WHO])[first]  # by environment, start and seed
    rivals = by_seed.reset_index().set_index([*_WHERE, "seed"]).index.map(rival)
    by_seed["difference"] = by_seed.reward - np.asarray(rivals, dtype=float)
    of_learner = by_seed.groupby(keys, sort=False)
    mean, error = of_learner.mean(), of_learner.sem()
    found = mean[["reward"]].copy()
    for name in ("reward", "gain", "difference"):
        found[name], found[f"{name}_se"] = mean[name], error[name]
    return found.assign(seconds=mean.seconds).reset_index()


def draw(played: pd.DataFrame, path: Path) -> None:
    """A panel for each environment: gains over random help by start, and standard errors."""
    found, lines = table(played), figures.lines(played)
    names = list(dict.fromkeys(found.environment))
    starts = list(dict.fromkeys(found.start))
    across = min(3, len(names))
    down = -(-len(names) // across)
    figure = Figure(figsize=(4 * across, 3 * down + 0.8), layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    for panel, name in zip(panels, names, strict=False):
        for place, (who, (label, colour)) in enumerate(lines.items()):
            at = (found.environment == name) & (found.learner == who[0])
            own = found[at & (found.confidence == who[1])].set_index("start").reindex(starts)
            x = np.arange(len(starts)) + 0.12 * (place - (len(lines) - 1) / 2)
            marks: dict[str, Any] = {"fmt": "o", "color": colour, "capsize": 2}
            panel.errorbar(x, own.gain, own.gain_se.fillna(0), label=label, **marks)
        panel.axhline(0, color="#999999", linewidth=0.8)
        labels = [start.replace("_", " ") for start in starts]
        panel.set_xticks(range(len(starts)), labels, fontsize=8)
        panel.set(title=name, xlim=(-0.6, len(starts) - 0.4))
        panel.set_ylabel("gain per epoch", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figures.save(figure, path, f"Gain over random help, {played.seed.nunique()} seeds, 1 s.e.")
