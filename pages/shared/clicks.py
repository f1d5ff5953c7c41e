"""Buttons whose click is kept until the page has acted on it.

`if st.button(...)` loses clicks. Streamlit starts the run for a click while an earlier run may
still be ending: after an upload, or of a part that refreshes itself. Every run of a visit resets
the clicks of that visit when it ends, so the earlier one resets a click that it never saw. A
callback runs before that can happen.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st


def clicked(
    label: str, key: str, button: Callable[..., object] = st.button, **options: Any
) -> bool:
    """Draw a button; whether it was clicked.

    button: `st.button`, `st.form_submit_button`, or that of a container
    """
    button(label, key=key, on_click=_keep, args=(key,), **options)
    if st.session_state.get("clicked") != key:
        return False
    forget_click()
    return True


def forget_click() -> None:
    """Forget a click at the end of a run: no later page may act on it."""
    st.session_state.pop("clicked", None)


def _keep(key: str) -> None:
    st.session_state.clicked = key
