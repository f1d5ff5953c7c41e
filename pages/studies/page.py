"""Studies: create them, invite colleagues, read the list, report, and export the data."""

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, chart_text
from pages.shared.backend import planner
from pages.shared.clicks import clicked
from pages.shared.downloads import csv_button
from pages.shared.errors import show_errors, show_last_error
from pages.shared.flash import show_flash
from pages.shared.guards import ALL_STUDIES, may, only, store, team_fragment, turn_away_unknown
from pages.shared.markdown import plain
from pages.studies import create, flags, members_tab, weekly
from pages.studies.common_tabs import (
    WAITS,
    act,
    answer_button,
    data,
    invites,
    rehearse,
    status_buttons,
)

only("owner", "coordinator")


def everything() -> None:
    """All studies, a form for a new one, and import; coordinators see those they run."""
    st.title("Studies", anchor=False)
    found = [s for s in studies.list_studies(store()) if may(s.id, "owner", "coordinator")]
    if not may(ALL_STUDIES, "owner"):
        list_all(found)
        return
    listed, new, imported = st.tabs(
        [f"Your studies ({len(found)})", "New study", "Import"],
        default="New study" if not found else None,
    )
    with listed:
        list_all(found)
        for broken in studies.list_unreadable(store()):
            row = st.container(border=True, horizontal=True, vertical_alignment="center")
            row.text(f"{broken.title} cannot be opened: {broken.why}", width="stretch")
            with row.popover("Delete"):
                if clicked("Delete it and all its answers for good", key=f"rid-{broken.id}"):
                    studies.delete_study(store(), broken.id)
                    st.rerun()
        if not found:
            st.markdown("You have no studies yet. Create one in *New study*.")
    with new:
        create.form()
    with imported:
        import_bundle()


def list_all(found: list[Study]) -> None:
    """A row for each study."""
    for study in found:
        row = st.container(border=True, horizontal=True, vertical_alignment="center")
        with row.container(gap="xsmall"):
            st.text(study.title)
            st.caption(plain(status_text(study)))
        if clicked("Open", f"open-{study.id}", row.button):
            st.query_params["study"] = study.id
            st.rerun()


def import_bundle() -> None:
    st.markdown("Import a study from a bundle: a zip file that was exported from DOPL.")
    upload = st.file_uploader("Bundle (zip)", type="zip", key="bundle")
    if upload and clicked("Import", type="primary", key="import"):
        with show_errors():
            st.query_params["study"] = studies.import_bundle(store(), upload.getvalue())
            st.rerun()


def status_text(study: Study) -> str:
    """Where a study is, for the list of all studies."""
    if study.config.world == "observed":
        return weekly.status_text(study)
    where = study.status if study.status != "running" else WAITS[study.waits_for].lower()
    return f"{chart_text.count(study.answers, 'answer')}, plan {study.episode}, {where}"


def one(study: Study) -> None:
    """The page of one study."""
    if clicked("All studies", "all-studies", icon=":material/arrow_back:", type="tertiary"):
        del st.query_params["study"]
        st.rerun()
    st.title(plain(study.title), anchor=False)
    with st.container():
        show_last_error()
    show_flash()
    if study.config.world == "observed":
        weekly.page(study)
    else:
        simulated(study)


def simulated(study: Study) -> None:
    """The page of a study in a simulated world."""
    numbers(study.id)
    with st.container(horizontal=True):
        answer_button(study, type="primary")
        if clicked("Insights", "insights", icon=":material/insights:"):
            st.switch_page("pages/insights/page.py", query_params={"study": study.id})
        if may(study.id, "owner"):
            status_buttons(study)
        if study.waits_for == "annotators" and study.given:
            act("Continue without the missing answers", "go-on", studies.close_duels, study)
    flags.show(study)
    tabs = {"Whom to help now": help_now, "Invite": invites}
    if may(study.id, "owner"):
        tabs["Members"] = members_tab.show
        tabs |= {"Rehearse": rehearse} if may(ALL_STUDIES, "owner") else {}
        tabs["Data"] = data
    for tab, show in zip(st.tabs(list(tabs)), tabs.values(), strict=True):
        with tab:
            show(study)


@st.fragment(run_every=3.0)
def numbers(study_id: str) -> None:
    """Progress of the study, refreshed every three seconds."""
    team_fragment(study_id)
    with show_errors(stop=True):
        study = studies.get_study(store(), study_id)
    if study.plan_due:
        planner().ask(study_id)  # the server stopped before the plan was made
    with st.container(horizontal=True, key="numbers"):
        st.metric("Answers", study.answers, width="content")
        st.metric("This round", f"{study.given} of {study.asked}", width="content")
        st.metric("Plan", study.episode, width="content")
        st.metric("Annotators", study.annotators, width="content")
    st.caption(f"{study.status.capitalize()}. {WAITS[study.waits_for]}.")


def help_now(study: Study) -> None:
    """Whom to help now, and why."""
    table = chart_text.help_table(studies.epoch_list(store(), study.id))
    st.markdown(
        f"**Help these {len(table)} of {study.config.n_arms} now**, the most urgent first. The "
        f"list is from plan {study.episode}."
    )
    st.dataframe(table, hide_index=True, column_config={"why": st.column_config.Column(width=420)})
    csv_button("This list (CSV)", table, f"{study.id}-list.csv", study.id)


chosen = st.query_params.get("study")
if chosen is None:
    everything()
else:
    with show_errors(stop=True):
        found = studies.get_study(store(), chosen)
    if not may(found.id, "owner", "coordinator"):
        turn_away_unknown()
    one(found)
