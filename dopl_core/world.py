"""A simulated world: the arms of a known bandit move, and an oracle answers duels."""

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from dopl_core.learning.bandit import Bandit, FloatArray, IntArray, actions
from dopl_core.learning.streams import Stream, generator


class SimulatedWorld:
    """The states of all N arms of a bandit; random numbers of episode k depend on (seed, k) only.

    So all learners compared meet the same random numbers: in epoch h arm n has the same uniform
    number whether or not it was helped.

    Parameters
    ----------
    bandit : Bandit
        Its transitions have shape (N, S, 2, S), its rewards (N, S).
    seed : int
        Of states, moves and answers.
    restart : bool
        Whether every episode begins in new states (errata 15).
    temperature : float
        Of the answers: 1 is the paper's oracle, a lower one errs less.

    Attributes
    ----------
    states, start : ndarray of int, shape (N,)
        Now, and when the episode began.
    moves : ndarray, shape (H, N, 1)
        The uniform numbers of the episode.
    rows : ndarray, shape (N * S * 2, S - 1)
        Cumulated transitions of the bandit, by arm, state and action.
    episode, epoch : int
        The present ones; epochs count from 0 in each episode.

    Override `next_chances` for moves that depend on time, `win_chances` for other answers, and
    `reported` and `report` for reports that are late or wrong (experiments/worlds/drawn.py).

    Examples
    --------
    >>> from dopl_core import load_environment
    >>> world = SimulatedWorld(load_environment("cpap"), seed=0)
    >>> world.begin(episode=1, horizon=5)
    >>> world.step(arms=np.arange(8)).shape  # eight are helped, all twenty move
    (20,)
    >>> world.answer(np.array([[0, 2, 1, 0]]))  # arm 0 in state 2 against arm 1 in state 0
    array([1.])

    A world in which nobody gets better in the first two epochs of an episode:

    >>> class SlowStart(SimulatedWorld):
    ...     def next_chances(self, states, helped, epoch):
    ...         chances = super().next_chances(states, helped, epoch)
    ...         return np.eye(self.bandit.n_states)[states] if epoch < 2 else chances
    """

    def __init__(
        self,
        bandit: Bandit,
        seed: int,
        *,
        restart: bool = False,
        temperature: float = 1.0,
    ) -> None:
        if not temperature > 0:
            raise ValueError(
                f"temperature is {temperature}: it must be positive (1 is the paper's)"
            )
        self.bandit = bandit
        self.seed = seed
        self.restart = restart
        self.temperature = temperature
        self.states = self._draw_states(0)
        self._arms = np.arange(bandit.n_arms)
        # Inverse transform sampling: the next state is the number of thresholds passed.
        S = bandit.n_states
        self.rows = bandit.transitions.cumsum(axis=3)[..., :-1].reshape(-1, S - 1)
        self._first = self._arms * S
        self.moves_as_the_bandit = type(self).next_chances is SimulatedWorld.next_chances
        self._strength = np.exp(bandit.rewards / temperature)

    def _draw_states(self, episode: int) -> IntArray:
        return self._numbers(Stream.START, episode).integers(
            self.bandit.n_states, size=self.bandit.n_arms
        )

    def _numbers(self, stream: Stream, episode: int) -> np.random.Generator:
        return generator(stream, self.seed, episode)

    def begin(self, episode: int, horizon: int, answers: int = 0) -> None:
        """Draw the random numbers of an episode; with `restart` also new states (errata 15).

        answers: wanted in an epoch, if more than B-1
        """
        if self.restart:
            self.states = self._draw_states(episode)
        self.start = self.states
        self.moves = self._numbers(Stream.MOVES, episode).random((horizon, self.bandit.n_arms, 1))
        width = max(self.bandit.budget - 1, answers)
        self._uniform = self._numbers(Stream.ANSWERS, episode).random((horizon, width))
        self.episode, self.epoch = episode, 0

    def next_chances(self, states: IntArray, helped: IntArray, epoch: int) -> FloatArray:
        """The chances [N, S] of the next states of all arms, given states and actions [N].

        epoch: of the present episode, `self.episode`
        """
        chances: FloatArray = self.bandit.transitions[self._arms, states, helped]
        return chances

    def win_chances(self, duels: IntArray) -> FloatArray:
        """The chances [...] that the left side of duels [..., 4] is preferred (eq. (2))."""
        left, right = self._strengths(duels)
        return left / (left + right)

    def thresholds(self, states: IntArray, helped: IntArray, epoch: int) -> FloatArray:
        """What uniform numbers of arms must reach for each state after the first: [N, S-1]."""
        if self.moves_as_the_bandit:
            return self.rows.take(2 * (self._first + states) + helped, axis=0)
        return self.next_chances(states, helped, epoch).cumsum(axis=1)[:, :-1]

    def answer(self, duels: IntArray) -> FloatArray:
        """The credit of the left side [D], 1 or 0, in the duels [D, 4] of an epoch (eq. (2)).

        Or [H, D] for all duels [H, D, 4] of an episode, with the same answers as epoch by epoch.
        """
        uniform = self._uniform if duels.ndim == 3 else self._uniform[self.epoch]
        return self._credit(duels, uniform[..., : duels.shape[-2]])

    def _credit(self, duels: IntArray, uniform: FloatArray) -> FloatArray:
        if type(self).win_chances is not SimulatedWorld.win_chances:
            return (self.win_chances(duels) > uniform).astype(float)
        left, right = self._strengths(duels)
        return (left > (left + right) * uniform).astype(float)

    def _strengths(self, duels: IntArray) -> tuple[FloatArray, FloatArray]:
        strength = self._strength[duels[..., ::2], duels[..., 1::2]]
        return strength[..., 0], strength[..., 1]

    # --- before the first episode

    def past(self, epochs: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Epochs in which B random arms are helped: states, actions and next states, all [N]."""
        self.begin(0, epochs)
        lots = self._numbers(Stream.PAST, 0).random((epochs, self.bandit.n_arms))
        for lot in lots:
            yield self.report(lot.argsort()[: self.bandit.budget])

    def answer_first_round(self, duels: IntArray) -> FloatArray:
        """The credit of the left side [D] in the duels [D, 4] of a first sitting."""
        return self._credit(duels, self._numbers(Stream.ANSWERS, 0).random(len(duels)))

    def reward(self, arms: IntArray) -> float:
        """The reward of this epoch if `arms` are activated."""
        r = self.bandit.rewards[self._arms, self.states]
        return float(r.sum() if self.bandit.pays == "all" else r[arms].sum())

    def step(self, arms: IntArray) -> IntArray:
        """Move every arm, the activated ones under action 1, and return the new states [N]."""
        helped = actions(arms, self.bandit.n_arms)
        passed = self.moves[self.epoch] >= self.thresholds(self.states, helped, self.epoch)
        self.states = passed.sum(axis=1)
        self.epoch += 1
        return self.states

    # --- what a learner is told

    @property
    def reported(self) -> IntArray:
        """The states [N] that a learner is told before an epoch."""
        return self.states

    def report(self, arms: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Move every arm, and what a learner is told: states, actions and next states, all [N]."""
        states = self.states
        return states, actions(arms, self.bandit.n_arms), self.step(arms)

    def state(self) -> IntArray:
        """What the world must be given to continue with the next episode."""
        return self.states

    def restore(self, state: IntArray) -> None:
        """Become the world that returned `state`."""
        self.states = state


def bradley_terry(gap: FloatArray) -> FloatArray:
    """The probability that the one better by `gap` is preferred: e^gap / (1 + e^gap)."""
    return np.asarray(expit(gap))
