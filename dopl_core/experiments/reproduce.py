"""The paper's figures: their runs and their files."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from dopl_core import environments
from dopl_core.experiments import figures, sweep
from dopl_core.experiments.baselines import Memory
from dopl_core.experiments.runs import Run

# A calibrated plan costs several times the paper's, and its regret is flat long before here.
# So the line of `ours` ends at this episode, or it would take as long as all others together.
OURS = 2000
PAPER = ("oracle", "dopl", "mle_lp", "mle_wibql", "mle_qwic", "random")  # those of its figures


def runs(
    environment: str,
    *,
    scale: float = 1.0,
    seeds: int = 3,
    memory: Memory = "episode",
    ours: bool = False,
) -> list[Run]:
    """Six learners with the paper's K, H, epsilon and tie rule, new states in each episode.

    scale: a share of K;  ours: DOPL with calibrated confidence and the advantage tie rule, and
    the worst states first, too
    """
    if not 0 < scale <= 1:
        raise ValueError(f"scale is {scale}: it must be above 0 and at most 1")
    bandit = environments.load(environment)
    episodes = max(1, round(bandit.episodes * scale))
    paper = sweep.grid(
        [environment],
        PAPER,
        range(seeds),
        episodes=episodes,
        confidence="paper",
        ties="paper",
        memory=memory,
        restart=True,
    )
    if not ours:
        return paper
    dopl = [run for run in paper if run.learner == "dopl"]
    calibrated = [
        replace(run, confidence="calibrated", ties="advantage", episodes=min(episodes, OURS))
        for run in dopl
    ]
    return paper + calibrated + [replace(run, learner="worst_first") for run in dopl]


def reproduce(
    runs: list[Run], out: str | Path, *, jobs: int = 1, dask: str | None = None
) -> pd.DataFrame:
    """Play what is left of the runs; write episodes.csv, reward_regret.png and errors.png."""
    table = sweep.run(runs, out, jobs=jobs, dask=dask)
    draw(table, out, runs[0])
    return table


def draw(table: pd.DataFrame, out: str | Path, run: Run) -> None:
    """Write the two figures of a table of episodes."""
    bandit = run.bandit()
    what = f"{bandit.title}: {run.episodes} episodes of {run.horizon} epochs"
    seeds = table.seed.nunique()
    what += f", {seeds} seed{'s' * (seeds > 1)}"
    duels = "all duels" if run.memory == "all" else "the last episode's duels"
    path = Path(out)
    figures.reward_and_regret(table, path / "reward_regret.png", f"{what}, MLE of {duels}")
    figures.errors(table, path / "errors.png", f"{what}, errors of DOPL")
