"""Annotate: two cards, one question, one click."""

import time
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from dopl_core.studies import findings, service
from dopl_core.studies.service import Ask, Finished, StoreError, Waiting
from pages._backend import planner, store
from pages._downloads import csv_button
from pages._duels import make_trial, open_duels, show_pair
from pages._trouble import safely, said_plainly, show, show_trouble
from pages._who import seat
from pages._words import plain

KEYS = Path(__file__).parent / "keys.js"

here = seat()
if here is None:
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
            open_duels(make_trial())
    st.stop()

study_id, me = here.study, here.name
# What this page remembers between clicks. poll: seconds until the board looks again by itself, or
# None;  note: the line under the cards;  reply: what the board shows;  shown: the impression on the
# page, and since when;  taken_back: the last impression (or round) at which undo was clicked;
# paused: a flag;  config: of the study, for as long as the database cannot be asked
mine = st.session_state.setdefault(f"seat {study_id} {me}", {"poll": None, "note": ""})
with said_plainly(stop=True):
    try:
        mine["config"] = service.get_study(store(), study_id).config
    except StoreError:
        if "config" not in mine:
            raise
config = mine["config"]

WAITS = {
    "others": "Others are still answering the last pairs of this round.",
    "plan": "Thinking about whom to ask about next.",
    "owner": "That is all for now. There will be more when the owner has reported how all are.",
    "paused": "The owner has paused the study.",
    "over": "The study has all the answers it wanted.",
}


def clicked(do: Callable[..., None]) -> Callable[..., None]:
    """A callback: what was said of the click before is gone, and who lost the seat does nothing."""

    def act(*args: object) -> None:
        mine["note"] = ""
        if here.is_valid():
            do(*args)

    return safely(act, allowed=lambda: True)


def choose(ask: Ask, outcome: str) -> None:
    """One click: on disk before anything is drawn."""
    took = int(1000 * (time.monotonic() - mine["shown"][1]))
    receipt = service.answer(store(), ask.impression, outcome, response_ms=took)
    mine["note"] = receipt.message
    if receipt.saved and ask.purpose == "practice" and outcome in ("left", "right"):
        better = ask.left if ask.expected == "left" else ask.right
        verdict = "Yes" if outcome == ask.expected else "Not quite"
        mine["note"] = f"{verdict}: {better.label} was doing better ({better.state})."
    if receipt.plan_due:
        planner().ask(study_id)


def take_back(impression: int) -> None:
    if mine.get("taken_back") != impression:  # a double click takes back one answer
        again = service.undo(store(), study_id, me)
        mine["taken_back"] = impression
        mine["note"] = "Taken back. Here it is again." if again else "Too late to take it back."


def skip_practice() -> None:
    service.skip_practice(store(), study_id, me)


def pause(on: bool) -> None:
    mine.update(paused=on, shown=(0, 0.0))


@st.fragment(run_every=mine["poll"])
def board() -> None:
    """What the person sees and does, drawn anew by itself after a click and while it waits.

    Without the database all stays as it is, to be clicked again, until it is back.
    """
    down: StoreError | None = None
    try:
        if not here.is_valid():
            st.rerun()  # to be turned away
        if not mine.get("paused"):
            with said_plainly(stop=True, but=StoreError):
                mine["reply"] = next_reply()
    except StoreError as error:
        down = error
    reply, poll = mine.get("reply"), None
    if down:
        poll = 1.0
    elif isinstance(reply, Waiting) and not mine.get("paused"):
        poll = 1.0 if reply.reason in ("others", "plan") else 5.0
    if poll != mine["poll"]:
        mine["poll"] = poll
        st.rerun()
    if not show_trouble() and down:
        show(down)
    if down:
        st.caption("Click again, or wait: this page goes on by itself.")
    if mine.get("paused"):
        st.subheader("Paused", anchor=False)
        st.markdown("Your answers are saved. Go on now, or come back later by the same link.")
        st.button("Go on", type="primary", on_click=clicked(pause), args=(False,), key="go-on")
    elif isinstance(reply, Ask):
        show_duel(reply)
    elif reply is not None:
        show_rest(reply)


def next_reply() -> Ask | Waiting | Finished:
    """What to show now; a plan that is due is waited for while the page says so."""
    reply = service.next_duel(store(), study_id, me)
    if isinstance(reply, Waiting) and reply.reason == "plan":
        with st.spinner(WAITS["plan"]):
            planner().wait(study_id, seconds=2.0)
        reply = service.next_duel(store(), study_id, me)
    return reply


def show_duel(ask: Ask) -> None:
    # Response time is the server's: from drawing the cards, the way to the browser included.
    if mine.get("shown", (0, 0.0))[0] != ask.impression:
        mine["shown"] = (ask.impression, time.monotonic())
    practice = ask.purpose == "practice"
    if practice:
        st.text("Practice: these answers do not count.")
    boxes = show_pair(config, ask.left, ask.right, ask.episode, ask.epoch, study=study_id)
    for box, which, side in zip(boxes, ("left", "right"), (ask.left, ask.right), strict=True):
        # The impression in the key: a second click on a button that is gone hits nothing.
        box.button(
            plain(side.label),
            key=f"{which}-{ask.impression}",
            shortcut=which.capitalize(),
            type="primary",
            width="stretch",
            on_click=clicked(choose),
            args=(ask, which),
        )
    with st.container(horizontal=True, horizontal_alignment="center"):
        show_other_buttons(ask)
    with st.container(key="note"):
        st.text(mine["note"] or " ")
    if not practice:
        words = f"This round: {ask.done} of {ask.total} answers. Yours so far: {ask.own}."
        st.progress(ask.done / max(1, ask.total), text=words)


def show_other_buttons(ask: Ask) -> None:
    """All that can be done with a duel but choosing a side."""
    number = ask.impression
    by_key("Can't tell", f"skip-{number}", "S", choose, ask, "skip")
    if config.ties_allowed:
        by_key("Equal", f"tie-{number}", "T", choose, ask, "tie")
    if ask.can_undo:
        by_key("Undo", f"undo-{number}", "U", take_back, number)
    if ask.purpose == "practice":
        st.button("Skip practice", key="skip-practice", on_click=clicked(skip_practice))
    st.button("Pause", key="pause", type="tertiary", on_click=clicked(pause), args=(True,))


def by_key(label: str, key: str, shortcut: str, do: Callable[..., None], *args: object) -> None:
    st.button(label, key=key, shortcut=shortcut, on_click=clicked(do), args=args)


def show_rest(reply: Waiting | Finished) -> None:
    """Nothing to ask now: why, and what the person has done so far."""
    reason = "over" if isinstance(reply, Finished) else reply.reason
    soon = reason in ("others", "plan")
    st.subheader("One moment" if soon else "Thank you!", anchor=False)
    st.markdown(WAITS[reason])
    if reason != "over":
        st.caption("This page goes on by itself.")
    if not soon:
        own_numbers()
    if isinstance(reply, Waiting) and reply.can_undo:
        by_key("Undo my last answer", f"undo-{reply.own}", "U", take_back, -reply.own)


def own_numbers() -> None:
    """The person's own answers: how many, how fast, and all of them as CSV."""
    try:
        own = service.answers(store(), study_id, me)
    except StoreError:
        return
    given = findings.given(own)
    if given.empty:
        return
    with st.container(horizontal=True, key="numbers"):
        st.metric("Your answers", len(given), width="content")
        st.metric("Median time", f"{given.response_ms.median() / 1000:.1f} s", width="content")
        st.metric("Could not tell", f"{(given.outcome == 'skip').mean():.0%}", width="content")
    csv_button("My answers (CSV)", own, "my-answers.csv")


st.header(plain(config.question), anchor=False)
board()
with st.expander("How to judge"):
    if config.instructions:
        st.text(config.instructions)
    st.markdown("Pick the one who is doing better as the cards show it, not whom you like better.")
    for state in config.states:
        st.text(f"{state.label}: {state.description}" if state.description else state.label)
st.html(f"<script>{KEYS.read_text()}</script>", unsafe_allow_javascript=True)
