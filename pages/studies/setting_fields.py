"""Fields of the New study form and the Settings tab, made from the table of settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Setting

_WIDE = 2_000  # characters from which a text takes the whole width
_WIDE_CHOICE = 30  # and characters of a choice, which half of the width would cut off


def ask(
    section: str,
    settings: Sequence[Setting],
    now: Mapping[str, Any],
    key: str,
    columns: Sequence[str] = (),
) -> dict[str, Any]:
    """One field for each setting of a section; the values by name.

    now: the values that the fields begin with;  columns: those of the roster, to choose from
    Numbers have no limits here: a browser would show a number outside of them in red, keep it to
    itself, and the study would be made with the number before. The study's own rules refuse it.
    """
    chosen: dict[str, Any] = {}
    places: list[Any] = []
    for setting in settings:
        if setting.about.section != section:
            continue
        if _is_wide(setting):
            places, place = [], st
            if setting.name.endswith("_columns"):
                chosen[setting.name] = _columns(setting, now[setting.name], key, columns)
                continue
        else:
            places = places or list(st.columns(2))
            place = places.pop(0)
        name = setting.name
        if name.endswith("_column"):
            chosen[name] = _column(place, setting, now[name], f"{name} {key}", columns)
        else:
            chosen[name] = _field(place, setting, now[name], f"{name} {key}")
    return chosen


def _is_wide(setting: Setting) -> bool:
    if setting.choices:
        return max(map(len, setting.choices.values())) > _WIDE_CHOICE
    return setting.kind is str and bool(setting.rule) and setting.rule.max_length >= _WIDE


def _field(place: Any, setting: Setting, now: Any, key: str) -> Any:
    about, rule = setting.about, setting.rule
    common = {"key": key, "help": about.help}
    if setting.kind is bool:
        return place.checkbox(about.label, now, **common)
    if setting.choices:
        values = list(setting.choices)
        return place.selectbox(
            about.label, values, values.index(now), format_func=setting.choices.get, **common
        )
    if setting.kind is str:
        field = place.text_area if about.lines > 1 else place.text_input
        return field(about.label, now, max_chars=rule.max_length, **common)
    if setting.may_be_none:
        return _number_or_default(place, setting, now, key)
    return place.number_input(about.label, value=now, step=setting.kind(1), **common)


def _number_or_default(place: Any, setting: Setting, now: int | None, key: str) -> Any:
    """A number, or nothing for the default: a field for numbers that has one cannot be emptied."""
    typed = place.text_input(
        setting.about.label,
        "" if now is None else str(now),
        key=key,
        help=setting.about.help,
        placeholder="by default",
    )
    try:
        return setting.parse(typed.strip() or "default")
    except studies.StudyError:
        return typed  # the study's own rules refuse it


def _column(place: Any, setting: Setting, now: str, key: str, columns: Sequence[str]) -> str:
    """One column to choose, the group, or none."""
    options = list(dict.fromkeys(["", "group", *columns, now]))
    about = setting.about
    chosen: str = place.selectbox(
        about.label,
        options,
        options.index(now),
        format_func=lambda name: name or "(none)",
        key=key,
        help=about.help,
    )
    return chosen


def _columns(setting: Setting, now: str, key: str, columns: Sequence[str]) -> str:
    """Columns to choose from; the setting has their names, separated by commas."""
    chosen = [name.strip() for name in now.split(",") if name.strip()]
    options = list(dict.fromkeys([*chosen, *(name for name in columns if "," not in name)]))
    about = setting.about
    key = f"{setting.name} {key}"
    picked = st.multiselect(
        about.label, options, chosen, key=key, help=about.help, select_all=False
    )
    return now if picked == chosen else ", ".join(picked)


def first_values(**own: Any) -> dict[str, Any]:
    """The values that the fields of a new study begin with: the table's, then its own."""
    return {name: setting.offered for name, setting in studies.SETTINGS.items()} | own
