"""A learner plays a simulated world: Algorithm 1, episode after episode."""

from collections.abc import Iterator
from time import perf_counter

from dopl_core.learner import Learner
from dopl_core.world import SimulatedWorld


def play(learner: Learner, world: SimulatedWorld, episodes: int) -> Iterator[tuple[float, float]]:
    """Play `episodes` episodes; each gives its reward per epoch and the seconds it took."""
    for _ in range(episodes):
        started = perf_counter()
        learner.replan()
        world.begin(learner.episode, learner.horizon)
        total = 0.0
        for _ in range(learner.horizon):
            states = world.states
            arms = learner.activate(states)
            total += world.reward(arms)
            duels = learner.duels(states, arms)
            learner.record(duels, world.answer(duels))
            learner.observe(states, arms, world.step(arms))
        yield total / learner.horizon, perf_counter() - started
