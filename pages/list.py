"""This week's list for a colleague with a link, or with the role of a reader: read-only."""

import streamlit as st

from dopl_core import studies
from dopl_core.studies import WeekList
from dopl_core.wording import _, in_this_language
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.guards import may, reader_only, store
from pages.shared.languages import choose_language, show_language_switch
from pages.shared.markdown import plain
from pages.studies import list_tab
from pages.studies.print_sheet import print_button

choose_language()
chosen = reader_only()
if chosen is None:
    st.title(_("Lists"), anchor=False)
    for one in studies.list_studies(store()):
        if may(one.id, "owner", "coordinator", "reader") and clicked(
            plain(one.title), key=f"open-{one.id}"
        ):
            st.query_params["study"] = one.id
            st.rerun()
    st.stop()

with show_errors(stop=True):
    study = studies.get_study(store(), chosen)
    made = studies.read_lists(store(), study.id, last=1)
choose_language(study.config.language)
st.title(plain(study.config.own_words(study.title)), anchor=False)
if not made:
    st.markdown(_("There is no list yet. Open this link again when the owner has made one."))
    show_language_switch()
    st.stop()


@st.fragment(run_every=5.0)
@in_this_language
def notice_a_newer_list(shown: WeekList) -> None:
    """A page that was left open says that there is a newer list, and shows it."""
    reader_only()
    with show_errors(stop=True):
        newest = studies.read_lists(store(), study.id, last=1)
    if newest != [shown]:
        st.rerun()


before = st.session_state.get("shown")
if before not in (None, made[-1]):
    words = _("There is a newer list. This page now shows it.")
    if made[-1].week < before.week:
        words = _("The owner undid the last report. This page shows the list before it again.")
    st.info(words, icon=":material/update:")
st.session_state.shown = made[-1]
notice_a_newer_list(made[-1])
list_tab.show_list(study.config, made[-1])
print_button(study, made[-1])
show_language_switch()
