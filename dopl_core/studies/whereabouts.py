"""Where arms are: as reported, as newcomers bring it, or as far as it can be guessed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray, actions
from dopl_core.studies.config import StudyConfig, world_of
from dopl_core.studies.history import Move, state_number


def first_states(config: StudyConfig) -> IntArray:
    """Where all arms begin [N]."""
    if config.world == "simulated":
        return world_of(config).states
    states = [state_number(config, arm.state) for arm in config.arms]
    return np.where(config.present, np.array(states, dtype=np.int64), UNKNOWN)


def coming_states(
    config: StudyConfig, moves: Sequence[Move], before: StudyConfig | None
) -> IntArray:
    """Where all arms are when the next plan is made [N], UNKNOWN where that is not known.

    moves: as corrected by now;  before: the configuration of the last plan, None if there is none
    """
    if not moves or before is None:
        return first_states(config)
    states = np.full(config.n_arms, UNKNOWN)
    last = moves[-1]
    known = last.states if last.next_states is None else last.next_states
    states[: len(known)] = known
    was_here = np.zeros(config.n_arms, dtype=bool)
    was_here[: before.n_arms] = before.present
    for n in np.flatnonzero(config.present & ~was_here):
        states[n] = state_number(config, config.arms[n].state)
    return np.where(config.present, states, UNKNOWN)


@dataclass(frozen=True)
class Sighting:
    """Where an arm was last seen; ago: epochs since, 0 for now."""

    state: int
    ago: int


def last_seen(arm: int, states: IntArray, moves: Sequence[Move]) -> Sighting | None:
    """The last known state of an arm that is in `states` [N] now; None if it was never known."""
    if states[arm] != UNKNOWN:
        return Sighting(int(states[arm]), 0)
    for ago, move in enumerate(reversed(moves), start=1):
        if arm < len(move.states) and move.states[arm] != UNKNOWN:
            return Sighting(int(move.states[arm]), ago)
    return None


def where(
    states: IntArray, moves: Sequence[Move], present: FloatArray, rows: FloatArray
) -> FloatArray | None:
    """The chances of where each present arm is [N, S]; None where all are known.

    An arm has moved from where it was last seen as arms move, helped or not: rows [N, S, A, S'].
    One that was never seen may be where others are.
    """
    lost = np.flatnonzero((states == UNKNOWN) & present)
    if not len(lost):
        return None
    N, S = rows.shape[:2]
    chances = np.zeros((N, S))
    known = states[states != UNKNOWN]
    others = (np.bincount(known, minlength=S) + 1.0) / (len(known) + S)
    acted: dict[int, IntArray] = {}  # who was helped in each of the last epochs [N]
    for arm in lost:
        seen = last_seen(int(arm), states, moves)
        if seen is None:
            chances[arm] = others
            continue
        chance = np.zeros(S)
        chance[seen.state] = 1.0
        for week in range(len(moves) - seen.ago, len(moves)):
            if week not in acted:
                acted[week] = actions(moves[week].acted, N)
            chance = chance @ rows[arm, :, acted[week][arm]]
        chances[arm] = chance
    return chances
