"""Home: what DOPL does, and three ways to begin: try it, run a study, simulate."""

import streamlit as st

from dopl_core import environments
from dopl_core.studies import cards
from pages.shared.clicks import clicked
from pages.shared.duel_cards import open_duels, trial
from pages.shared.errors import show_errors
from pages.shared.guards import ALL_STUDIES, may, only, visitor
from pages.shared.visitors import has_role

only("owner", "coordinator", "reader", "annotator")
if not may(ALL_STUDIES, "owner"):  # their own page in place of the owner's
    runs = has_role(visitor(), "owner", "coordinator")
    own = "studies/page.py" if runs else "annotate/page.py"
    own = "list.py" if not runs and has_role(visitor(), "reader") else own
    st.switch_page(f"pages/{own}")

st.title("Whom to help next, learned from simple comparisons")
st.markdown(
    "Your team looks at two people at a time and chooses who is doing better. An answer takes a "
    "few seconds. From the answers, and from how people change, DOPL learns who gains most from "
    "help. Each week it lists as many people as you can help."
)

states = [state.label for state in environments.load("cpap").states]
low, high = (cards.demo_evidence("cpap", states, state, seed=1).charts[0] for state in (0, 2))
st.html(
    '<div class="dopl-hero" role="img" aria-label="Two patients\' nights side by side. The '
    'better one is chosen. The answers become a list of whom to help next.">'
    f"<div><strong>Patient 12</strong>{cards.chart_html(low)}</div>"
    f'<div class="chosen"><strong>Patient 4 ✓</strong>{cards.chart_html(high)}</div>'
    '<div class="arrow">→</div>'
    '<div class="list"><strong>Help next</strong><ol><li>Patient 12</li><li>Patient 17</li>'
    "<li>Patient 9</li></ol></div></div>"
)

ways = st.columns(3)
with ways[0].container(border=True, height="stretch"):
    st.subheader("Try it", anchor=False)
    st.markdown(
        "Compare 20 simulated CPAP patients. There is nothing to set up and nothing to read."
    )
    if clicked("Try it now", type="primary", width="stretch", key="try"):
        with show_errors():
            open_duels(trial())
with ways[1].container(border=True, height="stretch"):
    st.subheader("Run a study", anchor=False)
    st.markdown("Upload a roster, invite colleagues, and get this week's list.")
    if clicked("Run a study", width="stretch", key="run"):
        st.switch_page("pages/studies/page.py")
with ways[2].container(border=True, height="stretch"):
    st.subheader("Simulate", anchor=False)
    st.markdown("For researchers: compare learners in the simulated worlds of the paper.")
    if clicked("Simulate", width="stretch", key="simulate"):
        st.switch_page("pages/simulate.py")
