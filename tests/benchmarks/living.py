"""What ordinary life costs: one clinic with and without unknown states, missed help and change.

Fifty weeks with a start (as in learning.py). Alive: 5 % of the states are not reported, 10 % of the
list is not reached, and a quarter of the arms is replaced by newcomers whose moves are drawn as
those of the arm they replace. Reward between chance (0) and the paper's oracle (1), which knows
everything. Alive, help fails to reach the same arms in the same weeks for every learner. The table
also compares with an oracle and chance whose help always reaches people.
DOPL_SEEDS sets how many seeds (12).
"""

import os

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dopl_core.experiments import metrics
from dopl_core.experiments.runs import Run
from dopl_core.experiments.simulator import References, prepare
from dopl_core.learning.bandit import UNKNOWN, IntArray, actions
from dopl_core.learning.dopl import Dopl
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.replay.known_states import likely_states
from dopl_core.world import SimulatedWorld

WEEKS, TEMPERATURE = 50, 0.4
LOST, MISSED, REPLACED = 0.05, 0.1, 0.25
WINDOWS = ((0, 10), (10, 25), (25, 50), (0, 50))


def main() -> None:
    """Print both, and their ratio."""
    seeds = int(os.environ.get("DOPL_SEEDS", "12"))
    print(f"living: {seeds} seeds, T={TEMPERATURE:g}, with a start; 0 is chance, 1 the oracle")
    heads = "".join(f"{f'{start + 1}-{end}':>10}" for start, end in WINDOWS)
    print(f"{'environment':12}{'':10}{heads}")
    for name in ("cpap", "armman"):
        plays = [(name, seed, alive) for alive in (False, True) for seed in range(seeds)]
        played = Parallel(n_jobs=2)(delayed(_rewards)(*play) for play in plays)
        calm, alive = np.array(played[:seeds]), np.array(played[seeds:])
        ideal = alive[:, [0, 3, 4]]
        for way, rewards in (("calm", calm), ("alive", alive), ("to ideal", ideal)):
            cells = "".join(f"{_score(rewards, *window):>10.2f}" for window in WINDOWS)
            print(f"{name:12}{way:10}{cells}", flush=True)
        ratios = [_score(alive, *window) / _score(calm, *window) for window in WINDOWS]
        print(f"{name:12}{'ratio':10}{''.join(f'{r:>10.2f}' for r in ratios)}  (bar: 0.90)")


def _score(rewards: NDArray[np.float64], start: int, end: int) -> float:
    learner, oracle, chance = rewards[:, :3, start:end].mean(axis=(0, 2))
    return float((learner - chance) / (oracle - chance))


def _rewards(name: str, seed: int, alive: bool) -> NDArray[np.float64]:
    """Reward per week [5, weeks]: learner, oracle and chance, and the last two if all reach."""
    start = {"history_epochs": 26, "sitting": 200, "answers": 30}
    run = Run(name, "dopl", seed, WEEKS, 1, temperature=TEMPERATURE, **start)  # type: ignore[arg-type]
    truth = metrics.truth(run.bandit())
    learner = run.make_learner(truth.bandit)
    assert isinstance(learner, Dopl)
    world = SimulatedWorld(truth.bandit, seed, temperature=TEMPERATURE)
    prepare(learner, world, run.history_epochs, run.sitting)
    references, ideal = (References(truth.bandit, truth.oracle, world.states) for _ in range(2))
    clinic = _Clinic(learner, world, np.random.default_rng([seed, 77]), alive)
    rewards = []
    for week in range(WEEKS):
        earned = clinic.week()
        keys, reached = learner.tie_keys[:, : world.bandit.n_arms], clinic.reached[[week]]
        missed, always = references.play(world, keys, reached), ideal.play(world, keys)
        rewards.append((earned, *missed, *always))
    return np.array(rewards).T


class _Clinic:
    """A world whose arms go by the learner's numbers [n]: the one that has replaced them last."""

    def __init__(
        self, learner: Dopl, world: SimulatedWorld, rng: np.random.Generator, alive: bool
    ) -> None:
        self.learner, self.world, self.rng, self.alive = learner, world, rng, alive
        self.numbers = np.arange(world.bandit.n_arms)
        self.moves: list[Epoch] = []
        self.seen = self._seen(world.states)
        self.reached = rng.random((WEEKS, world.bandit.n_arms)) >= (MISSED if alive else 0.0)
        replaced = rng.permutation(world.bandit.n_arms)[: int(REPLACED * world.bandit.n_arms)]
        when = np.sort(rng.choice(np.arange(2, WEEKS - 2), len(replaced), replace=False))
        self.replace = dict(zip(when.tolist(), replaced.tolist(), strict=True)) if alive else {}

    def week(self) -> float:
        """One list, its duels and its report; what the week pays."""
        if (arm := self.replace.pop(len(self.moves), None)) is not None:
            self._replace(arm)
        learner, world = self.learner, self.world
        learner.replan()
        world.begin(learner.episode, 1, learner.answers)
        assert learner.dynamics is not None
        chances = likely_states(self.seen, self.moves, learner.present, learner.dynamics.mean)
        listed = learner.activate(self.seen, 0, chances)
        duels = learner.duels(self.seen, listed, 0)
        places = {number: arm for arm, number in enumerate(self.numbers.tolist())}
        asked = duels.copy()
        asked[:, ::2] = np.vectorize(places.get, otypes=[np.int64])(duels[:, ::2])
        learner.count_duels(duels, world.answer(asked))
        inside = np.array([places[number] for number in listed.tolist()], dtype=np.int64)
        reached = self.reached[len(self.moves), inside]
        helped, arms = listed[reached], inside[reached]
        earned = world.reward(arms)
        after = self._seen(world.step(arms))
        learner.count_moves(self.seen, actions(helped, learner.n_arms), after)
        week = len(self.moves)
        self.moves.append(Epoch(week + 1, 0, self.seen, listed, after, "owner", helped=helped))
        self.seen = after
        return earned

    def _seen(self, states: IntArray) -> IntArray:
        """What is reported of the world's states, by the learner's numbers."""
        reported = np.full(self.learner.n_arms, UNKNOWN)
        reported[self.numbers] = states
        if self.alive:
            reported[self.rng.random(len(reported)) < LOST] = UNKNOWN
        return reported

    def _replace(self, arm: int) -> None:
        """An arm leaves; a newcomer of its kind comes, in any state."""
        present = np.append(self.learner.present, True)
        present[self.numbers[arm]] = False
        self.learner.adapt(present, self.learner.budget)
        self.numbers = self.numbers.copy()
        self.numbers[arm] = len(present) - 1
        self.world.states = self.world.states.copy()
        self.world.states[arm] = self.rng.integers(self.world.bandit.n_states)
        self.seen = np.append(self.seen, self.world.states[arm])
        self.seen[~present] = UNKNOWN


if __name__ == "__main__":
    main()
