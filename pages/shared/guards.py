"""Guards: who visits, and which pages they may see. Every page calls one of them first.

A link may be revoked, a role taken away or a key replaced while a page is open. So every click and
every refresh checks again, with the link or cookie that this visit began with, not with the present
address. Guards also say for whom `store()` acts, so that the gate in dopl_core.studies.access
refuses whatever a page offers by mistake; where no guard was asked, it acts for nobody.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn

import streamlit as st

from dopl_core import studies
from dopl_core.studies import ALL_STUDIES, NOBODY, Actor, Role, Store, access
from dopl_core.wording import _, gettext_noop
from pages.shared import backend
from pages.shared.account import door_title, offer_sign_in
from pages.shared.browser_cookie import IDS, browser_token
from pages.shared.languages import choose_language, use_english
from pages.shared.visitors import has_role, request_actor

Check = Callable[[], bool]

_acting: ContextVar[Actor] = ContextVar("acting", default=NOBODY)  # of this thread's visit

_DEAD_LINK = gettext_noop("This link is no longer valid. Ask the person who sent it for a new one.")
_FROM_PANEL = gettext_noop(
    "Open the study from the page of your panel, which adds your participant id to the link. "
    "If you are a colleague, ask the person who sent the link."
)
_TAKEN = gettext_noop(
    "Somebody has used this participant id in another browser. If it was you, continue in that "
    "browser. If not, tell the person who sent the link: they can release the id."
)
_WITHDRAWN = gettext_noop(
    "Your name and your comments are erased, and your link has ended. Thank you."
)
_NO_COOKIE = gettext_noop("Allow cookies for this site, then open your link again.")


@dataclass(frozen=True)
class Seat:
    """An annotator's access to a study.

    store: the database, for them;  is_valid: whether what they came in by still opens the study
    invited: they are not the owner;  participant: the id that a panel put into their link
    """

    study: str
    name: str
    store: Store
    is_valid: Check
    invited: bool = False
    participant: str = ""

    @property
    def annotator(self) -> str:
        """The name under which they answer."""
        return (
            studies.participant_name(self.name, self.participant) if self.participant else self.name
        )


# --- who visits


def store() -> Store:
    """The database of all studies, for whom the last guard let in."""
    return backend.store().acting_as(_acting.get())


def visitor() -> Actor:
    """Who visits now; `store` acts for them from here on."""
    actor = visitors_check()()
    _acting.set(actor)
    return actor


def visitors_check() -> Callable[[], Actor]:
    """A check who visits now; it also works outside of a page's run."""
    headers, peer = _handshake()
    return lambda: request_actor(headers, peer)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Let `store` act for somebody, outside of a page's run."""
    before = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(before)


def is_member() -> bool:
    """Whether the visitor has a role; a callback's guard."""
    return bool(visitor().roles)


def is_owner() -> bool:
    """Whether the visitor is an owner of all studies; `store` still acts for whom it did."""
    return "owner" in visitors_check()().roles_in(ALL_STUDIES)


def may(study: str, *roles: Role) -> bool:
    """Whether whom the guard let in has one of these roles in a study, or in ALL_STUDIES."""
    return not _acting.get().roles_in(study).isdisjoint(roles)


# --- guards


def owner_only() -> None:
    """A page's guard: only owners of all studies pass."""
    choose_language()
    if "owner" not in visitor().roles_in(ALL_STUDIES):
        turn_away_unknown()
    use_english()


def only(*roles: Role) -> None:
    """A page's guard: people with one of these roles in any study pass.

    The page is English for those who run a study, as their other pages are.
    """
    choose_language()
    _let_in(*roles)
    if has_role(_acting.get(), "owner", "coordinator"):
        use_english()


def _let_in(*roles: Role) -> None:
    if not has_role(visitor(), *roles):
        turn_away_unknown()


def team_fragment(study: str) -> None:
    """The guard of a fragment for those who run a study."""
    guard_fragment(lambda: is_member() and may(study, "owner", "coordinator"))


def guard_fragment(allowed: Check) -> None:
    """A fragment's guard: without access, the whole page runs, and its guard turns them away."""
    try:
        if allowed():
            return
    except studies.StoreError:
        pass  # the page shows the error
    st.rerun()


def turn_away_unknown() -> NoReturn:
    """Turn away a visitor without the key, or without the role for this page."""
    if _acting.get().roles:
        access.refuse_page(store(), st.query_params.get("study", ALL_STUDIES)[:200])
        words = _("Your role does not open this page. Ask the owner.")
        turn_away(words, _("This page is closed to you"))
    turn_away(
        _(
            "Annotators: open the link that you were sent. Owners: the link was printed when "
            "the app started. `dopl key` prints a new one."
        )
    )


def seat() -> Seat | None:
    """A page's guard: who answers in which study; None if they have yet to choose a study.

    Both come from the link, so a reload or another device shows the same comparison. Participants
    of a panel share a link; an id belongs to the browser that first used it.
    """
    choose_language()
    token, given = st.query_params.get("invite"), participant()
    if token is None:
        _let_in("owner", "annotator")
        study = st.query_params.get("study")
        return _members_seat(study) if study else None
    if st.session_state.get("withdrawn"):
        turn_away(_(_WITHDRAWN), _("You have withdrawn"))
    seats = st.session_state.setdefault("seats", {})
    try:
        invite = access.find_invite(backend.store(), token)
    except studies.StoreError:
        if (token, given) in seats:  # the comparison stays on the page; a click checks again
            return seats[token, given]
        raise
    if invite is None:
        seats.pop((token, given), None)
        access.refuse_link(backend.store(), token, "duels")
        turn_away(_(_DEAD_LINK))
    browser = browser_token(_handshake()[0])
    _check_participant(invite, given, browser)
    valid = lambda: access.find_invite(backend.store(), token) is not None  # noqa: E731
    if given is not None:
        valid = lambda: (  # noqa: E731
            access.find_invite(backend.store(), token) is not None
            and access.has_seat(backend.store(), invite, given, browser)
        )
    name = studies.participant_name(invite.annotator, given) if given else invite.annotator
    _acting.set(Actor(name, "link", {invite.study: frozenset(["annotator"])}))
    found = Seat(invite.study, invite.annotator, store(), valid, True, given or "")
    seats[token, given] = found
    return found


def _members_seat(study: str) -> Seat:
    """The seat of an owner, or of an annotator who signed in, in a study."""
    check = visitors_check()
    roles = {"owner", "annotator"}
    valid = lambda: not check().roles_in(study).isdisjoint(roles)  # noqa: E731
    return Seat(study, _acting.get().name, store(), valid, invited=not may(study, "owner"))


def participant() -> str | None:
    """The id that a panel put into the link, as it is there; None if there is none."""
    name = next((name for name in IDS if name in st.query_params), None)
    return None if name is None else st.query_params[name]


def _check_participant(invite: access.Invite, given: str | None, browser: str) -> None:
    """Turn away visitors whose id is missing, cannot be used, or belongs to another browser."""
    try:
        if given is None:
            access.check_without_id(backend.store(), invite)
        elif not access.take_seat(backend.store(), invite, given, browser):
            turn_away(_(_TAKEN), _("This id is in use"))
    except studies.StudyError as error:
        if given is not None and not browser:
            turn_away(_(_NO_COOKIE), _("We cannot recognise your browser"))
        turn_away(f"{error}. {_(_FROM_PANEL)}", _("Your link is not complete"))


def reader_only() -> str | None:
    """A page's guard: the study whose list the link, or the chosen study of a reader, opens.

    None if somebody who signed in has yet to choose a study.
    """
    token = st.query_params.get("read")
    if token is None:
        _let_in("owner", "coordinator", "reader")
        return st.query_params.get("study")
    reader = access.find_invite(backend.store(), token, "list")
    if reader is None:
        access.refuse_link(backend.store(), token, "list")
        turn_away(_(_DEAD_LINK))
    _acting.set(Actor(reader.annotator, "link", {reader.study: frozenset(["reader"])}))
    return reader.study


def _handshake() -> tuple[Mapping[str, str], str | None]:
    """The headers that the browser sent first, and its address (None on this computer)."""
    return st.context.headers, st.context.ip_address


def turn_away(words: str, title: str = "") -> NoReturn:
    st.title(title or door_title(), anchor=False)
    st.markdown(words)
    if not title:
        offer_sign_in()
    st.stop()
