"""Settings of a study of real people: what may change, from the next list on."""

from typing import Any

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import store
from pages.shared.help_link import help_link
from pages.shared.markdown import plain
from pages.studies import setting_fields
from pages.studies.common_tabs import status_buttons


def show(study: Study) -> None:
    """A field for each setting, with the values that hold from the next list on."""
    config = studies.coming_config(store(), study.id)
    now = {name: getattr(config, name) for name in studies.SETTINGS}
    st.markdown(
        "**Changes hold from the next list on.** A new consent text, who judges whom, and columns "
        "that cards do not show, hold at once. States and their order cannot change."
    )
    help_link("owner", "What the settings mean")
    if rules := studies.trial_rules(store(), study.id):
        st.warning(plain(rules))
    settings = [one for one in studies.offered_in("observed") if one.about.changes != "never"]
    columns = list(dict.fromkeys(column for arm in config.arms for column in arm.columns))
    chosen: dict[str, Any] = {}
    for section, title in studies.SECTIONS.items():
        st.markdown(f"**{title}**")
        chosen |= setting_fields.ask(section, settings, now, "set", columns)
    new = {name: value for name, value in chosen.items() if value != now[name]}
    show_flash("settings")
    if clicked("Save the settings", key="save", disabled=not new):
        with show_errors():
            studies.change_settings(store(), study.id, **new)
            flash("Saved.", "settings")
            st.rerun()
    st.divider()
    with st.container(horizontal=True):
        status_buttons(study)
