"""Studies: make them, invite people, see whom to help, say how everybody is, keep the data."""

import streamlit as st

from dopl_core.studies import findings, service
from dopl_core.studies.service import Study
from pages import _create, _owner
from pages._backend import planner, store
from pages._downloads import csv_button
from pages._duels import open_duels
from pages._study import WAITS, act, data, flags, invites, rehearse, status_buttons
from pages._trouble import said_plainly, show_trouble
from pages._who import owner_only, owner_still
from pages._words import plain

owner_only()


def everything() -> None:
    """All studies, and the ways to get another."""
    st.title("Studies", anchor=False)
    studies = service.list_studies(store())
    listed, new, imported = st.tabs(
        [f"Your studies ({len(studies)})", "New study", "Import"],
        default="New study" if not studies else None,
    )
    with listed:
        for study in studies:
            row = st.container(border=True, horizontal=True, vertical_alignment="center")
            row.text(study.title, width="stretch")
            row.text(words(study))
            if row.button("Open", key=f"open-{study.id}"):
                st.query_params["study"] = study.id
                st.rerun()
        for broken in service.list_unreadable(store()):
            row = st.container(border=True, horizontal=True, vertical_alignment="center")
            row.text(f"{broken.title} cannot be read: {broken.why}", width="stretch")
            with row.popover("Delete"):
                if st.button("Remove it with all its answers, for ever", key=f"rid-{broken.id}"):
                    service.delete_study(store(), broken.id)
                    st.rerun()
        if not studies:
            st.markdown("There are none yet. Make one in *New study*.")
    with new:
        _create.form()
    with imported:
        import_bundle()


def import_bundle() -> None:
    st.markdown("A bundle is a zip that was exported from a study, here or elsewhere.")
    upload = st.file_uploader("Bundle (zip)", type="zip", key="bundle")
    if upload and st.button("Import", type="primary", key="import"):
        with said_plainly():
            st.query_params["study"] = service.import_bundle(store(), upload.getvalue())
            st.rerun()


def words(study: Study) -> str:
    if study.config.world == "observed":
        return _owner.where_it_is(study)
    where = study.status if study.status != "running" else WAITS[study.waits_for]
    return f"{study.answers} answers, plan {study.episode}, {where}"


def one(study: Study) -> None:
    """All about one study."""
    if st.button("All studies", icon=":material/arrow_back:", type="tertiary"):
        del st.query_params["study"]
        st.rerun()
    st.title(plain(study.title), anchor=False)
    with st.container():
        show_trouble()
    if study.config.world == "observed":
        _owner.page(study)
    else:
        simulated(study)


def simulated(study: Study) -> None:
    """A study whose world moves by itself."""
    numbers(study.id)
    with st.container(horizontal=True):
        if st.button("Answer duels", type="primary", disabled=study.status != "running"):
            open_duels(study.id)
        if st.button("Insights", icon=":material/insights:"):
            st.switch_page("pages/insights.py", query_params={"study": study.id})
        status_buttons(study)
        if study.waits_for == "annotators" and study.given:
            act("Go on without the missing answers", "go-on", service.close_duels, study)
    flags(study)
    tabs = {"Whom to help now": help_now, "Invite": invites, "Rehearse": rehearse, "Data": data}
    for tab, show in zip(st.tabs(list(tabs)), tabs.values(), strict=True):
        with tab:
            show(study)


@st.fragment(run_every=3.0)
def numbers(study_id: str) -> None:
    """How far it is, live."""
    owner_still()
    with said_plainly(stop=True):
        study = service.get_study(store(), study_id)
    if study.plan_due:
        planner().ask(study_id)  # the server was stopped before it could
    with st.container(horizontal=True, key="numbers"):
        st.metric("Answers", study.answers, width="content")
        st.metric("This round", f"{study.given} of {study.asked}", width="content")
        st.metric("Plan", study.episode, width="content")
        st.metric("People", study.annotators, width="content")
    st.caption(f"{study.status}, {WAITS[study.waits_for]}")


def help_now(study: Study) -> None:
    table = findings.help_table(service.epoch_list(store(), study.id))
    st.markdown(
        f"**{len(table)} of {study.config.n_arms} to help now**, the most urgent first, by plan "
        f"{study.episode}."
    )
    st.dataframe(table, hide_index=True, column_config={"why": st.column_config.Column(width=420)})
    csv_button("This list (CSV)", table, f"{study.id}-list.csv")


chosen = st.query_params.get("study")
if chosen is None:
    everything()
else:
    with said_plainly(stop=True):
        found = service.get_study(store(), chosen)
    one(found)
