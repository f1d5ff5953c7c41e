"""How many weeks, how many answers: reward between chance (0) and the paper's oracle (1).

By weeks: a plan every epoch, from nothing or with a start (26 past weeks in which B arms by lot
were helped, and a first sitting of 200 answers), with the paper's B-1 answers a week, or 30.
By how sure people are: a plan every 5 epochs from nothing, B-1 answers. Temperature 1 is the
paper's oracle, 0.4 about as sure as people in published studies; at 0.1 they are hardly ever wrong.

Against worst first: from nothing, states ordered from worst to best, T = 0.4, and the paired
difference, of rewards and of decisions. Where exactly B are helped, the expected reward is that of
the best policy of the relaxed problem less what each decision loses by the true advantages; so the
second has no luck of the moves in it, but counts a loss in the week of its cause. Columns: CPAP
with a start, states ordered, with the kind of patient among five columns of noise, with the noise
alone, and without columns. Covariates: worlds after Liang et al. (_worlds.py).

Worlds: the paper's, drawn ones and those made of trials (DOPL_TRIALS), from nothing and with a
start, states ordered, T = 0.4. A cell is the share of the best list's advantage by the true
transitions (experiments/advantage.py): a ratio of sums over weeks and seeds, with the jackknife's
error. Where help does nothing there is no such share, so these worlds are left out.
DOPL_WORLDS and DOPL_LEARNERS pick some by their first letters, separated by commas.

Random: 45 people, 3 states, help for 8, and nobody knows what comes next (_random_clinics.py).

All on the same luck. A cell is the mean over seeds and its standard error. DOPL_SEEDS sets how many
(12), DOPL_TABLES which tables (worst_first columns covariates worlds random weeks sure cost).
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core import environments
from dopl_core.experiments import metrics
from dopl_core.experiments.runs import Run
from dopl_core.experiments.simulator import References, play_episode, prepare
from dopl_core.experiments.worlds import rising
from dopl_core.learning import preferences
from dopl_core.learning.bandit import Bandit
from dopl_core.learning.columns import Columns, category
from dopl_core.learning.learner import Learner
from dopl_core.learning.moves import model
from dopl_core.world import SimulatedWorld

sys.path.append(str(Path(__file__).parent))  # `dopl bench` loads this file by its path
from _random_clinics import shares as shares_of_best
from _shares import print_shares
from _worlds import noise
from _worlds import play as covariates_played

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
ALL_TABLES = "worst_first columns covariates worlds random weeks sure cost"
EARLY = ((0, 5), (5, 10), (10, 25), (25, 50))
WITH_START = ((0, 10), (10, 25), (25, 50))
COLUMNS = {"no columns": (), "kind and noise": ("kind", "noise"), "noise only": ("noise",)}


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
    tables = os.environ.get("DOPL_TABLES", ALL_TABLES).split()
    if "worst_first" in tables:
        _print_against_worst_first(seeds)
    if "columns" in tables:
        _print_columns(seeds)
    if "covariates" in tables:
        _print_covariates(seeds)
    if "worlds" in tables:
        print_shares(seeds)
    if "random" in tables:
        _print_random_clinics(seeds)
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
    """Of each episode [4, episodes], as `_played` says."""
    settings = WAYS[row.way] | {"temperature": row.temperature, "confidence": row.confidence}
    run = Run(row.environment, "dopl", seed, row.episodes, row.horizon, **settings)  # type: ignore[arg-type]
    bandit = run.bandit()
    return _played(run, bandit, run.make_learner(bandit))


def _played(run: Run, bandit: Bandit, learner: Learner) -> NDArray[np.float64]:
    """[4, episodes] of reward per epoch: of this learner, the paper's oracle, and chance; and less
    what the learner's first decision of the episode loses by the true advantages.
    """
    truth = metrics.truth(bandit)
    world = SimulatedWorld(bandit, run.seed, temperature=run.temperature)
    prepare(learner, world, run.history_epochs, run.sitting)
    references = References(bandit, truth.oracle, world.states)
    rewards = []
    for _ in range(run.episodes):
        learner.replan()
        gain = truth.oracle.advantage[np.arange(bandit.n_arms), world.states]
        decided = gain[learner.activate(world.states, 0)].sum() - gain.clip(min=0).sum()
        mine = play_episode(learner, world)
        rewards.append((mine, *references.play(world, learner.tie_keys), decided))
    return np.array(rewards).T


def _cell(rewards: NDArray[np.float64], row: Row, start: int, end: int) -> str:
    """Where the learner is in epochs start to end; the scale is the mean over seeds."""
    if end > row.episodes * row.horizon:
        return " " * 13
    return _shown(_scores(rewards, start // row.horizon, end // row.horizon))


def _scores(rewards: NDArray[np.float64], start: int, end: int) -> NDArray[np.float64]:
    """Scores of all seeds, from rewards [seeds, 3 or more, episodes] of learner, oracle, chance."""
    learner, oracle, chance = rewards[:, :3, start:end].mean(axis=2).T
    return np.asarray((learner - chance) / (oracle - chance).mean())


def _decided(rewards: NDArray[np.float64], start: int, end: int) -> NDArray[np.float64]:
    """What decisions lose [seeds], on the scale of scores over all weeks."""
    scale = (rewards[:, 1] - rewards[:, 2]).mean()
    return np.asarray(rewards[:, 3, start:end].mean(axis=1) / scale)


def _shown(scores: NDArray[np.float64]) -> str:
    error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return f"{scores.mean():>7.2f} ±{error:4.2f}"


# --- against worst first, with columns, and in worlds after Liang et al.


def _from_nothing(name: str, learner: str, seed: int) -> NDArray[np.float64]:
    own = {"temperature": 0.4, "ordered": True, "design": "informative"}
    run = Run(name, learner, seed, 50, 1, **own)  # type: ignore[arg-type]
    bandit = rising(environments.load(name))
    return _played(run, bandit, run.make_learner(bandit))


def _print_against_worst_first(seeds: int) -> None:
    print(f"from nothing, states ordered, T = 0.4: {seeds} seeds", flush=True)
    print(f"{'':36}" + "".join(f"{f'{start + 1}-{end}':>13}" for start, end in EARLY))
    for name in ("cpap", "app_marketing", "armman"):
        plays = [(learner, seed) for learner in ("worst_first", "dopl") for seed in range(seeds)]
        played = Parallel(n_jobs=2)(delayed(_from_nothing)(name, *play) for play in plays)
        worst, ours = np.array(played[:seeds]), np.array(played[seeds:])
        scores = [[_scores(one, *window) for window in EARLY] for one in (worst, ours)]
        lines = {"worst first": scores[0], "dopl": scores[1]}
        lines["difference"] = [b - a for a, b in zip(*scores, strict=True)]
        lines["of decisions"] = [_decided(ours, *w) - _decided(worst, *w) for w in EARLY]
        for what, cells in lines.items():
            print(f"{name:17} {what:18}" + "".join(map(_shown, cells)), flush=True)


def _with_columns(which: tuple[str, ...], seed: int) -> NDArray[np.float64]:
    run = Run("cpap", "dopl", seed, 50, 1, temperature=0.4, ordered=True, **START)  # type: ignore[arg-type]
    bandit = run.bandit()
    known = noise(bandit.n_arms, seed) if "noise" in which else ()
    if "kind" in which:
        known = (category("kind", bandit.groups), *known)
    learner = run.make_learner(bandit)
    learner.columns = Columns(known, bandit.n_arms) if known else None
    return _played(run, bandit, learner)


def _print_columns(seeds: int) -> None:
    print(f"CPAP with a start, states ordered, T = 0.4: {seeds} seeds", flush=True)
    print(f"{'':18}" + "".join(f"{f'{start + 1}-{end}':>13}" for start, end in WITH_START))
    without: list[NDArray[np.float64]] = []
    for what, which in COLUMNS.items():
        played = Parallel(n_jobs=2)(delayed(_with_columns)(which, s) for s in range(seeds))
        scores = [_scores(np.array(played), *window) for window in WITH_START]
        without = without or scores
        line = f"{what:18}" + "".join(map(_shown, scores)) + "   less no columns:"
        print(line + "".join(_shown(b - a) for a, b in zip(without, scores, strict=True)))


def _print_covariates(seeds: int) -> None:
    print(f"worlds after Liang et al., weeks 1-50: {seeds} seeds; 1 knows each week's chances")
    for n_arms, budget in ((100, 20), (400, 10)):
        policies = ("dopl", "oracle", "chance", "no columns", "worst first")
        plays = [(policy, seed) for policy in policies for seed in range(seeds)]
        played = Parallel(n_jobs=2)(
            delayed(covariates_played)(n_arms, budget, seed, policy) for policy, seed in plays
        )
        by_policy = dict(zip(policies, np.array(played).reshape(5, seeds, -1), strict=True))
        for policy in ("dopl", "no columns", "worst first"):
            parts = [by_policy[name] for name in (policy, "oracle", "chance")]
            scores = _scores(np.stack(parts, axis=1), 0, 50)
            print(f"N={n_arms} B={budget} {policy:12}{_shown(scores)}", flush=True)


def _print_random_clinics(seeds: int) -> None:
    print(f"everybody moves at random: lists of weeks 2 to 26, {seeds} clinics", flush=True)
    for past in (0, 26):
        each = Parallel(n_jobs=2)(delayed(shares_of_best)(seed, past) for seed in range(seeds))
        quarter, half = (_shown(np.array(part)) for part in zip(*each, strict=True))
        print(f"{past:3} past weeks: over a quarter in the best state{quarter}, over half{half}")


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
    rng, started = np.random.default_rng(0), _clock()
    for _ in range(50):
        model.estimate(learner.visits, None, learner.recent, rng, ordered=learner.ordered)
    between = _clock()
    for _ in range(50):
        preferences.calibrated(learner.counts, bandit.n_states, 0, warm)
    return (between - started) / 50 * 1e3, (_clock() - between) / 50 * 1e3


if __name__ == "__main__":
    main()
