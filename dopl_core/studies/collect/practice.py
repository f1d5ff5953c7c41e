"""Practice duels: a few pairs with a known better side."""

import math

import numpy as np

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.streams import Stream, generator
from dopl_core.studies.model.study_config import StudyConfig, bandit_of
from dopl_core.studies.replay import known_states

_ARMS_PER_STATE = 8  # candidates for practice duels


def practice_duels(config: StudyConfig) -> IntArray:
    """Up to three duels [D, 4] with a known better side: two easy ones and a hard one.

    They follow the order of the states if the owner gave one. There are fewer, or none, if too many
    arms are in the same state.
    """
    rng = generator(Stream.PRACTICE, config.seed)
    if config.world == "simulated":
        worth = bandit_of(config).rewards
        states = np.tile(np.arange(config.n_states), (config.n_arms, 1))
    else:
        states = known_states.first_states(config)[:, None]
        worth = states.astype(float)
    # Some arms of each state, at random.
    lot = rng.permutation(states.size)
    some = [lot[states.ravel()[lot] == s][:_ARMS_PER_STATE] for s in range(config.n_states)]
    at = rng.permutation(np.concatenate(some))
    arm, state, worth = at // states.shape[1], states.ravel()[at], worth.ravel()[at]
    duels: list[tuple[int, int, int, int]] = []
    for hard in (False, False, True):
        gap = worth[:, None] - worth  # [M, M] how much better the first is
        free = ~np.isin(arm, [n for duel in duels for n in duel[::2]])
        fits = (gap > 1e-9) & (arm[:, None] != arm) & free[:, None] & free
        if config.ordered:
            fits &= state[:, None] > state
        if not fits.any():
            break
        wanted = np.where(fits, -gap if hard else gap, -np.inf)
        better, worse = np.unravel_index(wanted.argmax(), wanted.shape)
        duels.append((arm[better], state[better], arm[worse], state[worse]))
    swap = rng.random(len(duels)) < 0.5
    pairs = np.array(duels, dtype=np.int64).reshape(-1, 4)
    return np.where(swap[:, None], pairs[:, [2, 3, 0, 1]], pairs)


def better_side(config: StudyConfig, duel: tuple[int, int, int, int]) -> str:
    """The correct answer to a practice duel: left or right."""
    left_arm, left_state, right_arm, right_state = duel
    if config.world == "simulated":
        rewards = bandit_of(config).rewards
        return (
            "left" if rewards[left_arm, left_state] > rewards[right_arm, right_state] else "right"
        )
    return "left" if left_state > right_state else "right"


def plain_gap(n_states: int) -> int:
    """How many states apart the two sides of a plain duel are: at least two thirds of the range."""
    return math.ceil(2 * (n_states - 1) / 3)
