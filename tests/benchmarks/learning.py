"""How soon answers pay: reward of every duel design, between chance (0) and the paper's oracle (1).

H=5, states carried over, B-1 answers an epoch, all on the same luck. DOPL_SEEDS sets how many seeds
(6), DOPL_DESIGNS which designs. A cell is the mean over seeds and its standard error.
"""

import os
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core.experiments import metrics
from dopl_core.experiments.runs import Run
from dopl_core.experiments.simulator import References, play_episode
from dopl_core.learning import dynamics, preferences
from dopl_core.world import SimulatedWorld

HORIZON, EPISODES = 5, 160
OWN = str(Path(__file__).parents[1] / "data" / "everyone_differs.toml")
ENVIRONMENTS = ("app_marketing", "cpap", "armman", OWN)
WINDOWS = ((50, 100), (100, 200), (200, 400), (400, 800))  # epochs
REACHED, TRAILING = 0.9, 50  # answers until the last 50 epochs' mean over seeds was 0.9


def main() -> None:
    """Print the table, then what a calibrated replan costs."""
    seeds = int(os.environ.get("DOPL_SEEDS", "6"))
    designs = os.environ.get("DOPL_DESIGNS", "star tree informative").split()
    ways = [("calibrated", design) for design in designs] + [("paper", "star")]
    plays = [(name, *way, seed) for name in ENVIRONMENTS for way in ways for seed in range(seeds)]
    played = Parallel(n_jobs=2)(delayed(_rewards)(*play) for play in plays)
    print(f"learning: {seeds} seeds, H={HORIZON}; 0 is chance, 1 the paper's oracle")
    heads = "".join(f"{f'{start}-{end}':>14}" for start, end in WINDOWS)
    print(f"{'environment':17} {'confidence':11}{'duels':12}{heads}   answers to {REACHED}")
    for name in ENVIRONMENTS:
        for way in ways:
            rewards = np.array(
                [r for play, r in zip(plays, played, strict=True) if play[:3] == (name, *way)]
            )
            cells = "".join(_cell(rewards, *window) for window in WINDOWS)
            answers = _answers(rewards, Run(name, "dopl", 0, 1, HORIZON).bandit().budget)
            print(f"{Path(name).stem:17} {way[0]:11}{way[1]:12}{cells}   {answers}")
    print("a calibrated replan, N=20, S=4, milliseconds of processor time:")
    for engine, bar in (("lagrangian", 30), ("cbc", 150)):
        print(f"  {engine:10} {_replan(engine):6.1f} (bar: {bar})")
    moves, strengths = _estimates()
    print(f"  of which dynamics {moves:.1f}, preferences {strengths:.1f}")


def _rewards(name: str, confidence: str, design: str, seed: int) -> NDArray[np.float64]:
    """Reward per epoch [3, episodes] of the learner, the paper's oracle, and chance."""
    run = Run(name, "dopl", seed, EPISODES, HORIZON, confidence=confidence, design=design)  # type: ignore[arg-type]
    truth = metrics.truth(run.bandit())
    learner, world = run.make_learner(truth.bandit), SimulatedWorld(truth.bandit, seed)
    references = References(truth.bandit, truth.oracle, world.states)
    rewards = []
    for _ in range(EPISODES):
        learner.replan()
        rewards.append((play_episode(learner, world), *references.play(world, learner.tie_keys)))
    return np.array(rewards).T


def _normalised(rewards: NDArray[np.float64], start: int, end: int) -> NDArray[np.float64]:
    """Where each seed is [seeds] in epochs start to end; the scale is the mean over seeds."""
    learner, oracle, chance = rewards[:, :, start // HORIZON : end // HORIZON].mean(axis=2).T
    return np.asarray((learner - chance) / (oracle - chance).mean())


def _cell(rewards: NDArray[np.float64], start: int, end: int) -> str:
    scores = _normalised(rewards, start, end)
    error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return f"{scores.mean():>8.2f} ±{error:4.2f}"


def _answers(rewards: NDArray[np.float64], budget: int) -> str:
    for end in range(TRAILING, EPISODES * HORIZON + 1, HORIZON):
        if _normalised(rewards, end - TRAILING, end).mean() >= REACHED:
            return str(end * (budget - 1))
    return f"over {EPISODES * HORIZON * (budget - 1)}"


def _clock() -> float:
    """Seconds of processor time so far, of solvers that run as processes of their own too."""
    return sum(os.times()[:4])


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
    warm = preferences.calibrated(learner.wins, bandit.n_states, 0).warm
    started = _clock()
    for _ in range(50):
        dynamics.calibrated(learner.visits)
    between = _clock()
    for _ in range(50):
        preferences.calibrated(learner.wins, bandit.n_states, 0, warm)
    return (between - started) / 50 * 1e3, (_clock() - between) / 50 * 1e3


if __name__ == "__main__":
    main()
