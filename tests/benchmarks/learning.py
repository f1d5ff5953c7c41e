"""How many weeks, how many answers: reward between chance (0) and the paper's oracle (1).

By weeks: a plan every epoch, from nothing or with a start (26 past weeks in which B arms by lot
were helped, and a first sitting of 200 answers), with the paper's B-1 answers a week, or 30.
By how sure people are: a plan every 5 epochs from nothing, B-1 answers. Temperature 1 is the
paper's oracle, 0.4 about as sure as people in published studies; at 0.1 they are hardly ever wrong.

All on the same luck. A cell is the mean over seeds and its standard error. DOPL_SEEDS sets how many
(12), DOPL_TABLES which tables (weeks sure cost).
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core.experiments import metrics
from dopl_core.experiments.runs import Run
from dopl_core.experiments.simulator import References, play_episode, prepare
from dopl_core.learning import dynamics, preferences
from dopl_core.world import SimulatedWorld

OWN = str(Path(__file__).parents[1] / "data" / "everyone_differs.toml")
ENVIRONMENTS = ("app_marketing", "cpap", "armman", OWN)
WEEKS = ((0, 5), (5, 10), (0, 10), (10, 25), (25, 50), (50, 100))  # epochs from, and to
LATER = ((10, 25), (100, 200), (400, 800))
START = {"history_epochs": 26, "sitting": 200, "answers": 30}
WAYS = {
    "from nothing": {"design": "informative"},
    "from nothing, star": {"design": "star"},
    "30 answers": {"answers": 30},
    "with a start": START,
    "start, ordered": START | {"ordered": True},
}
RISING = ("app_marketing", "cpap")  # environments whose states are listed from worst to best


@dataclass(frozen=True)
class Row:
    """A line of a table, played with every seed."""

    environment: str
    way: str
    temperature: float
    horizon: int
    episodes: int
    confidence: str = "calibrated"


def main() -> None:
    """Print the tables, then what a calibrated replan costs."""
    seeds = int(os.environ.get("DOPL_SEEDS", "12"))
    tables = os.environ.get("DOPL_TABLES", "weeks sure cost").split()
    if "weeks" in tables:
        _print(_by_weeks(), WEEKS, seeds, "by weeks, a plan every epoch")
    if "sure" in tables:
        _print(_by_temperature(), LATER, seeds, "by how sure people are, a plan every 5 epochs")
    if "cost" in tables:
        _costs()


def _by_weeks() -> list[Row]:
    rows = []
    for temperature in (0.4, 1.0):
        for name in ENVIRONMENTS:
            for way in WAYS:
                if way != "start, ordered" or name in RISING:
                    weeks = 200 if name == OWN and way == "30 answers" else 100
                    rows.append(Row(name, way, temperature, 1, weeks))
    return rows


def _by_temperature() -> list[Row]:
    rows = [
        Row(name, "from nothing", temperature, 5, 160)
        for name in ENVIRONMENTS[:3]
        for temperature in (1.0, 0.3, 0.1)
    ]
    return [*rows, *(Row(name, "from nothing", 1.0, 5, 160, "paper") for name in ENVIRONMENTS[:3])]


def _print(rows: list[Row], windows: tuple[tuple[int, int], ...], seeds: int, what: str) -> None:
    plays = [(row, seed) for row in rows for seed in range(seeds)]
    played = Parallel(n_jobs=2)(delayed(_rewards)(row, seed) for row, seed in plays)
    if any(row.episodes * row.horizon > windows[-1][1] for row in rows):
        windows = (*windows, (100, 200))
    print(f"learning {what}: {seeds} seeds; 0 is chance, 1 the paper's oracle", flush=True)
    heads = "".join(f"{f'{start + 1}-{end}':>13}" for start, end in windows)
    print(f"{'environment':17} {'T':>4} {'':20}{heads}")
    for row in rows:
        rewards = np.array([r for (one, _), r in zip(plays, played, strict=True) if one == row])
        cells = "".join(_cell(rewards, row, *window) for window in windows)
        way = row.way if row.confidence == "calibrated" else "the paper's confidence"[:20]
        name = Path(row.environment).stem
        print(f"{name:17} {row.temperature:4g} {way:20}{cells}", flush=True)


def _rewards(row: Row, seed: int) -> NDArray[np.float64]:
    """Reward per epoch [3, episodes] of the learner, the paper's oracle, and chance."""
    settings = WAYS[row.way] | {"temperature": row.temperature, "confidence": row.confidence}
    run = Run(row.environment, "dopl", seed, row.episodes, row.horizon, **settings)  # type: ignore[arg-type]
    truth = metrics.truth(run.bandit())
    learner = run.make_learner(truth.bandit)
    world = SimulatedWorld(truth.bandit, seed, temperature=row.temperature)
    prepare(learner, world, run.history_epochs, run.sitting)
    references = References(truth.bandit, truth.oracle, world.states)
    rewards = []
    for _ in range(row.episodes):
        learner.replan()
        rewards.append((play_episode(learner, world), *references.play(world, learner.tie_keys)))
    return np.array(rewards).T


def _cell(rewards: NDArray[np.float64], row: Row, start: int, end: int) -> str:
    """Where the learner is in epochs start to end; the scale is the mean over seeds."""
    if end > row.episodes * row.horizon:
        return " " * 13
    played = rewards[:, :, start // row.horizon : end // row.horizon].mean(axis=2)
    learner, oracle, chance = played.T
    scores = (learner - chance) / (oracle - chance).mean()
    error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return f"{scores.mean():>7.2f} ±{error:4.2f}"


def _clock() -> float:
    """Seconds of processor time so far, of solvers that run as processes of their own too."""
    return sum(os.times()[:4])


def _costs() -> None:
    print("a calibrated replan, N=20, S=4, milliseconds of processor time:")
    for engine, bar in (("lagrangian", 30), ("cbc", 150)):
        print(f"  {engine:10} {_replan(engine):6.1f} (bar: {bar})")
    moves, strengths = _estimates()
    print(f"  of which dynamics {moves:.1f}, preferences {strengths:.1f}")


def _replan(engine: str) -> float:
    """Milliseconds of a replan after every epoch."""
    run = Run(OWN, "dopl", 0, 1, 1, engine=engine)  # type: ignore[arg-type]
    bandit = run.bandit()
    learner, world = run.make_learner(bandit), SimulatedWorld(bandit, 0)
    spent = 0.0
    for _ in range(60):
        started = _clock()
        learner.replan()
        spent += _clock() - started
        play_episode(learner, world)
    return spent / 60 * 1e3


def _estimates() -> tuple[float, float]:
    """Milliseconds of the estimates of moves and of strengths."""
    run = Run(OWN, "dopl", 0, 1, 60)
    bandit = run.bandit()
    learner, world = run.make_learner(bandit), SimulatedWorld(bandit, 0)
    learner.replan()
    play_episode(learner, world)
    warm = preferences.calibrated(learner.counts, bandit.n_states, 0).warm
    started = _clock()
    for _ in range(50):
        dynamics.calibrated(learner.visits)
    between = _clock()
    for _ in range(50):
        preferences.calibrated(learner.counts, bandit.n_states, 0, warm)
    return (between - started) / 50 * 1e3, (_clock() - between) / 50 * 1e3


if __name__ == "__main__":
    main()
