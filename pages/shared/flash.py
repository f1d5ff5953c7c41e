"""A message about the last click, shown once on the page that follows, where the button was."""

import streamlit as st

from pages.shared.markdown import plain

TOP = "top"  # the place of messages without a place of their own


def flash(words: str, place: str = TOP) -> None:
    """Keep a message for the next run of a page; place: where `show_flash` shows it."""
    st.session_state.flash = (place, words)


def show_flash(place: str = TOP) -> None:
    """Show the message for this place once.

    The container is always there: expanders below it stay open when the message comes and goes.
    """
    with st.container():
        where, words = st.session_state.get("flash") or ("", "")
        if where == place:
            del st.session_state.flash
            st.success(plain(words), icon=":material/check_circle:")
