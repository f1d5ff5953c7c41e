"""What it costs to share places among groups, and who gets how much."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Learner, Study, sharing_cost
from pages.shared.guards import store
from pages.shared.markdown import plain


def show(study: Study, learner: Learner, *, seen: bool) -> None:
    """One folded box, if the study shares places out; seen: as in cost_text."""
    if learner.ledger is None:
        return
    found = _cost(study.id, studies.last_event(store(), study.id), learner)
    if found is None:
        return
    with st.expander("What your rule for groups costs"):
        st.markdown(plain(sharing_cost.cost_text(found, seen=seen)))
        if seen:
            rows = pd.DataFrame(sharing_cost.share_rows(found), columns=sharing_cost.SHARE_COLUMNS)
            st.dataframe(rows, hide_index=True)


@st.cache_data(max_entries=16, show_spinner="Calculating ...")
def _cost(study: str, event: int, _learner: Learner) -> sharing_cost.SharingCost | None:
    """The cost, calculated once after each event of the study."""
    return sharing_cost.compute(_learner, event)
