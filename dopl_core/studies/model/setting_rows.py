"""The settings of model/settings.py as rows: what a value must be, and when it may change."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta

from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.setting_about import About, World
from dopl_core.studies.model.settings import Settings

_SWITCH = dict.fromkeys(("on", "yes", "true", "1"), True)
_SWITCH |= dict.fromkeys(("off", "no", "false", "0"), False)


@dataclass(frozen=True)
class Setting:
    """One row of the table; default: MISSING where there is none.

    may_be_none: the learner has a default of its own, which is None, and typed as "default"
    """

    name: str
    about: About
    kind: type
    default: Any
    rule: Meta | None
    may_be_none: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is MISSING

    @property
    def offered(self) -> Any:
        """What the New study form and `dopl new` begin with; None where there is no default."""
        if self.about.offered is not None:
            return self.about.offered
        return None if self.is_required else self.default

    @property
    def needed(self) -> str:
        """What its value must be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.name.endswith("_columns") and self.rule:
            return f"names separated by commas, at most {self.rule.max_length} characters"
        if self.kind is bool:
            return "on or off"
        if self.kind is int and self.rule:
            or_default = ", or default" if self.may_be_none else ""
            return f"a whole number from {self.rule.ge} to {self.rule.le}{or_default}"
        if self.kind is float and self.rule:
            return f"a number above {self.rule.gt} and at most {self.rule.le}"
        return f"text of at most {self.rule.max_length} characters" if self.rule else "text"

    @cached_property
    def choices(self) -> Mapping[str, str]:
        """Each allowed value and what pages call it; empty where there are no fixed choices."""
        values = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        return self.about.choices or {value: value for value in values}

    def parse(self, content: str) -> Any:
        """The value that somebody typed; the rules are checked where it becomes a study's."""
        try:
            if self.may_be_none and content.strip().casefold() == "default":
                return None
            if self.kind is bool:
                return _SWITCH[content.strip().casefold()]
            return self.kind(content) if self.kind in (int, float) else content
        except (KeyError, ValueError):
            raise StudyError(f'{self.name} is "{content[:80]}": {self.needed} needed') from None


def _table() -> dict[str, Setting]:
    hints = get_type_hints(Settings, include_extras=True)
    rows = {}
    for field in fields(Settings):
        kind, *notes = get_args(hints[field.name])
        [about] = [note for note in notes if isinstance(note, About)]
        if may_be_none := NoneType in get_args(kind):
            kind, *more = get_args(get_args(kind)[0])
            notes += more
        rule = next((note for note in notes if isinstance(note, Meta)), None)
        rows[field.name] = Setting(field.name, about, kind, field.default, rule, may_be_none)
    return rows


SETTINGS = _table()
CHANGEABLE = [name for name, one in SETTINGS.items() if one.about.changes != "never"]
_THESE = f"these can be changed: {', '.join(CHANGEABLE)}"


def offered_in(world: World) -> list[Setting]:
    """The settings that a new study of a world is made with."""
    return [one for one in SETTINGS.values() if one.about.world in (None, world)]


def parse_setting(name: str, content: str) -> Any:
    """The value of a setting that somebody typed."""
    if name not in SETTINGS:
        raise StudyError(f'"{name[:80]}" is not a setting; {_THESE}')
    return SETTINGS[name].parse(content)


def check_changes(world: World, names: Mapping[str, Any]) -> None:
    """Refuse a change of settings that stay as they were when the study was made."""
    for name in names:
        if name not in CHANGEABLE:
            raise StudyError(f'"{name[:80]}" cannot be changed; {_THESE}')
        if world != "observed" and SETTINGS[name].about.changes.startswith("in observed worlds"):
            raise StudyError(f"the {name} of a simulated world is part of it and cannot be changed")
