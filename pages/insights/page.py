"""Insights: whether help works, how people answer, and what was learned."""

from collections import Counter

import streamlit as st

from dopl_core import studies
from pages.insights import answers_tab, effect_tab, learned_tab
from pages.shared.clicks import clicked
from pages.shared.guards import may, only, store
from pages.shared.help_link import help_link

only("owner", "coordinator")

st.title("Insights", anchor=False)
help_link("how_it_learns", "How it learns, and how to read the results")
found = studies.list_studies(store())
known = {study.id: study for study in found if may(study.id, "owner", "coordinator")}
if not known:
    st.markdown("There is no study yet. Make one, collect some answers, and come back.")
    if clicked("Make a study", "make-study", type="primary"):
        st.switch_page("pages/studies/page.py")
    st.stop()

titles = Counter(study.title for study in known.values())
requested = st.query_params.get("study")
chosen = st.selectbox(
    "Study",
    list(known),
    index=list(known).index(requested) if requested in known else 0,
    format_func=lambda study: (
        known[study].title + (f" ({study})" if titles[known[study].title] > 1 else "")
    ),
)
st.query_params["study"] = chosen
study = known[chosen]
learner = studies.load_learner(store(), study.id)

TABS = {
    "Is it working?": effect_tab.show,
    "How people answer": answers_tab.show,
    "What was learned": learned_tab.show,
}
for tab, show in zip(
    st.tabs(list(TABS), key="look", bind="query-params"), TABS.values(), strict=True
):
    if tab.open:
        with tab:
            show(study, learner)
