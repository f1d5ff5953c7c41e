"""What annotators see besides comparisons: the welcome, their answers, a flag, a round's end."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import (
    Ask,
    Consent,
    Finished,
    Own,
    StoreError,
    StudyConfig,
    Waiting,
    chart_text,
)
from pages.annotate.board import Session, go_on, open_view, undo
from pages.shared.downloads import csv_button
from pages.shared.duel_cards import is_trial, name_on_card, show_pair
from pages.shared.markdown import plain

MOST_NAMES = 12  # of the people on the list that are named at the end of a round

WAITS = {
    "others": "Colleagues are answering the last comparisons of this round.",
    "plan": "The next comparisons are being prepared.",
    "owner": "That is all for now. More comparisons come after the next report.",
    "paused": "The owner has paused the study. Your answers are saved.",
    "over": "The study has all the answers it needs.",
    "quota": "You gave all the answers we asked you for.",
    "skips": "That is all. You chose *can't tell* too often, so there is no completion code.",
}
JUDGE = "Judge by what the cards show. Choose who is doing better, not whom you prefer."
KEYS = "On a keyboard: ← and → choose a card, S is *can't tell*, U is *undo*."
KEYS_WITH_TIES = (
    "On a keyboard: ← and → choose a card, S is *can't tell*, T is *equal*, U is *undo*."
)
NO_CODE = (
    "You gave {own} of {quota} answers, so there is no completion code yet. Your answers are "
    "saved. If no more comparisons come, send the panel your participant id."
)


def show_arrival(session: Session) -> bool:
    """Welcome a new annotator: who asks, why, and how much; False if there is nothing to say."""
    memory, config = session.memory, session.config
    if memory.began or not session.seat.invited:
        return False
    new = studies.arrival(session.seat.store, session.study, session.annotator)
    if new is None or not new.answers:
        memory.began = True
        return False
    st.title(plain(config.title), anchor=False)
    if config.why:
        st.text(config.why)
    st.markdown(
        f"You see two {plain(studies.plural(config.noun))} at a time. Choose the one who is doing "
        "better, or say that you cannot tell."
    )
    seconds = new.seconds + 1  # the next pair takes one to look at
    if config.quota:
        minutes = max(1, round(new.answers * seconds / 60))
        about = "a minute" if minutes == 1 else f"{minutes} minutes"
        st.markdown(f"**We ask you for {new.answers} answers. That takes about {about}.**")
        if session.seat.participant and config.completion_code:
            most = studies.skips_counted(config.quota)
            st.markdown(f"You get a completion code. At most {most} of them may be *can't tell*.")
    else:
        st.markdown(
            f"**The team needs {new.answers} more answers.** Most people give about "
            f"{round(600 / seconds, -1):.0f} in ten minutes."
        )
    show_how_to_judge(config)
    where = ", in this browser" if session.seat.participant else ""
    st.caption(
        f"Each answer is saved at once. Stop when you like and come back by the same link{where}."
    )
    st.button("Begin", type="primary", key="begin", on_click=begin, args=(session,))
    return True


def show_how_to_judge(config: StudyConfig) -> None:
    """What the owner says about judging, the states that cards show, and keys where there are some.

    On arrival it is part of the page; from then on it is one tap away.
    """
    if config.instructions:
        st.text(config.instructions)
    st.markdown(JUDGE)
    for state in () if config.hide_state else config.states:
        st.text(f"{state.label}: {state.description}" if state.description else state.label)
    with st.container(key="keyboard"):  # hidden on touch screens
        st.caption(KEYS_WITH_TIES if config.ties_allowed else KEYS)


def begin(session: Session) -> None:
    session.memory.began = True


def show_rest(session: Session, reply: Waiting | Finished) -> None:
    """There is no comparison now: why, and what the person has done so far."""
    reason, config = reply.reason, session.config
    soon = reason in ("others", "plan")
    st.subheader("One moment" if soon else "Thank you!", anchor=False)
    st.markdown(WAITS[reason])
    if reason == "owner" and config.tell_results and reply.own:
        st.markdown("Once the next list is ready, you will see here what the answers changed.")
    if isinstance(reply, Waiting):
        st.caption("This page continues by itself.")
    elif reply.code:
        st.markdown("Your completion code:")
        st.code(reply.code, language=None)
    is_short = session.seat.participant and config.completion_code and reply.own < config.quota
    if is_short and reason in ("over", "owner"):
        st.markdown(NO_CODE.format(own=reply.own, quota=config.quota))
    if not soon:
        show_own_numbers(session)
    if isinstance(reply, Waiting) and reply.can_undo:
        key = f"undo-{reply.own}"
        session.button("Undo my last answer", key, undo, -reply.own, shortcut="U")


def show_own_numbers(session: Session) -> None:
    """The person's own answers: how many, how fast, and all of them as CSV."""
    try:
        answers = studies.answers(session.seat.store, session.study, session.annotator)
    except StoreError:
        return
    given = chart_text.learnt_answers(answers)
    if given.empty:
        return
    with st.container(horizontal=True, key="numbers"):
        st.metric("Your answers", len(given), width="content")
        st.metric("Median time", f"{given.response_ms.median() / 1000:.1f} s", width="content")
        unsure = f"{100 * (given.outcome == 'skip').mean():.0f} %"
        st.metric("Could not tell", unsure, width="content")
    csv_button("My answers (CSV)", _without_states(session, answers), "my-answers.csv")


def _without_states(session: Session, table: pd.DataFrame) -> pd.DataFrame:
    """The table without states, if annotators may not see them."""
    hidden = ["left_state", "right_state"] if session.config.hide_state else []
    return table.drop(columns=hidden)


def show_paused(session: Session) -> None:
    st.subheader("Paused", anchor=False)
    st.markdown("Your answers are saved. Continue now, or come back later by the same link.")
    session.button("Continue", "go-on", go_on, type="primary")


# --- consent


def show_consent(session: Session, asked: Consent) -> None:
    """The owner's text; nothing is asked before the person agrees."""
    st.subheader("Before you begin", anchor=False)
    if asked.again:
        st.markdown("The text that you agreed to has changed. Please read it again.")
    with st.container(border=True, key="consent"):
        st.text(asked.text)
    with st.container(horizontal=True):
        session.button("I agree", "agree", agree, asked, type="primary")
        session.button("I do not agree", "decline", open_view, "declined")


def agree(session: Session, asked: Consent) -> None:
    who = (session.study, session.seat.name, asked.version, session.seat.participant)
    studies.agree(session.seat.store, *who)


def show_declined(session: Session) -> None:
    """Nothing is recorded of somebody who does not agree."""
    st.subheader("Thank you for reading", anchor=False)
    st.markdown("We ask you nothing, and we do not record that you declined. Close this page.")
    session.button("Read the text again", "go-on", go_on)


# --- my answers


def show_own(session: Session) -> None:
    """The last ten answers; those of this round can be changed."""
    answers = studies.own_answers(session.seat.store, session.study, session.annotator)
    looked = [one for one in answers if one.impression == session.memory.looked_at]
    if looked:
        show_answer(session, looked[0])
        return
    st.subheader("Your last answers", anchor=False)
    if not answers:
        st.markdown("You have not answered yet. Go back and choose one of the two cards.")
    with st.container(key="note"):
        st.text(session.memory.note or " ")
    for one in answers:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.text(answer_text(session, one), width="stretch")
            label = "View or change" if one.can_change else "View"
            session.button(label, f"look-{one.impression}", look_at, one.impression)
    session.button("Back", "back", go_on, type="primary")
    if session.seat.invited:
        session.button(
            "Withdraw from this study", "to-withdraw", open_view, "withdraw", type="tertiary"
        )


def show_answer(session: Session, one: Own) -> None:
    """One of the person's answers, with its cards as they were."""
    config = session.config
    st.text(answer_text(session, one))
    pair = (one.left, one.right, one.episode, one.epoch)
    show_pair(config, *pair, key="again-card", photos_of=(session.seat.store, session.study))
    if one.can_change:
        st.text("Change it to:")
        names = {"left": name_on_card(config, one.left), "right": name_on_card(config, one.right)}
        names |= {"tie": "Equal", "skip": "Can't tell"}
        with st.container(horizontal=True):
            for outcome in config.outcomes:
                key, is_same = f"change-{outcome}-{one.impression}", outcome == one.outcome
                click = (plain(names[outcome]), key, change, one.impression, outcome)
                session.button(*click, disabled=is_same)
    else:
        st.caption("A list was made with this answer. It can no longer be changed.")
    session.button("Back", "back", look_at, 0)


def answer_text(session: Session, one: Own) -> str:
    """What the person answered."""
    left, right = (name_on_card(session.config, side) for side in (one.left, one.right))
    answers = {"left": left, "right": right, "tie": "equal", "skip": "can't tell"}
    return f"{left} or {right}? You answered: {answers[one.outcome]}"


def look_at(session: Session, impression: int) -> None:
    session.memory.note, session.memory.looked_at = "", impression


def change(session: Session, impression: int, outcome: str) -> None:
    changed = studies.change(session.seat.store, impression, session.annotator, outcome)
    session.memory.looked_at = 0
    session.memory.note = "Changed." if changed else "Too late: a list was made with this answer."


# --- withdraw


def show_withdraw(session: Session) -> None:
    """What withdrawing means, what becomes of the answers, and the button that does it."""
    st.subheader("Withdraw from this study?", anchor=False)
    st.markdown(
        "Your name and your comments are erased for good, and your link ends. This cannot be "
        "undone. You need not give a reason."
    )
    choices = ("My answers stay, without my name", "My answers no longer count")
    st.radio("What happens with your answers?", choices, key="withdraw-answers")
    with st.container(horizontal=True):
        session.button("Withdraw now", "withdraw", withdraw, choices[1])
        session.button("Back", "back", go_on, type="primary")


def withdraw(session: Session, not_counted: str) -> None:
    answers = st.session_state.get("withdraw-answers") == not_counted
    studies.withdraw(session.seat.store, session.study, session.annotator, answers=answers)
    st.session_state.withdrawn = True


# --- flag a card


def show_flag(session: Session, ask: Ask) -> None:
    """A message to the owner about a card."""
    names = ["Both, or something else"]
    names += [name_on_card(session.config, side) for side in (ask.left, ask.right)]
    st.subheader("Is something wrong with a card?", anchor=False)
    st.markdown("The owner of the study will read this, with your name.")
    st.radio("Which card?", range(3), format_func=lambda n: plain(names[n]), key="flag-about")
    st.text_input("What is wrong?", max_chars=studies.LONGEST_COMMENT, key="flag-words")
    with st.container(horizontal=True):
        session.button("Send", "send-flag", flag, ask, type="primary")
        session.button("Back", "back", go_on)


def flag(session: Session, ask: Ask) -> None:
    about = st.session_state.get("flag-about") or 0
    comment = (st.session_state.get("flag-words") or "").strip()
    if not comment:
        raise ValueError("Please write what is wrong.")
    arm = ("", ask.left.arm, ask.right.arm)[about]
    studies.flag(session.seat.store, ask.impression, session.annotator, comment, arm)
    go_on(session)
    session.memory.note = "Thank you. The owner will read this."


# --- the end of a round


def show_round_end(session: Session) -> None:
    """What the round changed, as far as the owner allows; continue, or stop."""
    end, config = session.memory.round_end, session.config
    assert end is not None  # noqa: S101
    st.subheader("This round is complete. Thank you!", anchor=False)
    st.markdown(f"**You gave {end.own} of its answers.** They are saved, and they count.")
    if config.tell_results:
        st.markdown(
            f"The answers of this round changed {end.changed} of {end.decisions} decisions. "
            f"Each {plain(config.noun)} has one decision for each state."
        )
        more = len(end.listed) - MOST_NAMES
        others = f" and {more} more" if more > 0 else ""
        st.text(f"Now on the list: {', '.join(end.listed[:MOST_NAMES])}{others}")
    if is_trial(config):
        show_learnt(session)
    with st.container(horizontal=True):
        session.button("Continue", "go-on", go_on, type="primary")
        session.button("Stop for now", "enough", open_view, "paused")


def show_learnt(session: Session) -> None:
    """What a visitor's answers have taught, with links to more."""
    learner = studies.load_learner(session.seat.store, session.study)
    finding = chart_text.strengths_finding(studies.beliefs(session.config, learner))
    st.text(f"Learned so far: {finding.title}.")
    with st.container(horizontal=True):
        for label, page in (("What was learned", "insights"), ("This week's list", "studies")):
            if st.button(label, key=f"see-{page}"):
                st.switch_page(f"pages/{page}/page.py", query_params={"study": session.study})
