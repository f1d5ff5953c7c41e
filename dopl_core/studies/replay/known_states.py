"""Where arms are: as reported, as the roster says of newcomers, or as is likely."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, FloatArray, IntArray, actions
from dopl_core.studies.model.factories import world_of
from dopl_core.studies.model.log_values import Epoch, state_number
from dopl_core.studies.model.study_config import StudyConfig


def first_states(config: StudyConfig) -> IntArray:
    """Where all arms begin [N]."""
    if config.world == "simulated":
        return world_of(config).states
    states = [state_number(config, arm.state) for arm in config.arms]
    return np.where(config.present, np.array(states, dtype=np.int64), UNKNOWN)


def coming_states(
    config: StudyConfig, epochs: Sequence[Epoch], before: StudyConfig | None
) -> IntArray:
    """The states of all arms when the next plan is made [N], UNKNOWN where nobody knows.

    epochs: as corrected by now;  before: the configuration of the last plan, None if there is none
    """
    if not epochs or before is None:
        return first_states(config)
    states = np.full(config.n_arms, UNKNOWN)
    last = epochs[-1]
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


def last_seen(arm: int, states: IntArray, epochs: Sequence[Epoch]) -> Sighting | None:
    """The last known state of an arm that is in `states` [N] now; None if it was never known."""
    if states[arm] != UNKNOWN:
        return Sighting(int(states[arm]), 0)
    for ago, epoch in enumerate(reversed(epochs), start=1):
        if arm < len(epoch.states) and epoch.states[arm] != UNKNOWN:
            return Sighting(int(epoch.states[arm]), ago)
    return None


def likely_states(
    states: IntArray, epochs: Sequence[Epoch], present: FloatArray, rows: FloatArray
) -> FloatArray | None:
    """The probability of each state for each present arm [N, S]; None where all are known.

    An arm moves on from where it was last seen by rows [N, S, A, S'], helped or not. An arm that
    was never seen has the distribution of the others.
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
        seen = last_seen(int(arm), states, epochs)
        if seen is None:
            chances[arm] = others
            continue
        chance = np.zeros(S)
        chance[seen.state] = 1.0
        for week in range(len(epochs) - seen.ago, len(epochs)):
            if week not in acted:
                acted[week] = actions(epochs[week].acted, N)
            chance = chance @ rows[arm, :, acted[week][arm]]
        chances[arm] = chance
    return chances
