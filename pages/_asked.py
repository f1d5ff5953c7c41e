"""What annotators see and are told: fields of the form that makes a study, and of its settings."""

from typing import Any

import streamlit as st

from dopl_core.studies.service import StudyConfig

_NEW = {"hide_description": False, "show_id": False, "quota": 0, "completion_code": ""}
_NEW |= {"tell_results": False, "hide_state": False}


def why(key: str, now: str = "") -> str:
    """The owner's own words."""
    return st.text_area(
        "Why you ask, and what happens with the answers (annotators read it first)",
        now,
        key=f"why {key}",
        height=80,
        max_chars=2_000,
    )


def on_cards(key: str, config: StudyConfig | None = None, hide: bool = False) -> dict[str, Any]:
    """What cards show, what is asked of each person, and what they are told at the end.

    config: with the values that are set now;  hide: whether a new study hides states
    """
    now = _NEW | {"hide_state": hide}
    if config is not None:
        now = {name: getattr(config, name) for name in _NEW}
    left, right = st.columns(2)
    return {
        "hide_state": left.checkbox(
            "Cards do not show the state",
            now["hide_state"],
            key=f"hide {key}",
            help="People then judge what else is known, and not the label. The state is not sent "
            "to their browsers.",
        ),
        "hide_description": right.checkbox(
            "Cards do not show what the state means",
            now["hide_description"],
            key=f"hide words {key}",
        ),
        "show_id": left.checkbox("Cards show the id", now["show_id"], key=f"ids {key}"),
        "tell_results": right.checkbox(
            "Tell annotators what each round has changed",
            now["tell_results"],
            key=f"tell {key}",
            help="How many decisions, and who is on the list now.",
        ),
        "quota": left.number_input(
            "Answers asked of each person at most (0: no limit)",
            *(0, 10**6, now["quota"]),
            key=f"quota {key}",
        ),
        "completion_code": right.text_input(
            "Completion code, for a paid panel",
            now["completion_code"],
            key=f"code {key}",
            max_chars=200,
            help="Shown at the end. Each id that the panel adds to your link as participant or "
            "PROLIFIC_PID is then a person of their own, and is kept with their answers.",
        ),
    }
