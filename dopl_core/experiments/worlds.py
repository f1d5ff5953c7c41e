"""Worlds that nobody here tuned a learner to, each drawn anew from a seed.

liang, liang_400
                columns act gradually, and seasons: after Liang et al., "A Bayesian Approach to
                Online Learning for Contextual Restless Bandits" (AAAI 2025), sec. 5.2; 100 people
                and help for 20, or 400 and help for 10
idle_rise, idle_fall, idle_wave
                a clinic of 20, as CPAP without help, where help does nothing and a season moves
                people: a rise to the best state, a fall to the worst, a wave between both
idle_own_rise, idle_own_fall, idle_own_wave
                the same, but everybody moves in their own way
late_reports, misread_reports
                CPAP, where reports come a week late, or one in ten names another state
three_groups    30 people in three groups of unequal need and response, for questions of fairness
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from dopl_core import environments
from dopl_core.learning.bandit import UNKNOWN, Bandit, FloatArray, IntArray
from dopl_core.learning.columns import Column, Columns, category, standardised
from dopl_core.learning.streams import Stream
from dopl_core.world import SimulatedWorld

WEEKS = 50  # of a world after Liang et al.; its last week lasts for ever
SEASON = 26  # weeks of a clinic
OWN_WAY = 30  # moves of its own that an arm needs to outweigh its kind, where it has its own way


class Drawn(NamedTuple):
    """A bandit, its transitions in each week [T, N, S, A, S'] if they change, and its reports.

    The bandit has their average, which its oracle plans with.
    late, misread: as for ReportedWorld
    """

    bandit: Bandit
    weeks: FloatArray | None = None
    late: bool = False
    misread: float = 0.0


class WeeklyWorld(SimulatedWorld):
    """A world that moves by the transitions of each week; after the last, by those of the last."""

    def __init__(self, bandit: Bandit, seed: int, *, weeks: FloatArray, **more: Any) -> None:
        super().__init__(bandit, seed, **more)
        self._weeks = weeks

    def next_chances(self, states: IntArray, helped: IntArray, epoch: int) -> FloatArray:
        week = (self.episode - 1) * len(self.moves) + epoch
        if self.episode == 0:  # the past, before the first week
            week = 0
        now = self._weeks[min(week, len(self._weeks) - 1)]
        chances: FloatArray = now[self._arms, states, helped]
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


def load(name: str, seed: int) -> Bandit:
    """The bandit of a drawn world, of a named environment or of a TOML file."""
    return draw(name, seed).bandit if name in WORLDS else environments.load(name, seed)


def world_of(
    name: str, environment_seed: int, bandit: Bandit, seed: int, **more: Any
) -> SimulatedWorld:
    """The world that a learner plays in."""
    drawn = draw(name, environment_seed) if name in WORLDS else Drawn(bandit)
    if drawn.weeks is not None:
        return WeeklyWorld(bandit, seed, weeks=drawn.weeks, **more)
    if drawn.late or drawn.misread:
        return ReportedWorld(bandit, seed, late=drawn.late, misread=drawn.misread, **more)
    return SimulatedWorld(bandit, seed, **more)


@cache
def draw(name: str, seed: int) -> Drawn:
    """One of WORLDS, drawn from a seed."""
    return WORLDS[name](seed)


def liang(name: str, n_arms: int, budget: int) -> Callable[[int], Drawn]:
    """Two states, the second pays 1; four columns say how people move, and seasons change it."""

    def drawn(seed: int) -> Drawn:
        columns, weeks = covariates(n_arms, seed)
        texts = {
            one.name: tuple(
                one.labels[int(x)] if one.kind == "category" else f"{x:.6f}" for x in one.values
            )
            for one in columns.each
        }
        rewards = np.tile([0.0, 1.0], (n_arms, 1))
        settings: dict[str, Any] = {"columns": texts, "episodes": WEEKS, "horizon": 1}
        return Drawn(Bandit(weeks.mean(axis=0), rewards, budget, name=name, **settings), weeks)

    return drawn


def covariates(n_arms: int, seed: int) -> tuple[Columns, FloatArray]:
    """Columns of the arms, and transitions [T, N, S, A, S'] of all weeks, after Liang et al."""
    rng = np.random.default_rng([seed, n_arms, 4242])
    age = standardised(np.round(rng.normal(22, 2, n_arms)))
    normal, coin = rng.normal(size=(n_arms, 2)), rng.integers(2, size=n_arms)
    x = np.column_stack([normal, coin, age])
    coefficients = rng.normal(0, 0.3, 4) + rng.normal(0, 0.1, (2, 2, 4))
    own = np.zeros((n_arms, 2, 2))
    shared = rng.normal(0, 0.1, 2)
    own[:, :, 0] = rng.normal(0, 0.1, (n_arms, 2))
    own[:, :, 1] = (own[:, :, 0] @ shared)[:, None] + rng.normal(0, 0.1, (n_arms, 2))
    powers = np.arange(WEEKS)[:, None] ** np.array([1.0, 2.0, 3.0])
    powers = (powers - powers.mean(axis=0)) / powers.std(axis=0)
    season = np.einsum("tp,sap->tsa", powers, rng.normal(0, 0.15, (2, 2, 3)))
    up = ndtr(np.einsum("nd,sad->nsa", x, coefficients) + own + season[:, None])
    columns = (
        *(Column(f"normal {i + 1}", "number", normal[:, i]) for i in range(2)),
        category("coin", [str(side) for side in coin]),
        Column("age", "number", age),
    )
    return Columns(columns, n_arms), np.stack([1 - up, up], axis=-1)


def idle(kind: str, *, own_way: bool = False) -> Callable[[int], Drawn]:
    """Help does nothing; in week t, from 1, a share of all goes to the best or the worst state.

    own_way: rows are drawn for each arm from a Dirichlet distribution about those of CPAP
    """

    def drawn(seed: int) -> Drawn:
        cpap = environments.load("cpap", seed)
        alone = cpap.transitions[:, :, :1]
        if own_way:
            drawn = np.random.default_rng([seed, 20, 3030]).standard_gamma(OWN_WAY * alone)
            alone = drawn / drawn.sum(axis=3, keepdims=True)
        alone = alone.repeat(2, axis=2)  # with help as without
        week = np.arange(1, SEASON + 1)
        wave = np.sin(2 * np.pi * week / 13)
        share = 0.4 * np.abs(wave) if kind == "wave" else 0.45 * week / SEASON
        up = wave >= 0 if kind == "wave" else np.full(SEASON, kind == "rise")
        goal = np.eye(cpap.n_states)[np.where(up, cpap.n_states - 1, 0)]
        share, goal = share.reshape(-1, 1, 1, 1, 1), goal[:, None, None, None]
        weeks = (1 - share) * alone + share * goal
        name = f"idle_own_{kind}" if own_way else f"idle_{kind}"
        settings: dict[str, Any] = {"name": name, "episodes": SEASON, "horizon": 1}
        return Drawn(Bandit(weeks.mean(axis=0), cpap.rewards, cpap.budget, **settings), weeks)

    return drawn


def reports(name: str, *, late: bool = False, misread: float = 0.0) -> Callable[[int], Drawn]:
    """CPAP, where a learner is told the states late, or some of them wrong."""

    def drawn(seed: int) -> Drawn:
        clinic = replace(environments.load("cpap", seed), name=name, episodes=SEASON, horizon=1)
        return Drawn(clinic, late=late, misread=misread)

    return drawn


def three_groups(seed: int) -> Drawn:
    """Ten people each who are well off, who respond to help, and who are badly off.

    States are poor, fair and good. The gain from help is 0.15 to 0.25, 0.35 to 0.45 and 0.2 to 0.3
    of the chance to move up, so that a plan without floors leaves the third group out.
    """
    rng = np.random.default_rng([seed, 30, 1717])
    stays = np.repeat([0.3, 0.5, 0.75], 10) + rng.uniform(-0.05, 0.05, 30)  # in a poor state
    gain = np.repeat([0.2, 0.4, 0.25], 10) + rng.uniform(-0.05, 0.05, 30)
    rows = np.empty((30, 3, 2, 3))
    for action in range(2):
        up = 1 - stays + action * np.minimum(gain, 0.95 - (1 - stays))
        rows[:, 0, action] = np.stack([1 - up, up, 0 * up], axis=1)
        rows[:, 1, action] = np.stack([(1 - up) / 2, 0.5 + 0 * up, up / 2], axis=1)
        rows[:, 2, action] = np.stack([0 * up, (1 - up) * 0.8, 1 - (1 - up) * 0.8], axis=1)
    groups = tuple(np.repeat(["well off", "responsive", "badly off"], 10).tolist())
    rewards = np.tile([0.0, 0.5, 1.0], (30, 1))
    settings: dict[str, Any] = {"groups": groups, "columns": {"group": groups}, "horizon": 1}
    return Drawn(Bandit(rows, rewards, 6, name="three_groups", episodes=WEEKS, **settings))


WORLDS: dict[str, Callable[[int], Drawn]] = {
    "liang": liang("liang", 100, 20),
    "liang_400": liang("liang_400", 400, 10),
    **{f"idle_{kind}": idle(kind) for kind in ("rise", "fall", "wave")},
    **{f"idle_own_{kind}": idle(kind, own_way=True) for kind in ("rise", "fall", "wave")},
    "late_reports": reports("late_reports", late=True),
    "misread_reports": reports("misread_reports", misread=0.1),
    "three_groups": three_groups,
}
