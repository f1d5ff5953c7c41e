"""A roster as its owner has it: which column is what, slips of spelling, states in order."""

from dataclasses import replace

import streamlit as st

from dopl_core.learning.bandit import State
from dopl_core.studies import roster
from dopl_core.studies.roster import Columns, Sheet
from pages._words import plain

MOST_STATES = 20  # different texts in a column that can still be states
NONE = "(none)"


def choose_columns(sheet: Sheet, key: str, report: bool = False) -> Columns | None:
    """Which column is what, guessed by their names; None while id and state are not chosen.

    report: a week's report, where names and groups say nothing new but `helped` does
    """
    if sheet.notice:
        st.info(plain(sheet.notice))
    guess = roster.guess_columns(sheet.columns)
    asked = {"id": "Id", "state": "State"}
    asked |= {"helped": "Helped (1 or 0)"} if report else {"label": "Name", "group": "Group"}
    chosen = {}
    for place, (what, label) in zip(st.columns(len(asked)), asked.items(), strict=True):
        needed = what in ("id", "state")
        options = sheet.columns if needed else [NONE, *sheet.columns]
        guessed = getattr(guess, what)
        index = options.index(guessed) if guessed else None if needed else 0
        chosen[what] = place.selectbox(
            label, options, index, key=f"{what} of {key}", placeholder="Which column?"
        )
    if None in (chosen["id"], chosen["state"]):
        st.markdown("Which column says who it is, and which the state?")
        return None
    twice = [c for c in chosen.values() if c != NONE and list(chosen.values()).count(c) > 1]
    if twice:
        raise ValueError(f'column "{twice[0]}" is chosen twice: each can be one thing')
    named = {what: "" if column == NONE else column for what, column in chosen.items()}
    if report:
        return Columns(named["id"], named["state"], guess.label, guess.group, named["helped"])
    columns = Columns(named["id"], named["state"], named["label"], named["group"])
    return replace(columns, shown=shown_on_cards(sheet, columns, key))


def shown_on_cards(sheet: Sheet, columns: Columns, key: str) -> tuple[str, ...]:
    """Which other columns cards show, in which order."""
    others = [column for column in sheet.columns if column not in columns.own]
    if not others:
        return ()
    return tuple(
        st.multiselect(
            "Cards show, in this order",
            others,
            default=others,
            key=f"shown of {key} {columns.own}",
            help="Take out what annotators need not see, and put it in again to have it last. "
            "Columns like hours_1, hours_2, ... are drawn as a chart.",
        )
    )


def settle_spelling(found: dict[str, int], key: str) -> dict[str, str] | None:
    """States that may be one, misspelt: how each is to be read; None while that is not said.

    found: states and how many rows have them
    """
    spelt: dict[str, str] = {}
    settled = True
    for pair in roster.look_alike(found):
        rare, common = sorted(pair, key=lambda state: found[state])
        options = [
            f"“{plain(rare)}” is “{plain(common)}”",
            f"“{plain(common)}” is “{plain(rare)}”",
            "They are two states",
        ]
        said = st.radio(
            f"“{plain(rare)}” ({_rows(found[rare])}) looks like “{plain(common)}” "
            f"({_rows(found[common])}). Which is it?",
            range(3),
            index=None,
            format_func=options.__getitem__,
            key=f"spelt {pair} of {key}",
        )
        settled = settled and said is not None
        if said == 0:
            spelt[rare] = common
        elif said == 1:
            spelt[common] = rare
    return spelt if settled else None


def order_states(found: list[str], key: str) -> list[State] | None:
    """The states from worst to best, as their owner says; None until all of them are in order."""
    if len(found) > MOST_STATES:
        raise ValueError(
            f"{len(found)} different states are in that column: choose the one that says how "
            f"somebody is, in {MOST_STATES} words at most"
        )
    order = st.multiselect(
        "States, from worst to best",
        found,
        key=f"order of {key}",
        accept_new_options=True,
        select_all=False,  # that would be an order nobody chose
        placeholder="Choose the worst first, then the next better one, ...",
        help="The order is yours to say: lists, and practice duels, rely on it. A state that "
        "nobody is in now can be typed in.",
    )
    missing = [state for state in found if state not in order]
    if missing:
        names = ", ".join(plain(state) for state in missing)
        st.markdown(
            f"**Put the states in order, the worst first.** Still to place: {names}."
            if order
            else f"**Which of these is the worst, which the next better one, and so on?** {names}."
        )
        return None
    with st.expander("What the states mean (shown to annotators)"):
        meanings = [st.text_input(plain(state), key=f"means {state} of {key}") for state in order]
    return [State(state, meaning.strip()) for state, meaning in zip(order, meanings, strict=True)]


def _rows(number: int) -> str:
    return f"{number} row" + ("" if number == 1 else "s")
