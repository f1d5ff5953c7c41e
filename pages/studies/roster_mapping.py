"""The owner's roster file: what each column means, misspelt states, the order of states."""

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

import streamlit as st

from dopl_core.learning.bandit import State
from dopl_core.studies import Columns, Sheet, guess_columns, look_alike, open_sheet
from pages.shared.markdown import plain

Kind = Literal["roster", "report", "history"]

MOST_STATES = 20
NONE = "(none)"
TABLES = ["csv", "txt", "tsv", "xlsx"]
_LABELS = {
    "id": "ID",
    "state": "State",
    "label": "Name",
    "group": "Group",
    "helped": "Helped (1 or 0)",
    "when": "Date or number of the week",
}
_MEANINGS = {
    "id": "each person's own number or code",
    "state": "how each person is, in your words, such as Low or High",
    "label": "a name for cards and lists; without it, they show the ID",
    "group": "a ward, a site or a class",
    "helped": "whether each person was helped",
    "when": "when each person was in this state",
}
_ASKED = {
    "roster": ("id", "state", "label", "group"),
    "report": ("id", "state", "helped"),
    "history": ("id", "when", "state", "helped"),
}


def upload_table(label: str, key: str, help: str | None = None) -> tuple[Sheet, str] | None:
    """The table that the owner uploads, and a key for what is asked about it."""
    upload = st.file_uploader(f"{label} (CSV or XLSX)", type=TABLES, key=key, help=help)
    if upload is None:
        return None
    return open_sheet(upload.getvalue(), upload.name), f"{key} {upload.file_id}"


def choose_columns(
    sheet: Sheet, key: str, kind: Kind = "roster", last: Columns | None = None
) -> Columns | None:
    """What each column means; None until those that are needed are chosen.

    last: as the owner chose for the last such file; otherwise guessed by their names
    """
    if sheet.notice:
        st.info(plain(sheet.notice))
    guess = last or guess_columns(sheet.columns, history=kind == "history")
    asked = {what: _LABELS[what] for what in _ASKED[kind]}
    chosen = {}
    for place, (what, label) in zip(st.columns(len(asked)), asked.items(), strict=True):
        needed = what in ("id", "state", "when") or kind == "history"
        options = sheet.columns if needed else [NONE, *sheet.columns]
        guessed = getattr(guess, what)
        index = options.index(guessed) if guessed else None if needed else 0
        chosen[what] = place.selectbox(
            label,
            options,
            index,
            key=f"{what} of {key}",
            placeholder="Which column?",
            help=f"{_MEANINGS[what][0].upper()}{_MEANINGS[what][1:]}.",
        )
    if missing := [what for what, column in chosen.items() if column is None]:
        for what in missing:
            st.markdown(f"**Choose the column for {_LABELS[what]}**: {_MEANINGS[what]}.")
        return None
    twice = [c for c in chosen.values() if c != NONE and list(chosen.values()).count(c) > 1]
    if twice:
        raise ValueError(f'column "{twice[0]}" is chosen twice: choose each column once')
    named = {what: "" if column == NONE else column for what, column in chosen.items()}
    if kind == "report":
        return Columns(**named, label=guess.label, group=guess.group)
    if kind == "history":
        return Columns(**named)
    columns = Columns(**named)
    return replace(columns, shown=kept_columns(sheet, columns, key, guess.shown))


def kept_columns(
    sheet: Sheet, columns: Columns, key: str, last: tuple[str, ...] | None
) -> tuple[str, ...]:
    """The other columns that the study keeps, in order; at first all, or those of the last file."""
    others = [column for column in sheet.columns if column not in columns.own]
    if not others:
        return ()
    return tuple(
        st.multiselect(
            "Columns to keep, in this order on cards",
            others,
            default=others if last is None else [column for column in last if column in others],
            key=f"shown of {key} {columns.own}",
            help="The list and the learner can use these only. To keep a column off the cards, "
            "such as a phone number, hide it under *What annotators see*. To move a column to the "
            "end, remove it and add it again. Columns such as hours_1, hours_2 become a chart.",
        )
    )


def settle_spelling(
    found: dict[str, int], key: str, known: Collection[str] = ()
) -> dict[str, str] | None:
    """How to read states that may be misspelt; None until the owner has decided.

    found: states and the number of rows that have them;  known: states that the study has
    """
    found = dict.fromkeys(known, 0) | found
    spelt: dict[str, str] = {}
    settled = True
    for pair in look_alike(found):
        if set(pair) <= set(known):
            continue
        rare, common = sorted(pair, key=lambda state: (state in known, found[state]))
        options = [
            f"“{plain(common)}” is right",
            f"“{plain(rare)}” is right",
            "Both: they are different states",
        ]
        chosen = st.radio(
            f"“{plain(rare)}” ({_rows(found[rare])}) looks like “{plain(common)}” "
            f"({_rows(found[common])}). Which is right?",
            range(3),
            index=None,
            format_func=options.__getitem__,
            key=f"spelt {pair} of {key}",
        )
        settled = settled and chosen is not None
        if chosen == 0:
            spelt[rare] = common
        elif chosen == 1:
            spelt[common] = rare
    return spelt if settled else None


def order_states(found: list[str], key: str) -> list[State] | None:
    """The states from worst to best, as the owner orders them; None until all are placed."""
    if len(found) > MOST_STATES:
        raise ValueError(
            f"that column has {len(found)} different values: choose the column with the state, "
            f"which has at most {MOST_STATES}"
        )
    order = st.multiselect(
        "States, from worst to best",
        found,
        key=f"order of {key}",
        accept_new_options=True,
        select_all=False,  # the order must be chosen
        placeholder="Choose the worst state first, then the next better one",
        help="Lists and practice comparisons use this order. You can type in a state that nobody "
        "is in now.",
    )
    missing = [state for state in found if state not in order]
    if missing:
        names = ", ".join(plain(state) for state in missing)
        st.markdown(f"**Put the states in order, the worst first.** Still to place: {names}.")
        return None
    with st.expander("What the states mean (annotators see this)"):
        meanings = [st.text_input(plain(state), key=f"means {state} of {key}") for state in order]
    return [State(state, meaning.strip()) for state, meaning in zip(order, meanings, strict=True)]


def _rows(number: int) -> str:
    return f"{number} row" + ("" if number == 1 else "s")
