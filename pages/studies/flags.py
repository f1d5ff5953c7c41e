"""Cards that annotators have flagged: who said what, the two cards, and "done"."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, chart_text, name_of, printable
from pages.shared.duel_cards import show_pair
from pages.shared.errors import safely
from pages.shared.guards import store

MOST_SHOWN = 20  # comparisons with open flags; the CSV file on Data has all


def show(study: Study) -> None:
    """Open flags, the newest first; nothing if all are done."""
    found = studies.flags(store(), study.id)
    found = found[~found.done]
    pairs = list(dict.fromkeys(found.index))
    if not pairs:
        return
    title = f"Annotators flagged {chart_text.count(len(pairs), 'comparison')}"
    with st.expander(title, icon=":material/flag:", key="flags"):
        for impression in pairs[:MOST_SHOWN]:
            one_pair(study, impression, found.loc[[impression]])
        if len(pairs) > MOST_SHOWN:
            st.caption(f"The newest {MOST_SHOWN} of {len(pairs)} are shown.")


def one_pair(study: Study, impression: int, said: pd.DataFrame) -> None:
    """What was said about two cards, the cards as they were, and a button for done."""
    names = {arm.id: name_of(study.config, arm) for arm in study.config.arms}
    with st.container(border=True):
        for row in said.itertuples():
            arms = [row.about] if row.about else [row.left_arm, row.right_arm]
            about = " or ".join(names[arm] for arm in arms)
            told = printable(f"{row.annotator}, about {about}: {row.comment}")
            at = row.at.tz_convert(st.context.timezone or "UTC")
            st.text(f"{at:%-d %B, %H:%M}. {told}")
        with st.container(horizontal=True, vertical_alignment="center"):
            shown = st.toggle("Show the cards", key=f"flagged-{impression}")
            st.button(
                "Done",
                key=f"flag-done-{impression}",
                icon=":material/check:",
                on_click=safely(studies.finish_flag),
                args=(store(), impression),
            )
        if shown:
            pair = studies.flagged_pair(store(), study.id, impression)
            show_pair(
                study.config,
                *pair,
                key=f"flagged-{impression}-card",
                photos_of=(store(), study.id, ""),
            )
            if study.config.world == "observed":
                st.caption("To change a card, open *People*, then *Change what a card shows*.")
