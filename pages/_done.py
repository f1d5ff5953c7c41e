"""What was done at the last click, said once on the page that comes after it."""

import streamlit as st

from pages._words import plain


def say_done(words: str) -> None:
    """Keep what was done, for the next run of a page to say."""
    st.session_state.done = words


def show_done() -> None:
    """Say it, once, in a place that is always there: what comes below keeps what was opened."""
    with st.container():
        if words := st.session_state.pop("done", ""):
            st.success(plain(words), icon=":material/check_circle:")
