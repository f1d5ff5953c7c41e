"""What a drawn world consists of, and how it moves and reports."""

from typing import Any, NamedTuple

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, Bandit, FloatArray, IntArray
from dopl_core.learning.streams import Stream
from dopl_core.world import SimulatedWorld


class Drawn(NamedTuple):
    """A bandit, and what its world has beyond it.

    weeks: transitions in each week [T, N, S, A, S'] if they change; the bandit has their average
    repeats: as for WeeklyWorld;  late, misread: as for ReportedWorld
    hidden: as for RememberingWorld
    """

    bandit: Bandit
    weeks: FloatArray | None = None
    late: bool = False
    misread: float = 0.0
    repeats: bool = False
    hidden: Bandit | None = None


class WeeklyWorld(SimulatedWorld):
    """A world that moves by the transitions of each week.

    repeats: weeks repeat after the last, and the past has the same; otherwise the last week lasts,
    and the past is as the first
    """

    def __init__(
        self, bandit: Bandit, seed: int, *, weeks: FloatArray, repeats: bool = False, **more: Any
    ) -> None:
        super().__init__(bandit, seed, **more)
        self._weeks, self._repeats = weeks, repeats

    def week(self, epoch: int) -> int:
        """Which of the weeks an epoch of the present episode has."""
        week = (self.episode - 1) * len(self.moves) + epoch
        if self.episode == 0:  # the past, before the first week
            week = epoch - len(self.moves) if self._repeats else 0
        return week % len(self._weeks) if self._repeats else min(week, len(self._weeks) - 1)

    def next_chances(self, states: IntArray, helped: IntArray, epoch: int) -> FloatArray:
        chances: FloatArray = self._weeks[self.week(epoch)][self._arms, states, helped]
        return chances


class ReportedWorld(SimulatedWorld):
    """A world whose reports are late or misread. The oracle and random help know the true states.

    late: help is chosen by the states of the week before, and moves are counted a week later
    misread: probability that a report names another state; all others are equally likely
    """

    def __init__(
        self, bandit: Bandit, seed: int, *, late: bool = False, misread: float = 0.0, **more: Any
    ) -> None:
        super().__init__(bandit, seed, **more)
        self._late, self._misread = late, misread
        self._start_reports()

    def _start_reports(self) -> None:
        self._reports = self.states  # the roster is right
        self._helped = np.full(self.bandit.n_arms, UNKNOWN)  # in the week of the last report

    def begin(self, episode: int, horizon: int, answers: int = 0) -> None:
        super().begin(episode, horizon, answers)
        if self.restart:
            self._start_reports()
        rng, shape = self._numbers(Stream.REPORTS, episode), (horizon, self.bandit.n_arms)
        other = rng.integers(1, self.bandit.n_states, size=shape)
        self._slips = np.where(rng.random(shape) < self._misread, other, 0)

    @property
    def reported(self) -> IntArray:
        return self._reports

    def report(self, arms: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        slips, before = self._slips[self.epoch], self._reports
        states, helped, then = super().report(arms)
        if self._late:
            then = states
            self._helped, helped = helped, self._helped
            if helped[0] == UNKNOWN:  # nobody has reported yet
                return before, self._helped, helped
        self._reports = (then + slips) % self.bandit.n_states
        return before, helped, self._reports

    def state(self) -> IntArray:
        return np.stack([self.states, self._reports, self._helped])

    def restore(self, state: IntArray) -> None:
        self.states, self._reports, self._helped = state


class WeeklyReportedWorld(ReportedWorld, WeeklyWorld):
    """A world that moves by the transitions of each week, and whose reports are late or misread."""


class RememberingWorld(SimulatedWorld):
    """A world that remembers help, while learners are told states without it.

    hidden: the bandit that it moves by, made by `remembering`; `states` are states of this one
    """

    def __init__(self, bandit: Bandit, seed: int, *, hidden: Bandit, **more: Any) -> None:
        self._told = bandit.n_states
        super().__init__(hidden, seed, **more)

    def _draw_states(self, episode: int) -> IntArray:
        return super()._draw_states(episode) % self._told  # nobody was helped before

    @property
    def reported(self) -> IntArray:
        return self.states % self._told

    def report(self, arms: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        states = self.reported
        _, helped, _ = super().report(arms)
        return states, helped, self.reported


def remembering(bandit: Bandit, rows: FloatArray) -> Bandit:
    """The bandit of a world that remembers help, of states h * S + s.

    rows: [N, H, S, A, S'] by past help h, whose bits are the last weeks; bit 0 is the last week
    """
    N, H, S, A, _ = rows.shape
    moves = np.zeros((N, H, S, A, H, S))
    for past in range(H):
        for action in range(A):
            moves[:, past, :, action, (2 * past + action) % H] = rows[:, past, :, action]
    values = np.tile(bandit.rewards, (1, H))
    return Bandit(moves.reshape(N, H * S, A, H * S), values, bandit.budget, name=bandit.name)
