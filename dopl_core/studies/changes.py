"""What can change in a study that lives: its words and numbers, and who takes part.

A change is an event; the configuration in force is the first one with the changes applied that the
last plan was made with. States, seed and world never change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from dopl_core.environments import brief
from dopl_core.studies.config import Arm, StudyConfig, check_size
from dopl_core.studies.config_json import read_arms
from dopl_core.studies.records import ids_in
from dopl_core.studies.store import StudyError

WORDS = (
    *("title", "question", "instructions", "noun", "epoch_word"),
    *("why", "completion_code"),
)
NUMBERS = (
    *("budget", "by_lot", "answers", "ratings", "repeat_every", "gold_every"),
    *("lease_seconds", "quota"),
)
SWITCHES = (
    *("ties_allowed", "practice", "photos_from_web", "weigh_people"),
    *("hide_state", "hide_description", "show_id", "tell_results"),
)
SETTINGS = (*WORDS, *NUMBERS, *SWITCHES)

Change = tuple[str, dict[str, Any]]  # kind of event (vocabulary.CHANGES), and its body


def changed(config: StudyConfig, changes: Iterable[Change]) -> StudyConfig:
    """The configuration with changes applied, each checked as a new study's would be."""
    changes = list(changes)
    if not changes:
        return config
    arms = list(config.arms)
    settings: dict[str, Any] = {}
    for kind, body in changes:
        if kind == "settings_changed":
            settings |= _settings(body.get("settings"))
        elif kind == "arms_joined":
            arms = _joined(arms, read_arms(body.get("arms")))
        elif kind == "arms_left":
            arms = _without(arms, body.get("arms"))
        elif kind == "history_added":
            known = {arm.id for arm in arms}
            others = [arm for arm in ids_in(body.get("records")) if arm not in known]
            arms += [Arm(arm, arm, present=False) for arm in others]
    new = replace(config, arms=tuple(arms), **settings)
    if new.n_arms > config.n_arms:
        check_size(new)
    return new


def _settings(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise StudyError(f"settings are {brief(content)}: an object needed")
    for name in content:
        if name not in SETTINGS:
            raise StudyError(f'"{name[:80]}" cannot be changed; these can: {", ".join(SETTINGS)}')
    return content


def _without(arms: Sequence[Arm], content: Any) -> list[Arm]:
    known = {arm.id for arm in arms}
    for arm in content if isinstance(content, list) else [content]:
        if not isinstance(arm, str) or arm not in known:
            raise StudyError(f"{brief(arm)} cannot leave: it is no arm's id")
    gone = set(content)
    return [replace(arm, present=False) if arm.id in gone else arm for arm in arms]


def _joined(arms: Sequence[Arm], new: Sequence[Arm]) -> list[Arm]:
    """Those who come back keep their number; the others come last."""
    coming = {arm.id: arm for arm in new}
    known = {arm.id for arm in arms}
    back = [coming.get(arm.id, arm) for arm in arms]
    return back + [arm for arm in new if arm.id not in known]


def joining(config: StudyConfig, arms: Sequence[Arm]) -> Change:
    """The change by which these arms join, or come back."""
    if config.world != "observed":
        raise StudyError("a simulated world has the arms it was made with: nobody can join it")
    if not arms:
        raise StudyError("nobody is named: give those who join")
    here = {arm.id for arm in config.arms if arm.present}
    for arm in arms:
        if arm.id in here:
            raise StudyError(f'"{arm.id}" is here already')
    return "arms_joined", {"arms": [asdict(replace(arm, present=True)) for arm in arms]}


def leaving(config: StudyConfig, ids: Iterable[str]) -> Change:
    """The change by which these arms leave."""
    if config.world != "observed":
        raise StudyError("a simulated world has the arms it was made with: nobody can leave it")
    gone = list(dict.fromkeys(ids))
    if not gone:
        raise StudyError("nobody is named: give those who leave")
    for arm in gone:
        if not config.arms[config.arm_number(arm)].present:
            raise StudyError(f'"{arm}" has left already')
    return "arms_left", {"arms": gone}


def setting(config: StudyConfig, settings: dict[str, Any]) -> Change:
    """The change of some settings; what stays as it is need not be named."""
    _settings(settings)
    if config.world != "observed" and "budget" in settings:
        raise StudyError("the budget of a simulated world is part of it and cannot be changed")
    new = {name: value for name, value in settings.items() if value != getattr(config, name)}
    if not new:
        raise StudyError("nothing would change")
    return "settings_changed", {"settings": new}
