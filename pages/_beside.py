"""What a sitting has beside duels: arrival, a look back, a word to the owner, the round's end."""

import pandas as pd
import streamlit as st

from dopl_core.studies import findings, own, service
from dopl_core.studies.service import Finished, Own, StoreError, Waiting
from pages._backend import store
from pages._downloads import csv_button
from pages._duels import is_trial, name_on_card, show_pair
from pages._sitting import Sitting, by_key, clicked, go_on, open_view, take_back
from pages._words import plain

ROUND = 10  # answers in a round after which its end is told

WAITS = {
    "others": "Others are still answering the last pairs of this round.",
    "plan": "Thinking about whom to ask about next.",
    "owner": "That is all for now. There will be more when the owner has reported how all are.",
    "paused": "The owner has paused the study.",
    "over": "The study has all the answers it wanted.",
    "quota": "You have given all the answers that were asked of you.",
}


def show_arrival(sitting: Sitting) -> bool:
    """Who asks, why, and how much of it; whether there was somebody new to tell that."""
    mine, config = sitting.mine, sitting.config
    if mine.get("begun") or not sitting.seat.invited:
        return False
    told = service.arrival(store(), sitting.study, sitting.name)
    if told is None or not told.answers:
        mine["begun"] = True
        return False
    st.title(plain(config.title), anchor=False)
    if config.why:
        st.text(config.why)
    st.markdown(
        f"You are shown two {plain(config.noun)}s at a time and say which one is doing better; "
        "where you cannot tell, you say so."
    )
    each = told.seconds + 1
    if config.quota:
        minutes = max(1, round(told.answers * each / 60))
        about = "a minute" if minutes == 1 else f"{minutes} minutes"
        st.markdown(f"**You are asked for {told.answers} answers: about {about}.**")
    else:
        st.markdown(
            f"**{told.answers} answers are wanted just now, of all together;** in ten minutes one "
            f"gives about {round(600 / each, -1):.0f}."
        )
    st.caption("Each answer is saved at once. Stop when you like, come back by the same link.")
    st.button("Begin", type="primary", key="begin", on_click=lambda: mine.update(begun=True))
    return True


def show_rest(sitting: Sitting, reply: Waiting | Finished) -> None:
    """Nothing to ask now: why, and what the person has done so far."""
    reason, config = reply.reason, sitting.config
    soon = reason in ("others", "plan")
    st.subheader("One moment" if soon else "Thank you!", anchor=False)
    st.markdown(WAITS[reason])
    if reason == "owner" and config.tell_results and reply.own:
        st.markdown("What the answers have changed is told here once the next list is made.")
    if reason not in ("over", "quota"):
        st.caption("This page goes on by itself.")
    if config.completion_code and reply.own and reason in ("over", "quota", "owner"):
        st.markdown("Your completion code:")
        st.code(config.completion_code, language=None)
    if not soon:
        own_numbers(sitting)
    if isinstance(reply, Waiting) and reply.can_undo:
        by_key(sitting, "Undo my last answer", f"undo-{reply.own}", "U", take_back, -reply.own)


def own_numbers(sitting: Sitting) -> None:
    """The person's own answers: how many, how fast, and all of them as CSV."""
    try:
        mine = service.answers(store(), sitting.study, sitting.name)
    except StoreError:
        return
    given = mine[mine.outcome.isin(findings.ANSWERS) & mine.purpose.isin(own.LEARNT)]
    if given.empty:
        return
    with st.container(horizontal=True, key="numbers"):
        st.metric("Your answers", len(given), width="content")
        st.metric("Median time", f"{given.response_ms.median() / 1000:.1f} s", width="content")
        st.metric("Could not tell", f"{(given.outcome == 'skip').mean():.0%}", width="content")
    csv_button("My answers (CSV)", _without_states(sitting, mine), "my-answers.csv")


def _without_states(sitting: Sitting, table: pd.DataFrame) -> pd.DataFrame:
    """What people may take home: where states are hidden, not these."""
    hidden = ["left_state", "right_state"] if sitting.config.hide_state else []
    return table.drop(columns=hidden)


def show_paused(sitting: Sitting) -> None:
    st.subheader("Paused", anchor=False)
    st.markdown("Your answers are saved. Go on now, or come back later by the same link.")
    st.button("Go on", type="primary", on_click=clicked(sitting, go_on), key="go-on")


# --- a look back


def show_own(sitting: Sitting) -> None:
    """The last ten answers; those of this round can be changed."""
    answers = service.own_answers(store(), sitting.study, sitting.name)
    looked = [one for one in answers if one.impression == sitting.mine.get("look")]
    if looked:
        show_again(sitting, looked[0])
        return
    st.subheader("Your last answers", anchor=False)
    if not answers:
        st.markdown("There are none yet.")
    with st.container(key="note"):
        st.text(sitting.mine["note"] or " ")
    for one in answers:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.text(said_words(sitting, one), width="stretch")
            label = "Look, or change" if one.can_change else "Look"
            act = {"on_click": clicked(sitting, look_at), "args": (one.impression,)}
            st.button(label, key=f"look-{one.impression}", **act)
    st.button("Back", type="primary", key="back", on_click=clicked(sitting, go_on))


def show_again(sitting: Sitting, one: Own) -> None:
    """One of the person's answers, with its cards as they were."""
    config = sitting.config
    st.text(said_words(sitting, one))
    pair = (one.left, one.right, one.episode, one.epoch)
    show_pair(config, *pair, key="again-card", study=sitting.study)
    if one.can_change:
        st.text("Change it to:")
        names = {"left": name_on_card(config, one.left), "right": name_on_card(config, one.right)}
        names |= {"tie": "Equal", "skip": "Can't tell"}
        with st.container(horizontal=True):
            for outcome in config.outcomes:
                st.button(
                    plain(names[outcome]),
                    key=f"change-{outcome}-{one.impression}",
                    disabled=outcome == one.outcome,
                    on_click=clicked(sitting, change),
                    args=(one.impression, outcome),
                )
    else:
        st.caption("It has been used by now, and cannot be changed any more.")
    st.button("Back", key="back", on_click=clicked(sitting, look_at), args=(0,))


def said_words(sitting: Sitting, one: Own) -> str:
    """What was answered, in words."""
    left, right = (name_on_card(sitting.config, side) for side in (one.left, one.right))
    said = {"left": left, "right": right, "tie": "equal", "skip": "can't tell"}
    return f"{left} or {right}: you said {said[one.outcome]}"


def look_at(sitting: Sitting, impression: int) -> None:
    sitting.mine["look"] = impression


def change(sitting: Sitting, impression: int, outcome: str) -> None:
    changed = service.change(store(), impression, sitting.name, outcome)
    sitting.mine["look"] = 0
    sitting.mine["note"] = "Changed." if changed else "Too late: it has been used."


# --- a word to the owner


def show_flag(sitting: Sitting, ask: service.Ask) -> None:
    """Say what is wrong with a card."""
    names = ["Both, or something else"]
    names += [name_on_card(sitting.config, side) for side in (ask.left, ask.right)]
    st.subheader("Something looks wrong?", anchor=False)
    st.markdown("The owner of the study reads this, with your name.")
    st.radio("Which card?", range(3), format_func=lambda n: plain(names[n]), key="flag-about")
    st.text_input("What is wrong?", max_chars=own.LONGEST_COMMENT, key="flag-words")
    with st.container(horizontal=True):
        act = {"on_click": clicked(sitting, flag), "args": (ask,)}
        st.button("Send", type="primary", key="send-flag", **act)
        st.button("Back", key="back", on_click=clicked(sitting, go_on))


def flag(sitting: Sitting, ask: service.Ask) -> None:
    about = st.session_state.get("flag-about") or 0
    words = st.session_state.get("flag-words") or ""
    arm = ("", ask.left.arm, ask.right.arm)[about]
    service.flag(store(), ask.impression, sitting.name, words, arm)
    go_on(sitting)
    sitting.mine["note"] = "The owner will read it. Thank you."


# --- the end of a round


def at_round_end(sitting: Sitting, ask: service.Ask) -> bool:
    """Whether a round has ended for this person with this duel, and is worth telling."""
    mine = sitting.mine
    if "place" not in mine and ask.purpose in own.LEARNT:  # told to who comes back later, too
        last = service.own_answers(store(), sitting.study, sitting.name, last=1)
        mine["place"] = next(((one.episode, one.epoch) for one in last), (ask.episode, ask.epoch))
    if mine.get("ended") != ask.episode and ask.episode > mine.get("place", (ask.episode,))[0]:
        mine["ended"] = ask.episode
        end = service.round_end(store(), sitting.study, sitting.name)
        if end.own >= ROUND:
            mine["end"] = end
    return "end" in mine


def show_round_end(sitting: Sitting) -> None:
    """What came of it, as far as the owner allows; go on, or stop."""
    end, config = sitting.mine["end"], sitting.config
    st.subheader("This round is complete. Thank you!", anchor=False)
    st.markdown(f"**{end.own} answers in it were yours.** They are saved, and they count.")
    if config.tell_results:
        st.markdown(
            f"With all the answers of the round, {end.changed} of {end.decisions} decisions are "
            "others than before."
        )
        more = f" and {len(end.listed) - 12} more" if len(end.listed) > 12 else ""
        st.text(f"Now on the list: {', '.join(end.listed[:12])}{more}")
    if is_trial(config):
        show_learnt(sitting)
    with st.container(horizontal=True):
        st.button("Go on", type="primary", on_click=clicked(sitting, go_on), key="go-on")
        act = {"on_click": clicked(sitting, open_view), "args": ("paused",)}
        st.button("That is enough for now", key="enough", **act)


def show_learnt(sitting: Sitting) -> None:
    """What a visitor who tries it has taught, and where there is more."""
    learner = service.load_learner(store(), sitting.study)
    finding = findings.strengths(service.beliefs(sitting.config, learner))
    st.text(f"Learnt so far: {finding.title}.")
    with st.container(horizontal=True):
        for label, page in (("What was learnt", "insights"), ("Whom to help now", "studies")):
            if st.button(label, key=f"see-{page}"):
                st.switch_page(f"pages/{page}.py", query_params={"study": sitting.study})
