"""Home: what this is, and three ways to begin: try it, run a study, simulate."""

import streamlit as st

from dopl_core import environments
from dopl_core.studies import cards
from pages._duels import open_duels, trial
from pages._trouble import said_plainly
from pages._who import owner_only

owner_only()

st.title("Whom to help next, learned from simple questions")
st.markdown(
    "People look at two cases side by side and say which one is doing better; that takes a second. "
    "From a few hundred such answers DOPL learns how everybody fares and whom help helps most, and "
    "names those to help now, within your budget."
)

states = [state.label for state in environments.load("cpap").states]
low, high = (cards.draw("cpap", states, state, seed=1).charts[0] for state in (0, 2))
st.html(
    '<div class="dopl-hero" role="img" aria-label="Two patients\' nights side by side; the better '
    'one is chosen; the answers become a list of whom to help next.">'
    f"<div><strong>Patient 12</strong>{cards.html(low)}</div>"
    f'<div class="chosen"><strong>Patient 4 ✓</strong>{cards.html(high)}</div>'
    '<div class="arrow">→</div>'
    '<div class="list"><strong>Help next</strong><ol><li>Patient 12</li><li>Patient 17</li>'
    "<li>Patient 9</li></ol></div></div>"
)

ways = st.columns(3)
with ways[0].container(border=True, height="stretch"):
    st.subheader("Try it", anchor=False)
    st.markdown("Answer duels about 20 simulated CPAP patients. No set-up, nothing to read.")
    if st.button("Try it now", type="primary", width="stretch", key="try"):
        with said_plainly():
            open_duels(trial())
with ways[1].container(border=True, height="stretch"):
    st.subheader("Run a study", anchor=False)
    st.markdown("Bring a roster or pick a simulated world, invite people, get this week's list.")
    if st.button("Run a study", width="stretch", key="run"):
        st.switch_page("pages/studies.py")
with ways[2].container(border=True, height="stretch"):
    st.subheader("Simulate", anchor=False)
    st.markdown("Let the learner and its rivals play the paper's worlds, and watch the curves.")
    if st.button("Simulate", width="stretch", key="simulate"):
        st.switch_page("pages/simulate.py")
