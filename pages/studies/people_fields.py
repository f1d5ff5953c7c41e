"""Fields about a person: their name and their state."""

import streamlit as st

from dopl_core.studies import StudyConfig
from pages.shared.markdown import plain

UNKNOWN = -1  # the option "Unknown" beside the numbers of states


def state_control(config: StudyConfig, label: str, state: str | None, key: str) -> str | None:
    """Buttons for each state, and one for unknown."""
    labels = [one.label for one in config.states]
    options = [*range(len(labels)), UNKNOWN]
    chosen = st.segmented_control(
        label,
        options,
        default=UNKNOWN if state is None else labels.index(state),
        format_func=lambda number: "Unknown" if number == UNKNOWN else plain(labels[number]),
        required=True,
        key=key,
    )
    return None if chosen == UNKNOWN else labels[chosen]


def name_and_id(label: str, arm: str) -> str:
    """A name, with the id unless both are the same."""
    return label if label == arm else f"{label} ({arm})"
