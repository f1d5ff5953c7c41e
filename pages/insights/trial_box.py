"""The trial: what the analysis that its protocol promised says, at the looks that it allows."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, TrialAnalysis, trial_text
from pages.shared.guards import store
from pages.shared.markdown import plain


def show(study: Study) -> TrialAnalysis | None:
    """The answer, and the looks, people and deviations behind it; None without a protocol."""
    found = _analyse(study.id, studies.last_event(store(), study.id))
    if found is None:
        return None
    answer, basis = trial_text.headline(found)
    with st.container(border=True, key="trial"):
        st.subheader(plain(answer), anchor=False)
        for sentence in basis:
            st.markdown(plain(sentence))
        for sentence in found.deviations:
            st.caption(f"Deviation from the protocol: {plain(sentence)}")
        if found.weeks:
            _looks_and_flow(found)
        st.caption(
            "The study's export has the protocol, this analysis and a methods section to paste. "
            "Other figures on this page are not part of the trial."
        )
    return found


def _looks_and_flow(found: TrialAnalysis) -> None:
    with st.expander("Looks and flow of people"):
        if found.looks:
            _table(trial_text.look_rows(found), trial_text.LOOK_COLUMNS)
            st.caption("Effects are in 100 people; intervals and tests allow for all looks.")
        _table(trial_text.flow_rows(found), trial_text.FLOW_COLUMNS)


def _table(rows: list[tuple[object, ...]], columns: tuple[str, ...]) -> None:
    """A table whose texts wrap, so that a phone shows all of it."""
    st.table(pd.DataFrame(rows, columns=list(columns)), hide_index=True, border="horizontal")


@st.cache_data(max_entries=16, show_spinner="Calculating ...")
def _analyse(study: str, event: int) -> TrialAnalysis | None:
    """The analysis, calculated once after each event of the study."""
    return studies.trial_analysis(store(), study)
