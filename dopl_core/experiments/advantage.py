"""How much of the best list's advantage a learner's lists have, week by week.

The advantage of helping an arm-state is the gain of acting over waiting under the best plan, by the
true transitions: those of the week where a world changes, and those of state and past help together
where it remembers help. The best list has the B largest advantages of the states that people are
truly in. So a list is judged by the chances of its week, and not by the luck of the moves.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from dopl_core.experiments import worlds
from dopl_core.experiments.simulator import prepare
from dopl_core.experiments.worlds.drawn import WeeklyWorld
from dopl_core.learning.bandit import Bandit, FloatArray
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.learning.planning import plan
from dopl_core.world import SimulatedWorld

TEMPERATURE = 0.4  # of the answers: about as sure as people in published studies
PAST, SITTING, ANSWERS = 26, 200, 30  # a start: past weeks, a first sitting, answers in a week
NOTHING = 1e-6  # of advantage: solver's rounding


class Weeks(NamedTuple):
    """The advantage of each week's list [T]: of the learner's, of the best, and of a random one."""

    mine: FloatArray
    best: FloatArray
    chance: FloatArray


def play_shares(
    name: str,
    make_learner: Callable[[Bandit, int], Learner],
    seed: int,
    weeks: int = 30,
    start: bool = False,
    answers: Literal["asked", "none"] = "asked",
) -> Weeks:
    """Play a learner in a world drawn from a seed, states from worst to best, a plan every week.

    make_learner: from the bandit and the seed, with a horizon of 1 or more
    start: with 26 past weeks in which B random people were helped, a first sitting of 200 answers,
        and 30 answers a week of learners that can ask for more than B-1; otherwise from nothing
    answers: "none" for moves only
    """
    bandit = worlds.rising(worlds.load(name, seed))
    learner = make_learner(bandit, seed)
    world = worlds.world_of(name, seed, bandit, seed, temperature=TEMPERATURE)
    gains = gains_of(name, seed)
    asks = answers == "asked"
    if start:
        if asks and isinstance(learner, Dopl):
            learner.answers = ANSWERS
        prepare(learner, world, PAST, SITTING if asks else 0)
    rows = []
    for week in range(1, weeks + 1):
        learner.replan()
        world.begin(week, 1, learner.answers)
        gain = gains(world)
        states = world.reported
        arms = learner.activate(states, 0)
        best = np.partition(gain, -bandit.budget)[-bandit.budget :]
        rows.append((gain[arms].sum(), best.sum(), bandit.budget * gain.mean()))
        if asks:
            duels = learner.duels(states, arms, 0)
            learner.count_duels(duels, world.answer(duels))
        learner.count_moves(*world.report(arms))
    return Weeks(*np.array(rows).T)


@lru_cache(maxsize=64)
def gains_of(name: str, seed: int) -> Callable[[SimulatedWorld], FloatArray]:
    """A function that gives the true advantages [N] of everybody's present state in a world."""
    drawn = worlds.draw(name, seed) if worlds.is_drawn(name) else None
    bandit = worlds.rising(worlds.load(name, seed))
    if drawn is not None and drawn.hidden is not None:
        bandit = drawn.hidden
    weekly = None if drawn is None else drawn.weeks
    tables = [_advantages(bandit, P) for P in ([bandit.transitions] if weekly is None else weekly)]
    arms = np.arange(bandit.n_arms)

    def gains(world: SimulatedWorld) -> FloatArray:
        week = world.week(world.epoch) if isinstance(world, WeeklyWorld) else 0
        return np.asarray(tables[week][arms, world.states])

    return gains


def _advantages(bandit: Bandit, P: FloatArray) -> FloatArray:
    """[N, S] under the best plan with transitions P."""
    best = plan(bandit.rewards, P, P, bandit.budget, engine="lagrangian", pays=bandit.pays)
    return best.advantage


def share(plays: Sequence[Weeks], first: int, last: int) -> tuple[float, float]:
    """Share of the best list's advantage over a random one in weeks first to last, and its error.

    A ratio of sums over the weeks and the plays, one for each seed; its standard error is that of
    the jackknife over plays. NaN where there is nothing to gain.
    """
    return jackknife(_sums(plays, first, last))


def difference(
    ours: Sequence[Weeks], theirs: Sequence[Weeks], first: int, last: int
) -> tuple[float, float]:
    """The share of `ours` less that of `theirs`, paired by seed, and its standard error."""
    return jackknife(_sums(ours, first, last), _sums(theirs, first, last))


def _sums(plays: Sequence[Weeks], first: int, last: int) -> FloatArray:
    """[2, plays] advantage over a random list: of the learner's lists, and of the best ones."""
    window = slice(first - 1, last)
    each = [
        ((one.mine - one.chance)[window].sum(), (one.best - one.chance)[window].sum())
        for one in plays
    ]
    return np.array(each).T


def jackknife(*sums: FloatArray) -> tuple[float, float]:
    """The ratio of sums [2, n], or of two the difference of ratios, and its standard error."""
    n = sums[0].shape[1]
    if any(one[1].sum() < NOTHING for one in sums):
        return np.nan, np.nan

    def ratio(kept: FloatArray) -> float:
        ratios = [float((one[0] @ kept) / (one[1] @ kept)) for one in sums]
        return ratios[0] - sum(ratios[1:])

    found = ratio(np.ones(n))
    if n < 2:
        return found, np.nan
    left_out = np.array([ratio(1.0 - np.eye(n)[i]) for i in range(n)])
    return found, float(np.sqrt((n - 1) * left_out.var()))
