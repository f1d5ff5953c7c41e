"""The web app: its pages, who may see which, and the middleware in front of them."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dopl_core.studies import ALL_STUDIES
from dopl_core.wording import _
from pages.shared.backend import planner, store
from pages.shared.clicks import forget_click
from pages.shared.errors import with_database
from pages.shared.guards import visitor
from pages.shared.heap import share_one_heap
from pages.shared.languages import prepare_language
from pages.shared.middleware import AccessControl
from pages.shared.sign_in_settings import check_sign_in
from pages.shared.visitors import has_role

PAGES = Path(__file__).parent / "pages"

# Without this, the first request to a fresh server would run pages/name.py directly for /name, and
# show "Page not found" for pages in folders. Streamlit does so for apps without st.navigation.
PagesManager.uses_pages_directory = False

app = st.App(__file__, middleware=[Middleware(AccessControl)])  # served by `streamlit run`


def navigation() -> None:
    """Choose and run the page of this visit."""
    st.set_page_config(page_title="DOPL", page_icon=str(PAGES / "icon.svg"), layout="wide")
    st.html(PAGES / "style.css")
    prepare_language()
    home = _page("home.py", "Home", "home", default=True)
    annotate = _page("annotate/page.py", "Annotate", "balance")
    studies = _page("studies/page.py", "Studies", "groups")
    insights = _page("insights/page.py", "Insights", "insights")
    simulate = _page("simulate.py", "Simulate", "play_circle")
    guides = _page("help.py", "Help", "help")
    reader = _page("list.py", "List", "list")
    account = _page("account.py", "Account", "person")
    audit = _page("audit.py", "Audit", "policy")
    with with_database():
        store()
        planner()
        if "read" in st.query_params:
            page = st.navigation([home, reader], position="hidden")
        elif "invite" in st.query_params:
            page = st.navigation([home, annotate], position="hidden")
        elif not (actor := visitor()).roles:  # each page turns them away and offers to sign in
            closed = [studies, insights, simulate, guides, reader, account, audit]
            page = st.navigation([home, annotate, *closed], position="hidden")
        elif "owner" in actor.roles_in(ALL_STUDIES):
            everything = [home, annotate, studies, insights, simulate, audit, guides]
            everything += [account] * (actor.came_by != "local")
            page = st.navigation(everything, position="top")
        elif has_role(actor, "owner", "coordinator"):
            own = [home, studies, insights, guides]
            own += [annotate] * has_role(actor, "owner", "annotator")
            own += [reader] * has_role(actor, "reader") + [audit] * has_role(actor, "owner")
            page = st.navigation([*own, account], position="top")
        else:  # annotators and readers see pages in their language
            annotate = _page("annotate/page.py", _("Annotate"), "balance")
            reader = _page("list.py", _("List"), "list")
            account = _page("account.py", _("Account"), "person")
            own = [annotate] * has_role(actor, "annotator") + [reader] * has_role(actor, "reader")
            home = _page("home.py", _("Home"), "home", default=True)
            page = st.navigation([home, *own, account], position="top")
        page.run()
    forget_click()


def _page(file: str, title: str, icon: str, default: bool = False) -> StreamlitPage:
    address = None if default else file.split("/")[0].removesuffix(".py")
    icon = f":material/{icon}:"
    return st.Page(PAGES / file, title=title, icon=icon, url_path=address, default=default)


if get_script_run_ctx(suppress_warning=True) is not None:
    navigation()
else:  # the server imports `app`
    share_one_heap()
    check_sign_in()
