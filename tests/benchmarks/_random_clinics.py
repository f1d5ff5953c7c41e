"""Clinics where everybody moves at random: how often a list is mostly of the best state."""

import numpy as np

from dopl_core.learning.bandit import Bandit
from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.world import SimulatedWorld

PEOPLE, STATES, PLACES, WEEKS = 45, 3, 8, 26
QUARTER = 0.25  # of a list


def shares(seed: int, past: int) -> tuple[float, float]:
    """The share of lists of weeks 2 to 26 with over a quarter, and over half, in the best state.

    Places that the worse off leave free do not count.  past: weeks of random help before
    """
    moves = np.full((PEOPLE, STATES, 2, STATES), 1 / STATES)
    values = np.tile(np.linspace(0, 1, STATES), (PEOPLE, 1))
    world = SimulatedWorld(Bandit(moves, values, PLACES), seed)
    learner: Learner = Dopl(PEOPLE, STATES, PLACES, horizon=1, seed=seed, ordered=True)
    rng = np.random.default_rng([seed, past])
    best = []
    for week in range(past + WEEKS):
        learner.replan()
        world.begin(week + 1, 1)
        arms = learner.activate(world.states, 0)
        if week < past:
            arms = rng.choice(PEOPLE, PLACES, replace=False)
        elif week > past:
            free = max(0, PLACES - int((world.states < STATES - 1).sum()))
            best.append(int((world.states[arms] == STATES - 1).sum()) - free)
        learner.count_moves(*world.report(arms))
    most = np.array(best) / PLACES
    return float((most > QUARTER).mean()), float((most > 2 * QUARTER).mean())
