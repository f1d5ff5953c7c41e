"""Guards: who may see a page. Every page calls one of them on its first line.

A link may be revoked or a key replaced while a page is open. So every click and every refresh
checks again, with the link or cookie that this visit began with, not with the present address.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

import streamlit as st

from dopl_core import studies
from dopl_core.studies import access
from pages.shared.backend import store
from pages.shared.browser_cookie import IDS, browser_token
from pages.shared.visitors import has_owners_session, is_local_visit

Check = Callable[[], bool]

_DEAD_LINK = "This link is no longer valid. Ask the person who sent it for a new one."
_FROM_PANEL = (
    "Open the study from the page of your panel, which adds your participant id to the link. "
    "If you are a colleague, ask the person who sent the link."
)
_TAKEN = (
    "Somebody has used this participant id in another browser. If it was you, continue in that "
    "browser. If not, tell the person who sent the link: they can release the id."
)
_NO_COOKIE = "Allow cookies for this site, then open your link again."


@dataclass(frozen=True)
class Seat:
    """An annotator's access to a study.

    is_valid: whether the link or key they came in by still opens it
    invited: they came by a link;  participant: the id that a panel put into it
    """

    study: str
    name: str
    is_valid: Check
    invited: bool = False
    participant: str = ""

    @property
    def annotator(self) -> str:
        """The name under which they answer."""
        return (
            studies.participant_name(self.name, self.participant) if self.participant else self.name
        )


def owner_only() -> None:
    """A page's guard: only the owner passes."""
    if not is_owner():
        turn_away(
            "Annotators: open the link that you were sent. Owners: the link was printed when the "
            "app started. `dopl key` prints a new one."
        )


def owner_only_fragment() -> None:
    """A fragment's guard: without access, the whole page runs, and its guard turns them away."""
    try:
        if is_owner():
            return
    except studies.StoreError:
        pass  # the page shows the error
    st.rerun()


def seat() -> Seat | None:
    """A page's guard: who answers in which study; None if the owner has yet to choose a study.

    Both come from the link, so a reload or another device shows the same comparison. Participants
    of a panel share a link; an id belongs to the browser that first used it.
    """
    token, given = st.query_params.get("invite"), participant()
    if token is None:
        owner_only()
        study = st.query_params.get("study")
        return Seat(study, access.OWNER, owners_check()) if study else None
    seats = st.session_state.setdefault("seats", {})
    try:
        invite = access.find_invite(store(), token)
    except studies.StoreError:
        if (token, given) in seats:  # the comparison stays on the page; a click checks again
            return seats[token, given]
        raise
    if invite is None:
        seats.pop((token, given), None)
        turn_away(_DEAD_LINK)
    browser = browser_token(_handshake()[0])
    _check_participant(invite, given, browser)
    valid = lambda: access.find_invite(store(), token) is not None  # noqa: E731
    if given is not None:
        valid = lambda: (  # noqa: E731
            access.find_invite(store(), token) is not None
            and access.has_seat(store(), invite, given, browser)
        )
    found = Seat(invite.study, invite.annotator, valid, True, given or "")
    seats[token, given] = found
    return found


def participant() -> str | None:
    """The id that a panel put into the link, as it is there; None if there is none."""
    name = next((name for name in IDS if name in st.query_params), None)
    return None if name is None else st.query_params[name]


def _check_participant(invite: access.Invite, given: str | None, browser: str) -> None:
    """Turn away visitors whose id is missing, cannot be used, or belongs to another browser."""
    try:
        if given is None:
            access.check_without_id(store(), invite)
        elif not access.take_seat(store(), invite, given, browser):
            turn_away(_TAKEN, "This id is in use")
    except studies.StudyError as error:
        if given is not None and not browser:
            turn_away(_NO_COOKIE, "We cannot recognise your browser")
        why = str(error)
        turn_away(f"{why[0].upper()}{why[1:]}. {_FROM_PANEL}", "Your link is not complete")


def reader_only() -> access.Invite:
    """A page's guard: the reader whose link to a list this is; only valid links pass."""
    token = st.query_params.get("read")
    reader = access.find_invite(store(), token, "list") if token else None
    if reader is None:
        turn_away(_DEAD_LINK)
    return reader


def is_owner() -> bool:
    """True for everybody on this computer; from elsewhere, for visitors with the owner's key."""
    return owners_check()()


def owners_check() -> Check:
    """A check whether this visit is the owner's; it also works outside of a page's run."""
    headers, peer = _handshake()
    if is_local_visit(headers, peer):
        return lambda: True
    return lambda: has_owners_session(headers)


def _handshake() -> tuple[Mapping[str, str], str | None]:
    """The headers that the browser sent first, and its address (None on this computer)."""
    return st.context.headers, st.context.ip_address


def turn_away(words: str, title: str = "You need a link") -> NoReturn:
    st.title(title, anchor=False)
    st.markdown(words)
    st.stop()
