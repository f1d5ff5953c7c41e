"""What annotators see besides comparisons: the welcome, their answers, a flag, a round's end."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import (
    Arrival,
    Ask,
    Consent,
    Finished,
    Own,
    RoundEnd,
    StoreError,
    StudyConfig,
    Waiting,
    chart_text,
)
from dopl_core.wording import _, format_number, format_percent, gettext_noop, ngettext
from pages.annotate.board import Session, go_on, open_view, undo
from pages.annotate.reason import show_note
from pages.shared.clicks import clicked
from pages.shared.downloads import csv_button
from pages.shared.duel_cards import is_trial, name_on_card, show_pair
from pages.shared.markdown import plain

MOST_NAMES = 12  # of the people on the list that are named at the end of a round

WAITS = {
    "others": gettext_noop("Colleagues have the last comparisons of this round."),
    "limits": gettext_noop(
        "There is no comparison for you right now. Colleagues answer the rest of this round."
    ),
    "unjudged": gettext_noop(
        "There is no comparison for you right now. More may come with the next list."
    ),
    "plan": gettext_noop("The next comparisons are being prepared."),
    "owner": gettext_noop("That is all for now. More comparisons come after the next report."),
    "paused": gettext_noop("The owner has paused the study. Your answers are saved."),
    "over": gettext_noop("The study has ended."),
    "quota": gettext_noop("You gave all the answers we asked you for."),
    "skips": gettext_noop(
        "That is all. You chose *can't tell* too often, so there is no completion code."
    ),
}
JUDGE = gettext_noop(
    "Judge by what the cards show. Choose who is doing better, not whom you prefer."
)
KEYS = gettext_noop("On a keyboard: ← and → choose a card, S is *can't tell*, U is *undo*.")
KEYS_WITH_TIES = gettext_noop(
    "On a keyboard: ← and → choose a card, S is *can't tell*, T is *equal*, U is *undo*."
)
STAY = gettext_noop("My answers stay, without my name")
NO_LONGER_COUNT = gettext_noop("My answers no longer count")
NO_CODE = gettext_noop(
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
    st.title(plain(config.own_words(config.title)), anchor=False)
    if config.why:
        st.text(config.own_words(config.why))
    see = _(
        "You see two {people} at a time. Choose the one who is doing better, or say that you "
        "cannot tell."
    )
    st.markdown(see.format(people=plain(studies.people(config.noun))))
    _show_what_is_asked(session, new)
    stop = _("Each answer is saved at once. Stop when you like and come back by the same link.")
    if session.seat.participant:
        stop = _(
            "Each answer is saved at once. Stop when you like and come back by the same link, in "
            "this browser."
        )
    show_how_to_judge(config)
    st.caption(stop)
    st.button(_("Begin"), type="primary", key="begin", on_click=begin, args=(session,))
    return True


def show_how_to_judge(config: StudyConfig) -> None:
    """What the owner says about judging, the states that cards show, and keys where there are some.

    On arrival it is part of the page; from then on it is one tap away.
    """
    if config.instructions:
        st.text(config.own_words(config.instructions))
    st.markdown(_(JUDGE))
    for state in () if config.hide_state else config.states:
        about = (config.own_words(words) for words in (state.label, state.description) if words)
        st.text(": ".join(about))
    keys = KEYS_WITH_TIES if config.ties_allowed else KEYS
    with st.container(key="keyboard"):  # hidden on touch screens
        st.caption(_(keys))


def _show_what_is_asked(session: Session, new: Arrival) -> None:
    """How many answers are asked of this person, and how long they take."""
    config, count = session.config, format_number(new.answers)
    seconds = new.seconds + 1  # the next pair takes one to look at
    if not config.quota:
        needs = ngettext(
            "**The team needs {count} more answer.**",
            "**The team needs {count} more answers.**",
            new.answers,
        )
        pace = _("Most people give about {pace} in ten minutes.")
        st.markdown(
            f"{needs} {pace}".format(count=count, pace=format_number(round(600 / seconds, -1)))
        )
        return
    minutes = max(1, round(new.answers * seconds / 60))
    asked = ngettext(
        "We ask you for {count} answer.", "We ask you for {count} answers.", new.answers
    )
    takes = ngettext(
        "That takes about {minutes} minute.", "That takes about {minutes} minutes.", minutes
    )
    st.markdown(f"**{asked} {takes}**".format(count=count, minutes=format_number(minutes)))
    if session.seat.participant and config.completion_code:
        most = studies.skips_counted(config.quota)
        words = ngettext(
            "You get a completion code. At most {most} answer may be *can't tell*.",
            "You get a completion code. At most {most} answers may be *can't tell*.",
            most,
        )
        st.markdown(words.format(most=format_number(most)))


def begin(session: Session) -> None:
    session.memory.began = True


def show_rest(session: Session, reply: Waiting | Finished) -> None:
    """There is no comparison now: why, and what the person has done so far."""
    reason, config = reply.reason, session.config
    soon = reason in ("others", "plan")
    st.subheader(_("One moment") if soon else _("Thank you!"), anchor=False)
    st.markdown(_(WAITS[reason]))
    if reason == "owner" and config.tell_results and reply.own:
        st.markdown(_("Once the next list is ready, you will see here what the answers changed."))
    if isinstance(reply, Waiting):
        st.caption(_("This page continues by itself."))
    elif reply.code:
        st.markdown(_("Your completion code:"))
        st.code(reply.code, language=None)
    is_short = session.seat.participant and config.completion_code and reply.own < config.quota
    if is_short and reason in ("over", "owner", "limits", "unjudged"):
        st.markdown(
            _(NO_CODE).format(own=format_number(reply.own), quota=format_number(config.quota))
        )
    show_note(session)
    if not soon:
        show_own_numbers(session)
    if isinstance(reply, Waiting) and reply.can_undo:
        key = f"undo-{reply.own}"
        session.button(_("Undo my last answer"), key, undo, -reply.own, shortcut="U")


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
        st.metric(_("Your answers"), format_number(len(given)), width="content")
        median = _("{seconds} s").format(seconds=format_number(given.response_ms.median() / 1000))
        st.metric(_("Median time"), median, width="content")
        unsure = format_percent((given.outcome == "skip").mean())
        st.metric(_("Could not tell"), unsure, width="content")
    csv_button(_("My answers (CSV)"), _without_states(session, answers), "my-answers.csv")


def _without_states(session: Session, table: pd.DataFrame) -> pd.DataFrame:
    """The table without states, if annotators may not see them."""
    hidden = ["left_state", "right_state"] if session.config.hide_state else []
    return table.drop(columns=hidden)


def show_paused(session: Session) -> None:
    st.subheader(_("Paused"), anchor=False)
    st.markdown(_("Your answers are saved. Continue now, or come back later by the same link."))
    session.button(_("Continue"), "go-on", go_on, type="primary")


# --- consent


def show_consent(session: Session, asked: Consent) -> None:
    """The owner's text; nothing is asked before the person agrees."""
    st.subheader(_("Before you begin"), anchor=False)
    if asked.again:
        st.markdown(_("The text that you agreed to has changed. Please read it again."))
    with st.container(border=True, key="consent"):
        st.text(asked.text)
    with st.container(horizontal=True):
        session.button(_("I agree"), "agree", agree, asked, type="primary")
        session.button(_("I do not agree"), "decline", open_view, "declined")


def agree(session: Session, asked: Consent) -> None:
    who = (session.study, session.seat.name, asked.version, session.seat.participant)
    studies.agree(session.seat.store, *who)


def show_declined(session: Session) -> None:
    """Nothing is recorded of somebody who does not agree."""
    st.subheader(_("Thank you for reading"), anchor=False)
    st.markdown(_("We ask you nothing, and we do not record that you declined. Close this page."))
    session.button(_("Read the text again"), "go-on", go_on)


# --- my answers


def show_own(session: Session) -> None:
    """The last ten answers; those of this round can be changed."""
    answers = studies.own_answers(session.seat.store, session.study, session.annotator)
    looked = [one for one in answers if one.impression == session.memory.looked_at]
    if looked:
        show_answer(session, looked[0])
        return
    st.subheader(_("Your last answers"), anchor=False)
    if not answers:
        st.markdown(_("You have not answered yet. Go back and choose one of the two cards."))
    with st.container(key="note"):
        st.text(session.memory.note or " ")
    for one in answers:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.text(answer_text(session, one), width="stretch")
            label = _("View or change") if one.can_change else _("View")
            session.button(label, f"look-{one.impression}", look_at, one.impression)
    session.button(_("Back"), "back", go_on, type="primary")
    if session.seat.invited:
        label = _("Withdraw from this study")
        session.button(label, "to-withdraw", open_view, "withdraw", type="tertiary")


def show_answer(session: Session, one: Own) -> None:
    """One of the person's answers, with its cards as they were."""
    config = session.config
    st.text(answer_text(session, one))
    pair = (one.left, one.right, one.episode, one.epoch)
    who = (session.seat.store, session.study, session.annotator)
    show_pair(config, *pair, key="again-card", photos_of=who)
    if one.can_change:
        st.text(_("Change it to:"))
        names = {"left": name_on_card(config, one.left), "right": name_on_card(config, one.right)}
        names |= {"tie": _("Equal"), "skip": _("Can't tell")}
        with st.container(horizontal=True):
            for outcome in config.outcomes:
                key, is_same = f"change-{outcome}-{one.impression}", outcome == one.outcome
                click = (plain(names[outcome]), key, change, one.impression, outcome)
                session.button(*click, disabled=is_same)
    else:
        st.caption(_("A list was made with this answer. It can no longer be changed."))
    session.button(_("Back"), "back", look_at, 0)


def answer_text(session: Session, one: Own) -> str:
    """What the person answered."""
    left, right = (name_on_card(session.config, side) for side in (one.left, one.right))
    answers = {"left": left, "right": right, "tie": _("Equal"), "skip": _("Can't tell")}
    words = _("{left} or {right}? You answered: {answer}")
    return words.format(left=left, right=right, answer=answers[one.outcome])


def look_at(session: Session, impression: int) -> None:
    session.memory.note, session.memory.looked_at = "", impression


def change(session: Session, impression: int, outcome: str) -> None:
    changed = studies.change(session.seat.store, impression, session.annotator, outcome)
    session.memory.looked_at, session.memory.reason = 0, None
    session.memory.note = (
        _("Changed.") if changed else _("Too late: a list was made with this answer.")
    )


# --- withdraw


def show_withdraw(session: Session) -> None:
    """What withdrawing means, what becomes of the answers, and the button that does it."""
    st.subheader(_("Withdraw from this study?"), anchor=False)
    st.markdown(
        _(
            "Your name and your comments are erased for good, and your link ends. This cannot be "
            "undone. You need not give a reason."
        )
    )
    asked = _("What happens with your answers?")
    names = {choice: _(choice) for choice in (STAY, NO_LONGER_COUNT)}
    st.radio(asked, list(names), format_func=names.__getitem__, key="withdraw-answers")
    with st.container(horizontal=True):
        session.button(_("Withdraw now"), "withdraw", withdraw)
        session.button(_("Back"), "back", go_on, type="primary")


def withdraw(session: Session) -> None:
    answers = st.session_state.get("withdraw-answers") == NO_LONGER_COUNT
    studies.withdraw(session.seat.store, session.study, session.annotator, answers=answers)
    st.session_state.withdrawn = True


# --- flag a card


def show_flag(session: Session, ask: Ask) -> None:
    """A message to the owner about a card."""
    names = [_("Both, or something else")]
    names += [name_on_card(session.config, side) for side in (ask.left, ask.right)]
    st.subheader(_("Is something wrong with a card?"), anchor=False)
    st.markdown(_("The owner of the study will read this, with your name."))
    st.radio(_("Which card?"), range(3), format_func=lambda n: plain(names[n]), key="flag-about")
    st.text_input(_("What is wrong?"), max_chars=studies.LONGEST_COMMENT, key="flag-words")
    with st.container(horizontal=True):
        session.button(_("Send"), "send-flag", flag, ask, type="primary")
        session.button(_("Back"), "back", go_on)


def flag(session: Session, ask: Ask) -> None:
    about = st.session_state.get("flag-about") or 0
    comment = (st.session_state.get("flag-words") or "").strip()
    if not comment:
        raise ValueError(_("Please write what is wrong."))
    arm = ("", ask.left.arm, ask.right.arm)[about]
    studies.flag(session.seat.store, ask.impression, session.annotator, comment, arm)
    go_on(session)
    session.memory.note = _("Thank you. The owner will read this.")


# --- the end of a round


def show_round_end(session: Session) -> None:
    """What the round changed, as far as the owner allows; continue, or stop."""
    end, config = session.memory.round_end, session.config
    assert end is not None  # noqa: S101
    st.subheader(_("This round is complete. Thank you!"), anchor=False)
    own = ngettext(
        "**You gave {count} of its answers.** It is saved, and it counts.",
        "**You gave {count} of its answers.** They are saved, and they count.",
        end.own,
    )
    st.markdown(own.format(count=format_number(end.own)))
    if config.tell_results:
        _show_results(end)
    if is_trial(config):
        show_learnt(session)
    with st.container(horizontal=True):
        session.button(_("Continue"), "go-on", go_on, type="primary")
        session.button(_("Stop for now"), "enough", open_view, "paused")


def _show_results(end: RoundEnd) -> None:
    """What the answers of a round changed, and who is on the list now."""
    changed = _(
        "The answers of this round changed {changed} of {decisions} decisions. There is one "
        "decision for each person in each state."
    )
    st.markdown(
        changed.format(changed=format_number(end.changed), decisions=format_number(end.decisions))
    )
    names, more = ", ".join(end.listed[:MOST_NAMES]), len(end.listed) - MOST_NAMES
    listed = _("Now on the list: {names}")
    if more > 0:
        listed = ngettext(
            "Now on the list: {names} and {more} more",
            "Now on the list: {names} and {more} more",
            more,
        )
    st.text(listed.format(names=names, more=format_number(more)))


def show_learnt(session: Session) -> None:
    """What a visitor's answers have taught, with links to more."""
    learner = studies.load_learner(session.seat.store, session.study)
    finding = chart_text.strengths_finding(studies.beliefs(session.config, learner))
    st.text(f"Learned so far: {finding.title}.")
    with st.container(horizontal=True):
        for label, page in (("What was learned", "insights"), ("This week's list", "studies")):
            if clicked(label, key=f"see-{page}"):
                st.switch_page(f"pages/{page}/page.py", query_params={"study": session.study})
