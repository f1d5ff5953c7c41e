"""A simulated world: arms that move as a known bandit says, and an oracle that answers duels."""

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import Bandit, FloatArray, IntArray, actions
from dopl_core.learning.streams import EDITION, Stream, generator


class SimulatedWorld:
    """States of all N arms under a bandit; what is random in episode k depends on (seed, k) only.

    So learners that are compared meet the same luck: in epoch h arm n draws the same uniform
    number whatever was done to it.

    states: [N] now;  start: [N] when the episode began;  moves: [H, N, 1] its uniform numbers
    """

    def __init__(
        self,
        bandit: Bandit,
        seed: int,
        *,
        restart: bool = False,
        temperature: float = 1.0,
        edition: int = EDITION,
    ) -> None:
        if not temperature > 0:
            raise ValueError(
                f"temperature is {temperature}: it must be positive (1 is the paper's)"
            )
        self.bandit = bandit
        self.seed = seed
        self.restart = restart
        self.temperature = temperature
        self.edition = edition
        self.states = self._draw_states(0)
        self._arms = np.arange(bandit.n_arms)
        # Inverting cumulative rows: the next state is the number of thresholds passed.
        S = bandit.n_states
        self._thresholds = bandit.transitions.cumsum(axis=3)[..., :-1].reshape(-1, S - 1)
        self._first = self._arms * S
        self._strength = np.exp(bandit.rewards / temperature)

    def _draw_states(self, episode: int) -> IntArray:
        return self._luck_of(Stream.START, episode).integers(
            self.bandit.n_states, size=self.bandit.n_arms
        )

    def _luck_of(self, stream: Stream, episode: int) -> np.random.Generator:
        return generator(stream, self.seed, episode, edition=self.edition)

    def begin(self, episode: int, horizon: int, answers: int = 0) -> None:
        """Draw an episode's luck; with `restart` also new states (errata 15).

        answers: wanted in an epoch, where that is more than B-1
        """
        if self.restart:
            self.states = self._draw_states(episode)
        self.start = self.states
        self.moves = self._luck_of(Stream.MOVES, episode).random((horizon, self.bandit.n_arms, 1))
        width = max(self.bandit.budget - 1, answers)
        self._luck = self._luck_of(Stream.ANSWERS, episode).random((horizon, width))
        self._epoch = 0

    def answer(self, duels: IntArray) -> FloatArray:
        """What the left is credited with [D], 1 or 0, in an epoch's duels [D, 4] (eq. (2)).

        Or [H, D] of all duels [H, D, 4] of an episode, each answered as it would be in its epoch.
        """
        luck = self._luck if duels.ndim == 3 else self._luck[self._epoch]
        return self._credit(duels, luck[..., : duels.shape[-2]])

    def _credit(self, duels: IntArray, luck: FloatArray) -> FloatArray:
        strength = self._strength[duels[..., ::2], duels[..., 1::2]]
        left, right = strength[..., 0], strength[..., 1]
        return (left > (left + right) * luck).astype(float)

    # --- before the first episode

    def past(self, epochs: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Epochs in which B arms by lot were helped: states, actions and next states, all [N]."""
        self.begin(0, epochs)
        lots = self._luck_of(Stream.PAST, 0).random((epochs, self.bandit.n_arms))
        for lot in lots:
            arms, states = lot.argsort()[: self.bandit.budget], self.states
            yield states, actions(arms, self.bandit.n_arms), self.step(arms)

    def sit(self, duels: IntArray) -> FloatArray:
        """What the left is credited with [D] in the duels [D, 4] of a first sitting."""
        return self._credit(duels, self._luck_of(Stream.ANSWERS, 0).random(len(duels)))

    def reward(self, arms: IntArray) -> float:
        """What this epoch pays when `arms` are activated in the present states."""
        r = self.bandit.rewards[self._arms, self.states]
        return float(r.sum() if self.bandit.pays == "all" else r[arms].sum())

    def step(self, arms: IntArray) -> IntArray:
        """Every arm moves on, the activated ones under action 1; the new states [N]."""
        rows = 2 * (self._first + self.states) + actions(arms, self.bandit.n_arms)
        self.states = (self.moves[self._epoch] >= self._thresholds.take(rows, axis=0)).sum(axis=1)
        self._epoch += 1
        return self.states


def bradley_terry(gap: FloatArray) -> FloatArray:
    """The chance that the better by `gap` is preferred: e^gap / (1 + e^gap)."""
    return np.asarray(expit(gap))
