"""Why? After some answers, one button beside "Saved." opens tags and a line of text."""

from typing import TYPE_CHECKING

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Ask
from dopl_core.wording import _
from pages.shared.duel_cards import name_on_card
from pages.shared.errors import safely
from pages.shared.markdown import plain

if TYPE_CHECKING:
    from pages.annotate.board import Session


def show_note(session: "Session") -> None:
    """Where no comparison is shown: what became of the last click, and the question why."""
    with st.container(horizontal=True, vertical_alignment="center", key="rest-note"):
        if session.memory.note:
            st.text(session.memory.note, width="content")
        show_reason(session)


def show_reason(session: "Session") -> None:
    """Ask about the last answer, if a reason is wanted; answering on skips it."""
    if session.memory.reason is None:
        return
    (ask, outcome), config = session.memory.reason, session.config
    key = f"reason-{ask.impression}"
    asked = st.popover(_("Tell us why"), type="tertiary", key=key)
    with asked, st.form(f"{key}-form", border=False):
        st.text(question(session, ask, outcome))
        if config.tags:
            st.pills(
                _("Reasons"),
                config.tags,
                selection_mode="multi",
                format_func=lambda tag: plain(config.own_words(tag)),
                key=f"{key}-tags",
                label_visibility="collapsed",
            )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            words = _("In your own words")
            st.text_input(words, max_chars=studies.LONGEST_COMMENT, key=f"{key}-text")
            act = safely(send, allowed=session.seat.is_valid)
            st.form_submit_button(_("Send"), on_click=act, args=(session, ask), type="primary")


def question(session: "Session", ask: Ask, outcome: str) -> str:
    """What is asked about an answer."""
    left, right = (name_on_card(session.config, side) for side in (ask.left, ask.right))
    if outcome == "tie":
        return _("Why are {left} and {right} equal?").format(left=left, right=right)
    chosen, other = (left, right) if outcome == "left" else (right, left)
    return _("Why did you choose {chosen} over {other}?").format(chosen=chosen, other=other)


def send(session: "Session", ask: Ask) -> None:
    """Keep the reason; it is asked once."""
    key = f"reason-{ask.impression}"
    tags, text = (st.session_state.get(f"{key}-{part}") for part in ("tags", "text"))
    given = (tags or [], text or "")
    studies.give_reason(session.seat.store, ask.impression, session.annotator, *given)
    session.memory.reason = None
    session.memory.note = _("Thank you. The owner will read this.")
