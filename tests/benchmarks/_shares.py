"""Lists in many worlds: the share of the best list's advantage, beside simple rivals."""

import os

from joblib import Parallel, delayed

from dopl_core.experiments import worlds
from dopl_core.experiments.advantage import Weeks, difference, play_shares, share
from dopl_core.experiments.runs import Run
from dopl_core.experiments.worlds.trials import FOLDER, trial_names
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.learner import Learner

PAPERS = ("cpap", "app_marketing", "armman")
RIVALS = ("worst_first", "middle_first", "pooled")
WINDOWS = ((1, 5), (6, 10), (11, 20), (21, 30))
WAYS = {"from nothing": False, "with a start": True}


def print_shares(seeds: int) -> None:
    """Print a row for each world, start and window of weeks: all learners, and the difference."""
    learners = _some("DOPL_LEARNERS", ["dopl", *RIVALS])
    print(f"worlds, states ordered, T = 0.4: {seeds} seeds; 1 is the best list, 0 a random one")
    heads = "".join(f"{learner:>14}" for learner in learners)
    heads += "   dopl less the best rival" if "dopl" in learners else ""
    print(f"{'world':20} {'start':13}{'weeks':>6}{heads}", flush=True)
    for name in _some("DOPL_WORLDS", _worlds()):
        for way in WAYS:
            plays = [(learner, seed) for learner in learners for seed in range(seeds)]
            each = Parallel(n_jobs=2)(delayed(_play)(name, way, *play) for play in plays)
            parts = [each[i : i + seeds] for i in range(0, len(each), seeds)]
            _print_rows(name, way, dict(zip(learners, parts, strict=True)))


def _worlds() -> list[str]:
    """The paper's, all drawn worlds in which help does something, and trials where there are any.

    Where help does nothing, the best list has no advantage.
    """
    drawn = [name for name in worlds.WORLDS if not name.startswith("idle") and name != "chain_none"]
    return [*PAPERS, *drawn, *(trial_names() if os.environ.get(FOLDER) else [])]


def _some(variable: str, names: list[str]) -> list[str]:
    starts = tuple(os.environ.get(variable, "").split(","))
    return [name for name in names if name.startswith(starts)]


def _play(name: str, way: str, learner: str, seed: int) -> Weeks:
    start, last = WAYS[way], WINDOWS[-1][1]

    def make(bandit: Bandit, seed: int) -> Learner:
        design = "star" if start else "informative"
        run = Run(name, learner, seed, last, 1, ordered=True, design=design)  # type: ignore[arg-type]
        return run.make_learner(bandit)

    return play_shares(name, make, seed, last, start)


def _print_rows(name: str, way: str, played: dict[str, list[Weeks]]) -> None:
    rivals = [learner for learner in played if learner != "dopl"]
    for window in WINDOWS:
        found = {learner: share(plays, *window) for learner, plays in played.items()}
        line = "".join(_cell(*cell) for cell in found.values())
        if "dopl" in played and rivals:
            best = max(rivals, key=lambda rival: found[rival][0])
            line += _cell(*difference(played["dopl"], played[best], *window)) + f"  {best}"
        weeks = f"{window[0]}-{window[1]}"
        print(f"{name:20} {way:13}{weeks:>6}{line}", flush=True)


def _cell(mean: float, error: float) -> str:
    return f"{mean:>8.2f} ±{error:4.2f}"
