"""Changes of a study's configuration: settings, arms that join and leave, past records.

A change is an event. It holds from the next plan on; before the first plan it holds at once.
States, seed and world never change.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from msgspec import Struct

from dopl_core.studies.model.config_json import read_arms
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import (
    ArmsJoined,
    ArmsLeft,
    HistoryAdded,
    ReportUndone,
    SettingsChanged,
)
from dopl_core.studies.model.past_records import ids_in
from dopl_core.studies.model.setting_rows import check_changes
from dopl_core.studies.model.study_config import Arm, StudyConfig, check_size


@dataclass
class Draft:
    """A configuration while changes are applied: its arms, and settings that differ."""

    arms: list[Arm]
    settings: dict[str, Any] = field(default_factory=dict)


def _change_settings(draft: Draft, body: SettingsChanged) -> None:
    check_changes("observed", body.settings)
    draft.settings |= body.settings


def _join(draft: Draft, body: ArmsJoined | ReportUndone) -> None:
    """Arms that come back keep their number; new ones come last."""
    new = {arm.id: arm for arm in read_arms(body.arms)}
    known = {arm.id for arm in draft.arms}
    draft.arms = [new.get(arm.id, arm) for arm in draft.arms]
    draft.arms += [arm for arm in new.values() if arm.id not in known]


def _leave(draft: Draft, body: ArmsLeft) -> None:
    gone = set(body.arms)
    if unknown := gone - {arm.id for arm in draft.arms}:
        raise StudyError(f'"{min(unknown)[:80]}" cannot leave: the roster has no such id')
    draft.arms = [replace(a, present=False) if a.id in gone else a for a in draft.arms]


def _add_history(draft: Draft, body: HistoryAdded) -> None:
    """Arms that only past records know are kept as absent: they teach how arms move."""
    known = {arm.id for arm in draft.arms}
    others = [arm for arm in ids_in(body.records) if arm not in known]
    draft.arms += [Arm(arm, arm, present=False) for arm in others]


# The kinds of events that change a configuration; event_kinds.py has all kinds.
CHANGES: dict[str, Callable[[Draft, Any], None]] = {
    "settings_changed": _change_settings,
    "arms_joined": _join,
    "arms_left": _leave,
    "history_added": _add_history,
    "report_undone": _join,  # newcomers are as they were before the report
}

Change = tuple[str, Struct]  # the kind of the event, and its body


def changed(config: StudyConfig, changes: Iterable[Change]) -> StudyConfig:
    """The configuration with changes applied, checked like that of a new study."""
    draft = Draft(list(config.arms))
    count = 0
    for kind, body in changes:
        CHANGES[kind](draft, body)
        count += 1
    if not count:
        return config
    new = replace(config, arms=tuple(draft.arms), **draft.settings)
    if new.n_arms > config.n_arms:
        check_size(new)
    return new


def joining(config: StudyConfig, arms: Sequence[Arm]) -> Change:
    """The change by which these arms join or come back."""
    _check_observed(config, "join")
    if not arms:
        raise StudyError("give at least one row of people who join")
    here = {arm.id for arm in config.arms if arm.present}
    for arm in arms:
        if arm.id in here:
            raise StudyError(f'"{arm.id}" is here already')
    return "arms_joined", ArmsJoined([asdict(replace(arm, present=True)) for arm in arms])


def leaving(config: StudyConfig, ids: Iterable[str]) -> Change:
    """The change by which these arms leave."""
    _check_observed(config, "leave")
    gone = list(dict.fromkeys(ids))
    if not gone:
        raise StudyError("give the id of at least one person who leaves")
    for arm in gone:
        if not config.arms[config.arm_number(arm)].present:
            raise StudyError(f'"{arm}" has left already')
    return "arms_left", ArmsLeft(gone)


def setting(config: StudyConfig, settings: dict[str, Any]) -> Change:
    """The change of some settings; those that stay the same may be left out."""
    check_changes(config.world, settings)
    new = {name: value for name, value in settings.items() if value != getattr(config, name)}
    if not new:
        raise StudyError("The settings already say this: nothing to change")
    return "settings_changed", SettingsChanged(new)


def _check_observed(config: StudyConfig, what: str) -> None:
    if config.world != "observed":
        raise StudyError(f"nobody can {what} a simulated world: its arms are part of it")
