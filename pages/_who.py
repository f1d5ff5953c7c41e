"""Who is here: the owner, or an annotator with a link. Every page begins with one of the guards."""

from typing import NoReturn

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from dopl_core.studies import access
from pages._backend import store

LOCAL = ("localhost", "127.0.0.1", "::1")
OWNER = "Owner"  # the name under which the owner's own answers are kept


def owner_only() -> None:
    """A page's guard: only the owner goes on."""
    _run_the_entrance_first()
    if not is_owner():
        _turn_away(
            "Annotators come in by the link they were sent. The owner's link was printed where "
            "the app was started; `dopl key` makes a new one."
        )


def seat() -> tuple[str, str] | None:
    """A page's guard: the study to answer and the person's name, or None: the owner is to choose.

    Both are read from the link, so that a reload or another device shows the same duel.
    """
    _run_the_entrance_first()
    token = st.query_params.get("invite")
    if token is None:
        owner_only()
        study = st.query_params.get("study")
        return (study, OWNER) if study else None
    invite = access.who(store(), token)
    if invite is None:
        _turn_away("This link opens nothing any more. Ask whoever sent it for a new one.")
    return invite.study, invite.annotator


def still_invited() -> bool:
    """Whether the link that opened this page has not been revoked since."""
    token = st.query_params.get("invite")
    return token is None or access.who(store(), token) is not None


def is_owner() -> bool:
    """Everybody on this computer is; from elsewhere, whoever has shown the owner's key."""
    headers = st.context.headers
    if st.get_option("server.address") in LOCAL and "X-Forwarded-For" not in headers:
        return True
    if "owner" not in st.session_state:
        given = st.query_params.get("key")
        key = given or st.context.cookies.get("dopl_owner", "")
        st.session_state.owner = bool(key) and access.is_owner(store(), key)
        if given and st.session_state.owner:
            st.session_state.cookie = key
    if key := st.session_state.pop("cookie", None):
        _keep_in_a_cookie(key)
    return bool(st.session_state.owner)


def _keep_in_a_cookie(key: str) -> None:
    """Take the key out of the address, and keep it where a reload, a new session, finds it."""
    del st.query_params["key"]
    cookie = f"dopl_owner={key}; path=/; max-age=31536000; SameSite=Strict"
    secure = "(location.protocol === 'https:' ? '; Secure' : '')"
    script = f"<script>document.cookie = '{cookie}' + {secure}</script>"
    st.html(script, unsafe_allow_javascript=True)


def _turn_away(words: str) -> NoReturn:
    st.title("You need a link", anchor=False)
    st.markdown(words)
    st.stop()


def _run_the_entrance_first() -> None:
    """Go to streamlit_app.py if it has not been run yet.

    On a fresh server Streamlit runs pages/name.py by itself when /name is the first request, for
    the sake of apps without st.navigation; this is what st.navigation does to end that.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
