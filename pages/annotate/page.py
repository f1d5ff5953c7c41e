"""Annotate: two cards, one question, one click."""

import json
from pathlib import Path

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Ask, Consent, Finished, StoreError, Waiting
from dopl_core.wording import _, in_this_language
from pages.annotate import board, side_views
from pages.annotate.board import Memory, Session
from pages.shared.backend import planner
from pages.shared.clicks import clicked
from pages.shared.duel_cards import open_duels, trial
from pages.shared.errors import show, show_errors, show_last_error
from pages.shared.guards import ALL_STUDIES, Seat, may, seat, store
from pages.shared.languages import choose_language, show_language_switch, use_english
from pages.shared.markdown import plain

KEYS = Path(__file__).parent / "keys.js"


def choose_study() -> None:
    """An owner, or an annotator who signed in, chooses a study."""
    if may(ALL_STUDIES, "owner"):
        use_english()
    st.title(_("Annotate"), anchor=False)
    found = studies.list_studies(store())
    running = [s for s in found if s.status == "running" and may(s.id, "owner", "annotator")]
    for study in running:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.text(study.title, width="stretch")
            if clicked(_("Answer"), key=f"open-{study.id}"):
                open_duels(study.id)
    if not may(ALL_STUDIES, "owner"):
        if not running:
            st.markdown(_("No study asks you for comparisons at the moment."))
        return
    st.markdown(
        "To invite colleagues, open a study on the *Studies* page and choose *Invite*."
        if running
        else "No study is running. Create one on the *Studies* page, or try it here."
    )
    if clicked("Try it with simulated patients", "try", type="secondary" if running else "primary"):
        with show_errors():
            open_duels(trial())


def open_session(here: Seat) -> Session:
    """The session of this person; its study's settings are kept while the database is down."""
    known = st.session_state.setdefault("configs", {})
    with show_errors(stop=True):
        try:
            known[here.study] = studies.get_study(here.store, here.study).config
        except StoreError:
            if here.study not in known:
                raise
    memory = st.session_state.setdefault(f"seat {here.study} {here.annotator}", Memory())
    return Session(here, here.study, here.annotator, known[here.study], memory)


def next_reply() -> Ask | Waiting | Finished | Consent:
    """What to show now; while a plan is made, the page waits two seconds for it."""
    who = (session.study, here.name, here.participant)
    reply = studies.next_duel(here.store, *who)
    if isinstance(reply, Waiting) and reply.reason == "plan":
        preparing = side_views.WAITS["plan"]
        with st.spinner(_(preparing)):
            planner().wait(session.study, seconds=2.0)
        reply = studies.next_duel(here.store, *who)
    return reply


here = seat()
if here is None:
    choose_study()
    st.stop()
session = open_session(here)
memory = session.memory
choose_language(session.config.language)
if side_views.show_arrival(session):
    show_language_switch()
    st.stop()


@st.fragment(run_every=memory.refresh)
@in_this_language
def draw_board() -> None:
    """What the person sees and does; drawn again after each click, and regularly while it waits.

    While the database is down the comparison stays on the page and can be clicked again.
    """
    down: StoreError | None = None
    still = memory.lesson is not None or memory.view in ("paused", "own", "declined", "withdraw")
    try:
        if not here.is_valid():
            st.rerun()  # the page's guard says that the link is revoked
        if not still:
            with show_errors(stop=True, but=StoreError):
                memory.reply = next_reply()
    except StoreError as error:
        down = error
    refresh = None
    if down:
        refresh = 1.0
    elif isinstance(memory.reply, Waiting) and not still:
        refresh = 1.0 if memory.reply.reason in ("others", "plan") else 5.0
    if refresh != memory.refresh:
        memory.refresh = refresh
        st.rerun()
    if show_last_error():
        memory.note = ""  # "Saved." was about the click before
    elif down:
        show(down)
    if down:
        st.caption(_("Click again, or wait. This page continues by itself."))
    with show_errors(but=StoreError if down else ()):
        draw(memory.reply)


def draw(reply: Ask | Waiting | Finished | Consent | None) -> None:
    """The one thing that is on the board."""
    if memory.view == "paused":
        side_views.show_paused(session)
    elif memory.view == "declined":
        side_views.show_declined(session)
    elif isinstance(reply, Consent):
        side_views.show_consent(session, reply)
    elif memory.view == "own":
        side_views.show_own(session)
    elif memory.view == "withdraw":
        side_views.show_withdraw(session)
    elif memory.lesson is not None:
        board.show_lesson(session)
    elif isinstance(reply, Ask) and memory.view == "flag":
        side_views.show_flag(session, reply)
    elif isinstance(reply, Ask) and board.is_round_end(session, reply):
        side_views.show_round_end(session)
    elif isinstance(reply, Ask):
        board.show_duel(session, reply)
    elif reply is not None:
        side_views.show_rest(session, reply)


with st.container(horizontal=True, vertical_alignment="center", key="question"):
    question = session.config.own_words(session.config.question)
    st.header(plain(question), anchor=False, width="stretch")
    with st.popover(_("How to judge"), type="tertiary"):
        side_views.show_how_to_judge(session.config)
draw_board()
board.show_more(session)
show_language_switch()
labels = json.dumps({"left": _("Left card"), "right": _("Right card")})
script = f"window.doplCards = {labels}; {KEYS.read_text()}"
st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)
