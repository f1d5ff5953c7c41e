"""What every visit begins with: which pages there are, and who is shown which."""

from pathlib import Path

import streamlit as st

from pages._backend import planner, store
from pages._trouble import with_database
from pages._who import is_owner

PAGES = Path(__file__).parent / "pages"

st.set_page_config(page_title="DOPL", page_icon=str(PAGES / "icon.svg"), layout="wide")
st.html(PAGES / "style.css")

home = st.Page(PAGES / "home.py", title="Home", icon=":material/home:", default=True)
annotate = st.Page(PAGES / "annotate.py", title="Annotate", icon=":material/balance:")
studies = st.Page(PAGES / "studies.py", title="Studies", icon=":material/groups:")
insights = st.Page(PAGES / "insights.py", title="Insights", icon=":material/insights:")
simulate = st.Page(PAGES / "simulate.py", title="Simulate", icon=":material/play_circle:")
to_read = st.Page(PAGES / "list.py", title="List", icon=":material/list:")

with with_database():
    store()
    planner()
    if "read" in st.query_params:
        page = st.navigation([home, to_read], position="hidden")
    elif "invite" in st.query_params or not is_owner():
        page = st.navigation([home, annotate], position="hidden")
    else:
        page = st.navigation([home, annotate, studies, insights, simulate], position="top")
    page.run()
