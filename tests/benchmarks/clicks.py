"""What a click is worth: reward between chance (0) and the paper's oracle (1), with a start.

A learner with 26 past weeks and ordered states, T = 0.4, a plan every week, knows the values of
arm-states by the order of the states alone (they rise evenly), by B-1 answers a week, by a first
sitting of 200 answers and 30 a week, or truly. Worlds: CPAP, in which people of one state are worth
the same; CPAP and ARMMAN (its states turned, worst first) with everybody's values times exp(z), z
standard normal, drawn anew for each seed.

A cell is the mean over seeds and its standard error. The lines below compare with the order alone
on the same seeds. DOPL_SEEDS sets the number of seeds (12), DOPL_JOBS the number of processes (1),
DOPL_WORLDS and DOPL_WAYS pick some by their first letters, separated by commas.
"""

import os
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from dopl_core import environments
from dopl_core.experiments import metrics
from dopl_core.experiments.simulator import References, play_episode, prepare
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.preferences import Preferences
from dopl_core.world import SimulatedWorld

TEMPERATURE, HISTORY, WEEKS = 0.4, 26, ((0, 10), (10, 25), (25, 50))
WORLDS = {
    "CPAP": ("cpap", False),
    "CPAP, people differ": ("cpap", True),
    "ARMMAN, people differ": ("armman", True),
}
WAYS = {  # answers of the first sitting and of a week; None: values are known
    "order alone": None,
    "B-1 a week": (0, 0),
    "200 and 30 a week": (200, 30),
    "true values": None,
}


def main() -> None:
    """Print the table."""
    seeds, jobs = (int(os.environ.get(f"DOPL_{x}", y)) for x, y in (("SEEDS", 12), ("JOBS", 1)))
    worlds, ways = _some("DOPL_WORLDS", list(WORLDS)), _some("DOPL_WAYS", list(WAYS))
    print(
        f"clicks: {seeds} seeds, T={TEMPERATURE:g}; 0 is chance, 1 the paper's oracle", flush=True
    )
    print(f"{'':24}{'':20}" + "".join(f"{f'{a + 1}-{b}':>13}" for a, b in WEEKS))
    for world in worlds:
        plays = [(way, seed) for way in ways for seed in range(seeds)]
        played = Parallel(n_jobs=jobs)(delayed(_play)(world, *play) for play in plays)
        scores = dict(zip(ways, _scores(np.array(played), len(ways)), strict=True))
        for way, score in scores.items():
            _line(world, way, score)
        for way in ways:
            if WAYS[way] is not None and "order alone" in scores:
                _line(world, f"  {way} - order", scores[way] - scores["order alone"])


def _some(variable: str, names: list[str]) -> list[str]:
    starts = tuple(os.environ.get(variable, "").split(","))
    return [name for name in names if name.startswith(starts)]


def _line(world: str, way: str, scores: FloatArray) -> None:
    """scores: [seed, period]."""
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else scores[0] * 0
    cells = [f"{m:>7.2f} ±{e:4.2f}" for m, e in zip(scores.mean(axis=0), error, strict=True)]
    print(f"{world:24}{way:20}" + "".join(cells), flush=True)


def _scores(rewards: FloatArray, ways: int) -> FloatArray:
    """Scores [way, seed, period] of rewards [way * seed, 3, week]; one scale for all."""
    by_period = np.stack([rewards[..., a:b].mean(axis=-1) for a, b in WEEKS], axis=-1)
    learner, oracle, chance = by_period.reshape(ways, -1, 3, len(WEEKS)).transpose(2, 0, 1, 3)
    return np.asarray((learner - chance) / (oracle - chance).mean(axis=(0, 1)))


class Knowing(Dopl):
    """A learner that knows the values of arm-states [N, S], and learns how arms move."""

    values: FloatArray

    def _estimate_preferences(self) -> Preferences:
        return Preferences(self.values, np.zeros_like(self.values), self.values, None)


def bandit_of(world: str, seed: int) -> tuple[Bandit, float]:
    """The bandit, worst state first, and the temperature that its rewards in [0, 1] need."""
    name, differ = WORLDS[world]
    bandit = environments.load(name)
    if bandit.rewards[0, 0] > bandit.rewards[0, -1]:
        turned = bandit.transitions[:, ::-1, :, ::-1]
        bandit = replace(bandit, rewards=bandit.rewards[:, ::-1], transitions=turned)
    if not differ:
        return bandit, TEMPERATURE
    values = bandit.rewards * np.exp(np.random.default_rng(seed).normal(size=(bandit.n_arms, 1)))
    return replace(bandit, rewards=values / values.max()), TEMPERATURE / values.max()


def _play(world: str, way: str, seed: int) -> FloatArray:
    """Reward per week [3, week] of the learner, the paper's oracle, and chance."""
    bandit, temperature = bandit_of(world, seed)
    N, S = bandit.n_arms, bandit.n_states
    answers = WAYS[way]
    sitting, weekly = answers or (0, 0)
    kind = Dopl if answers is not None else Knowing
    settings = {"horizon": 1, "seed": seed, "ordered": True, "pays": bandit.pays}
    learner = kind(N, S, bandit.budget, answers=weekly, design="informative", **settings)
    if isinstance(learner, Knowing):
        even = np.tile(np.arange(float(S)), (N, 1))
        learner.values = even if way == "order alone" else bandit.rewards
    simulated, truth = SimulatedWorld(bandit, seed, temperature=temperature), metrics.truth(bandit)
    prepare(learner, simulated, HISTORY, sitting)
    references = References(bandit, truth.oracle, simulated.states)
    rewards = []
    for _ in range(WEEKS[-1][1]):
        learner.replan()
        mine = play_episode(learner, simulated)
        rewards.append((mine, *references.play(simulated, learner.tie_keys)))
    return np.array(rewards).T


if __name__ == "__main__":
    main()
