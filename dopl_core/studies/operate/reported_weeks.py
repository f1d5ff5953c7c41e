"""What was reported of each week, with all corrections, and a report in words."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.studies.model.log_values import state_label
from dopl_core.studies.replay.known_states import first_states
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study


@dataclass(frozen=True)
class Standing:
    """A person's state at the end of a week (None if unknown), and whether they were helped."""

    state: str | None
    helped: bool


def read_week(store: Store, study: str, week: int) -> dict[str, Standing]:
    """A reported week with all corrections: arm id -> standing; week 0 is the roster.

    Arms that joined later are not in it.
    """
    with read_study(store, study) as reader:
        config, epochs = reader.next_config, reader.epochs
    if week == 0:
        states, acted = epochs[0].states if epochs else first_states(config), set()
    else:
        known = epochs[week - 1].next_states
        assert known is not None  # noqa: S101
        states, acted = known, set(epochs[week - 1].acted.tolist())
    return {
        config.arms[n].id: Standing(state_label(config, int(state)), n in acted)
        for n, state in enumerate(states)
        if state != UNKNOWN or n in acted or config.arms[n].present
    }


def read_cards(store: Store, study: str) -> dict[str, dict[str, str]]:
    """The columns of every arm, with those reported since the roster."""
    with read_study(store, study) as reader:
        config = reader.next_config
        fresh = reader.reported_columns(reader.row.episode, reader.row.epoch + 1)
    return {arm.id: arm.columns | fresh.get(arm.id, {}) for arm in config.arms}


def report_words(
    before: Mapping[str, str | None],
    states: Mapping[str, str | None],
    listed: Collection[str],
    helped: Collection[str],
) -> str:
    """A summary of a report, to be confirmed before it is saved.

    before, states: states before and now, arm id -> label, None (or missing) if unknown
    """
    now = {arm: states.get(arm) for arm in before}
    unknown = sum(state is None for state in now.values())
    again = sum(state is not None and before[arm] is None for arm, state in now.items())
    same = sum(state is not None and before[arm] == state for arm, state in now.items())
    moved = len(now) - unknown - again - same
    others = len(set(helped) - set(listed))
    parts = [f"{moved} moved", f"{same} as before", f"{unknown} unknown"]
    parts += [f"{again} now known"] * bool(again)
    more = f" and {others} not on the list" if others else ""
    parts += [f"{len(set(helped) & set(listed))} of {len(listed)} helped{more}"]
    return ", ".join(parts)
