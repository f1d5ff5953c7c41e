"""Fields about a person: their name and their state."""

from collections.abc import Iterable

import streamlit as st

from dopl_core.studies import StudyConfig
from pages.shared.markdown import plain

UNKNOWN = -1  # the option "Unknown" beside the numbers of states
MOST = 40  # names in a part of a summary


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


def show_some(what: str, things: Iterable[str], between: str = ", ") -> None:
    """A part of a summary, if there is any: how many, and the first of them.

    between: a line break where each of them is a short sentence
    """
    found = list(things)
    if found:
        more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
        begin = "\n" if between == "\n" else " "
        st.text(f"{what} ({len(found)}):{begin}{between.join(found[:MOST] + more)}")
