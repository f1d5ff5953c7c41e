"""Who is here: the owner, or an annotator with a link. Every page begins with one of the guards.

What was true when a page was opened may not be so any more: an invite is revoked, a key replaced.
So every click and every look asks again, by what this visit came in with and not by what its
address says meanwhile.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from dopl_core.studies import access, service
from pages._backend import store
from pages._door import is_at_home, session_in

Check = Callable[[], bool]

_DEAD_LINK = "This link opens nothing any more. Ask whoever sent it for a new one."


@dataclass(frozen=True)
class Seat:
    """A person's place at the duels of a study.

    is_valid: whether what they came in by still opens it
    invited: they came by a link of their own;  participant: the id that a panel put into it
    """

    study: str
    name: str
    is_valid: Check
    invited: bool = False
    participant: str = ""


def owner_only() -> None:
    """A page's guard: only the owner goes on."""
    run_the_navigation_first()
    if not is_owner():
        turn_away(
            "Annotators come in by the link they were sent. The owner's link was printed where "
            "the app was started; `dopl key` makes a new one."
        )


def owner_still() -> None:
    """A fragment's guard: it is run without its page, whose guard turns away who lost the key."""
    try:
        if is_owner():
            return
    except service.StoreError:
        pass  # the page says so
    st.rerun()


def seat() -> Seat | None:
    """A page's guard: whose duels of which study are answered, or None: the owner is to choose.

    Both are read from the link, so that a reload or another device shows the same duel.
    """
    run_the_navigation_first()
    token = st.query_params.get("invite")
    if token is None:
        owner_only()
        study = st.query_params.get("study")
        return Seat(study, access.OWNER, owners_check()) if study else None
    seats = st.session_state.setdefault("seats", {})
    try:
        invite = access.who(store(), token)
    except service.StoreError:
        if token in seats:  # the duel stays on the page; a click asks again
            return seats[token]
        raise
    if invite is None:
        seats.pop(token, None)
        turn_away(_DEAD_LINK)
    valid = lambda: access.who(store(), token) is not None  # noqa: E731
    found = Seat(invite.study, invite.annotator, valid, True, participant())
    seats[token] = found
    return found


def participant() -> str:
    """The id by which a panel knows this person, if the link has one that can be one."""
    for name in ("participant", "PROLIFIC_PID"):
        if found := re.fullmatch(r"[\w.@:-]{1,100}", st.query_params.get(name, "")):
            return found[0]
    return ""


def reader_only() -> access.Invite:
    """A page's guard: whose link to the list it is; without a valid one nobody goes on."""
    run_the_navigation_first()
    token = st.query_params.get("read")
    reader = access.who(store(), token, "list") if token else None
    if reader is None:
        turn_away(_DEAD_LINK)
    return reader


def is_owner() -> bool:
    """Everybody on this computer is; from elsewhere, whoever has come in by the owner's key."""
    return owners_check()()


def owners_check() -> Check:
    """Whether this visit is the owner's, to be asked at any time, outside of the page too."""
    headers, peer = _handshake()
    if is_at_home(headers, peer):
        return lambda: True
    token = session_in(headers)
    return lambda: bool(token) and access.has_session(store(), token)


def _handshake() -> tuple[Mapping[str, str], str | None]:
    """What the browser sent when this visit began, and its address (None on this computer)."""
    return st.context.headers, st.context.ip_address


def turn_away(words: str) -> NoReturn:
    st.title("You need a link", anchor=False)
    st.markdown(words)
    st.stop()


def run_the_navigation_first() -> None:
    """Go to streamlit_app.py if it has not been run yet.

    On a fresh server Streamlit runs pages/name.py by itself when /name is the first request, for
    the sake of apps without st.navigation; this is what st.navigation does to end that.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
