"""Epochs as they are known to have been: with corrections and changed lists applied."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dopl_core.learning.bandit import IntArray
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_bodies import Corrected, ListChanged
from dopl_core.studies.model.log_values import Epoch, OwnList, state_number
from dopl_core.studies.model.study_config import StudyConfig


def corrected(
    epochs: Sequence[Epoch], corrections: Iterable[Corrected | ListChanged], config: StudyConfig
) -> list[Epoch]:
    """The epochs with corrections and changes of lists applied in order.

    A correction of week w is about what was reported at its end: where arms were (at the end of
    week w and the beginning of the next), and which arms were helped. Week 0 is the roster.
    config: with all arms that corrections name
    """
    fixed = list(epochs)
    for correction in corrections:
        week = correction.week
        if isinstance(correction, ListChanged):
            if not 1 <= week <= len(fixed):
                raise LogError(f"a change of the list of week {week}, which there is not")
            fixed[week - 1] = fixed[week - 1].with_own(
                own_list(fixed[week - 1], correction, config)
            )
            continue
        _check(correction, fixed, config)
        for name, (_, label) in correction.states.items():
            arm, state = config.arm_number(name), state_number(config, label)
            if week > 0:
                fixed[week - 1] = _with_next_state(fixed[week - 1], arm, state)
            if week < len(fixed) and arm < len(fixed[week].states):
                fixed[week] = _with_state(fixed[week], arm, state)
        for name, (_, helped) in correction.helped.items():
            fixed[week - 1] = _with_help(fixed[week - 1], config.arm_number(name), bool(helped))
    return fixed


def own_list(epoch: Epoch, change: ListChanged, config: StudyConfig) -> OwnList:
    """The list of an epoch after the owner changed it."""
    on, off = (set(), set()) if epoch.own is None else map(_numbers, (epoch.own.on, epoch.own.off))
    removed, added = (
        {config.arm_number(arm) for arm in some} for some in (change.removed, change.added)
    )
    entries = [entry for entry in change.entries if not entry.reserve and not entry.left_out]
    listed = {config.arm_number(entry.id) for entry in entries}
    if any(number >= len(epoch.states) for number in listed | removed):
        raise LogError(f"{epoch}: somebody is on the list who was not there yet")
    sets = listed, (on | added) - removed, (off | removed) - added
    return OwnList(*(np.array(sorted(some), dtype=np.int64) for some in sets))


def _numbers(arms: IntArray) -> set[int]:
    return set(arms.tolist())


def _check(correction: Corrected, epochs: Sequence[Epoch], config: StudyConfig) -> None:
    week = correction.week
    if not 0 <= week <= len(epochs):
        raise LogError(f"a correction of week {week}, which has no report")
    if correction.helped and not week:
        raise LogError("a correction of who was helped before the first list")
    for name in (*correction.states, *correction.helped):
        if week and config.arm_number(name) >= len(epochs[week - 1].states):
            raise LogError(f'a correction of "{name[:80]}", who was not there in week {week}')


def _with_state(epoch: Epoch, arm: int, state: int) -> Epoch:
    states = epoch.states.copy()
    states[arm] = state
    return replace(epoch, states=states)


def _with_next_state(epoch: Epoch, arm: int, state: int) -> Epoch:
    if epoch.next_states is None:
        return epoch
    states = epoch.next_states.copy()
    states[arm] = state
    return replace(epoch, next_states=states)


def _with_help(epoch: Epoch, arm: int, helped: bool) -> Epoch:
    acted = set(epoch.acted.tolist()) - {arm} | ({arm} if helped else set())
    return replace(epoch, helped=np.array(sorted(acted), dtype=np.int64))
