"""A learner plays a simulated world: Algorithm 1, and the references it is compared with."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from dopl_core.experiments.episodes import can_follow, fits, follow, play_fixed
from dopl_core.learning.bandit import Bandit, FloatArray, IntArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import Plan
from dopl_core.learning.planning.ranking import rank
from dopl_core.world import SimulatedWorld


def prepare(learner: Learner, world: SimulatedWorld, history_epochs: int, sitting: int) -> None:
    """Give a learner what a study may begin with: past records, and answers of a first sitting."""
    for states, helped, next_states in world.past(history_epochs) if history_epochs else ():
        learner.count_moves(states, helped, next_states)
    if sitting:
        duels = learner.first_round(world.reported, sitting)
        learner.count_duels(duels, world.answer_first_round(duels))


def play(learner: Learner, world: SimulatedWorld, episodes: int) -> Iterator[tuple[float, float]]:
    """Play `episodes` episodes; yield the reward per epoch and the seconds of each."""
    for _ in range(episodes):
        started = perf_counter()
        learner.replan()
        yield play_episode(learner, world), perf_counter() - started


def play_episode(learner: Learner, world: SimulatedWorld) -> float:
    """Play the episode that the learner has just planned, and return its reward per epoch."""
    world.begin(learner.episode, learner.horizon, learner.answers)
    if can_follow(learner, world) and (reward := play_fixed(learner, world)) is not None:
        return reward
    total = 0.0
    asked = []
    for epoch in range(learner.horizon):
        states = world.reported
        arms = learner.activate(states, epoch)
        total += world.reward(arms)
        asked.append(learner.duels(states, arms, epoch))
        learner.count_moves(*world.report(arms))
    # Within an episode nothing depends on its answers, so all are given at the end.
    duels = np.array(asked)
    learner.count_duels(duels, world.answer(duels).ravel())
    return total / learner.horizon


class References:
    """The paper's oracle and random help, on the random numbers that a learner met (errata 17).

    The oracle is the LP index policy with the true model and the paper's tie rule: ties between
    indices are broken at random, without the advantage. Both policies are fixed, so they need no
    duels and no counts, and are played together. `states` [2, N] are their present states.
    bandit: of the world; where it remembers help, the oracle is told the states without it
    """

    def __init__(self, bandit: Bandit, oracle: Plan, states: IntArray) -> None:
        N, S = bandit.n_arms, bandit.n_states
        self.states = np.broadcast_to(states, (2, N))
        self._bandit = bandit
        told = np.tile(rank(oracle.index), (1, S // oracle.index.shape[1]))
        self._priority = np.concatenate([told.ravel(), np.zeros(N * S)])
        self._rewards = bandit.rewards.ravel()
        self._codes = np.arange(N) * S
        self._policies = np.arange(2)[:, None] * (N * S)

    def play(
        self, world: SimulatedWorld, tie_keys: FloatArray, reached: NDArray[np.bool_] | None = None
    ) -> tuple[float, float]:
        """The rewards per epoch of oracle and random help in the episode that `world` has played.

        reached: [H, N] whether help would have reached each arm; None if it reaches all
        """
        if world.restart:
            self.states = np.broadcast_to(world.start, self.states.shape)
        codes, acts = self._play(world, tie_keys, reached)
        pay = self._rewards.take(codes)
        if self._bandit.pays == "active":
            pay = pay * acts
        # Summed in the same order as in `play`, so that the oracle's own regret is exactly 0.
        oracle, chance = pay.sum(axis=2).cumsum(axis=0)[-1] / len(tie_keys)
        return float(oracle), float(chance)

    def _play(
        self, world: SimulatedWorld, tie_keys: FloatArray, reached: NDArray[np.bool_] | None
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """The codes and actions [H, 2, N] of both policies."""
        (H, N), S = tie_keys.shape, self._bandit.n_states
        if reached is None and fits(world):
            scores = self._priority.reshape(2, N, S) + tie_keys[:, None, :, None]
            episode = follow(world, scores.reshape(H, 2, N * S), self.states, self._bandit.budget)
            if episode is not None:
                self.states = episode.end
                return self._codes + episode.states, episode.helped
        cut = N - self._bandit.budget
        codes, active = [], []
        for epoch, (moves, keys) in enumerate(zip(world.moves, tie_keys, strict=True)):
            code = self._codes + self.states
            score = self._priority.take(code + self._policies) + keys
            acts = score >= np.partition(score, cut, axis=1)[:, cut, None]
            if reached is not None:
                acts &= reached[epoch]
            each = zip(self.states, acts.astype(np.int64), strict=True)
            thresholds = np.array([world.thresholds(*own, epoch) for own in each])
            self.states = (moves >= thresholds).sum(axis=2)
            codes.append(code)
            active.append(acts)
        return np.array(codes), np.array(active)
