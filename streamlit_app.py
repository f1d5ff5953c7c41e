"""The web app: which pages there are, who is shown which, and the door in front of them."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages._backend import planner, store
from pages._door import Door
from pages._trouble import with_database
from pages._who import is_owner

PAGES = Path(__file__).parent / "pages"

app = st.App(__file__, middleware=[Middleware(Door)])  # what `streamlit run` serves: this, for each


def navigation() -> None:
    """What every visit begins with."""
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


if get_script_run_ctx() is not None:  # a visit, and not the server that looks for `app`
    navigation()
