"""Annotate: two cards, one question, one click."""

from pathlib import Path

import streamlit as st

from dopl_core.studies import service
from dopl_core.studies.service import Ask, Finished, StoreError, Waiting
from pages import _beside, _sitting
from pages._backend import planner, store
from pages._duels import open_duels, trial
from pages._sitting import Sitting
from pages._trouble import said_plainly, show, show_trouble
from pages._who import Seat, seat
from pages._words import plain

KEYS = Path(__file__).parent / "keys.js"


def choose_study() -> None:
    """The owner without a study chooses one."""
    st.title("Annotate", anchor=False)
    running = [s for s in service.list_studies(store()) if s.status == "running"]
    for study in running:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.text(study.title, width="stretch")
            if st.button("Answer duels", key=f"open-{study.id}"):
                open_duels(study.id)
    st.markdown("Invite others on the Studies page." if running else "No study is running.")
    if st.button("Try it with simulated patients", type="secondary" if running else "primary"):
        with said_plainly():
            open_duels(trial())


def sit_down(here: Seat) -> Sitting:
    """The sitting of whoever is here; its configuration is kept while the database is away."""
    known = st.session_state.setdefault("configs", {})
    with said_plainly(stop=True):
        try:
            known[here.study] = service.get_study(store(), here.study).config
        except StoreError:
            if here.study not in known:
                raise
    config = known[here.study]
    name = here.name
    if config.completion_code and here.participant:  # one link for a panel's people
        name = f"{here.name} {here.participant}"
    mine = st.session_state.setdefault(f"seat {here.study} {name}", {"poll": None, "note": ""})
    return Sitting(here, name, config, mine)


def next_reply() -> Ask | Waiting | Finished:
    """What to show now; a plan that is due is waited for while the page says so."""
    who = (sitting.study, sitting.name, here.participant)
    reply = service.next_duel(store(), *who)
    if isinstance(reply, Waiting) and reply.reason == "plan":
        with st.spinner(_beside.WAITS["plan"]):
            planner().wait(sitting.study, seconds=2.0)
        reply = service.next_duel(store(), *who)
    return reply


here = seat()
if here is None:
    choose_study()
    st.stop()
sitting = sit_down(here)
mine = sitting.mine
if _beside.show_arrival(sitting):
    st.stop()


@st.fragment(run_every=mine["poll"])
def board() -> None:
    """What the person sees and does, drawn anew by itself after a click and while it waits.

    Without the database all stays as it is, to be clicked again, until it is back.
    """
    down: StoreError | None = None
    still = "lesson" in mine or mine.get("view") in ("paused", "own")
    try:
        if not here.is_valid():
            st.rerun()  # to be turned away
        if not still:
            with said_plainly(stop=True, but=StoreError):
                mine["reply"] = next_reply()
    except StoreError as error:
        down = error
    reply, poll = mine.get("reply"), None
    if down:
        poll = 1.0
    elif isinstance(reply, Waiting) and not still:
        poll = 1.0 if reply.reason in ("others", "plan") else 5.0
    if poll != mine["poll"]:
        mine["poll"] = poll
        st.rerun()
    if not show_trouble() and down:
        show(down)
    if down:
        st.caption("Click again, or wait: this page goes on by itself.")
    with said_plainly(but=StoreError if down else ()):
        draw(reply)


def draw(reply: Ask | Waiting | Finished | None) -> None:
    """The one thing that is on the board."""
    view = mine.get("view")
    if view == "paused":
        _beside.show_paused(sitting)
    elif view == "own":
        _beside.show_own(sitting)
    elif "lesson" in mine:
        _sitting.show_lesson(sitting)
    elif isinstance(reply, Ask) and view == "flag":
        _beside.show_flag(sitting, reply)
    elif isinstance(reply, Ask) and _beside.at_round_end(sitting, reply):
        _beside.show_round_end(sitting)
    elif isinstance(reply, Ask):
        _sitting.show_duel(sitting, reply)
    elif reply is not None:
        _beside.show_rest(sitting, reply)


st.header(plain(sitting.config.question), anchor=False)
board()
_sitting.show_more(sitting)
with st.expander("How to judge"):
    if sitting.config.instructions:
        st.text(sitting.config.instructions)
    st.markdown("Pick the one who is doing better as the cards show it, not whom you like better.")
    for state in () if sitting.config.hide_state else sitting.config.states:
        st.text(f"{state.label}: {state.description}" if state.description else state.label)
st.html(f"<script>{KEYS.read_text()}</script>", unsafe_allow_javascript=True)
