"""Studies: make them, invite people, see whom to help, say how everybody is, keep the data."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st

from dopl_core.studies import access, findings, service
from dopl_core.studies.service import Study
from pages import _create
from pages._backend import planner, run_beside, store
from pages._downloads import csv_button
from pages._duels import open_duels
from pages._trouble import safely, said_plainly, show_trouble
from pages._who import owner_only
from pages._words import plain

owner_only()

WAITS = {
    "annotators": "waiting for answers",
    "owner": "waiting for your report",
    "plan": "planning",
    "nobody": "complete",
}


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
    where = study.status if study.status != "running" else WAITS[study.waits_for]
    return f"{study.answers} answers, plan {study.episode}, {where}"


def one(study: Study) -> None:
    """All about one study."""
    if st.button("All studies", icon=":material/arrow_back:", type="tertiary"):
        del st.query_params["study"]
        st.rerun()
    st.title(plain(study.title), anchor=False)
    show_trouble()
    numbers(study.id)
    with st.container(horizontal=True):
        if st.button("Answer duels", type="primary", disabled=study.status != "running"):
            open_duels(study.id)
        if st.button("Insights", icon=":material/insights:"):
            st.switch_page("pages/insights.py", query_params={"study": study.id})
        status_buttons(study)
    tabs = ["Whom to help now", "Invite", "Rehearse", "Data"]
    if study.config.world == "observed":
        tabs.insert(1, "Report")
    places = dict(zip(tabs, st.tabs(tabs), strict=True))
    with places["Whom to help now"]:
        help_now(study)
    if "Report" in places:
        with places["Report"]:
            report(study)
    with places["Invite"]:
        invites(study)
    with places["Rehearse"]:
        rehearse(study)
    with places["Data"]:
        data(study)


@st.fragment(run_every=3.0)
def numbers(study_id: str) -> None:
    """How far it is, live."""
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


def status_buttons(study: Study) -> None:
    if study.status == "running":
        act("Pause", "pause", service.pause_study, study)
    else:
        act("Reopen", "reopen", service.reopen_study, study)
    if study.status != "closed":
        act("Close", "close", service.close_study, study)
    if study.waits_for == "annotators" and study.given:
        act("Go on without the missing answers", "go-on", service.close_duels, study)


def act(label: str, key: str, do: Callable[..., None], study: Study) -> None:
    st.button(label, key=key, on_click=safely(do), args=(store(), study.id))


def help_now(study: Study) -> None:
    table = findings.help_table(service.epoch_list(store(), study.id))
    st.markdown(
        f"**{len(table)} of {study.config.n_arms} to help now**, the most urgent first, by plan "
        f"{study.episode}."
    )
    st.dataframe(table, hide_index=True, column_config={"why": st.column_config.Column(width=420)})
    csv_button("This list (CSV)", table, f"{study.id}-list.csv")


def report(study: Study) -> None:
    """Where everybody is now, by table or by file."""
    config = study.config
    if study.epoch >= config.horizon:
        st.markdown("All epochs of this plan are reported. The next plan waits for the answers.")
        return
    st.markdown(
        f"**Epoch {study.epoch + 1} of {config.horizon}:** after helping those on the list, say "
        "where everybody is now. Everybody starts where they were; change what has changed."
    )
    now = service.present_states(store(), study.id)
    rows = [(arm.id, arm.label, now[arm.id]) for arm in config.arms]
    labels = [state.label for state in config.states]
    edited = st.data_editor(
        pd.DataFrame(rows, columns=["id", "name", "state"]),
        hide_index=True,
        disabled=["id", "name"],
        column_config={
            "state": st.column_config.SelectboxColumn("state now", options=labels, required=True)
        },
        key=f"report-{study.episode}-{study.epoch}",
    )
    if st.button("Report these states", type="primary", key="report"):
        send_report(study, dict(zip(edited.id, edited.state, strict=True)))
    upload = st.file_uploader(
        "or a CSV with id and state, and what is newly known", type="csv", key="report-file"
    )
    if upload and st.button("Report this file", key="report-csv"):
        with said_plainly():
            read = service.read_report(upload.getvalue(), config, upload.name)
            send_report(study, read.states, read.columns)


def send_report(study: Study, states: dict[str, str], columns=None) -> None:
    with said_plainly():
        if service.observe(store(), study.id, states, columns):
            planner().wait(study.id, seconds=20)
        st.rerun()


def invites(study: Study) -> None:
    """A link for each person; it is shown once, for only its hash is kept."""
    name = st.text_input("Name of the person to invite", key="invitee")
    if st.button("Make a link", key="invite", disabled=not name.strip()):
        with said_plainly():
            token = access.invite(store(), study.id, name)
            st.markdown(f"Send this to {plain(name)}. It is shown once, and opens only duels.")
            st.code(f"{address()}/annotate?invite={token}", language=None, wrap_lines=True)
    for invite in access.invites(store(), study.id):
        row = st.container(border=True, horizontal=True, vertical_alignment="center")
        row.text(invite.annotator, width="stretch")
        if invite.revoked_at:
            row.text("revoked")
        else:
            row.button(
                "Revoke",
                key=f"revoke-{invite.annotator}-{invite.made_at}",
                on_click=safely(access.revoke),
                args=(store(), study.id, invite.annotator),
            )


def address() -> str:
    """Where the app is, as its visitors know it."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}" + parts.path.rpartition("/")[0]


def rehearse(study: Study) -> None:
    """Simulated annotators play a copy, so that no made-up answer is among the real ones."""
    st.markdown(
        "Let simulated annotators answer a copy of this study, through the same doors as people: "
        "see how long a round takes, and what the insights will look like."
    )
    left, right = st.columns(2)
    people = left.number_input("Annotators", 1, 50, 5, key="rehearsal-people")
    answers = right.number_input("Answers", 1, 5000, 200, key="rehearsal-answers")
    if st.button("Rehearse on a copy", key="rehearse"):
        with said_plainly():
            config = replace(study.config, title=f"Rehearsal: {study.title}")
            copy = service.create_study(store(), config)
            run_beside(
                "rehearse", copy, "--annotators", people, "--answers", answers, "--think", 0.4
            )
            st.query_params["study"] = copy
            st.rerun()


def data(study: Study) -> None:
    """Export, and delete."""
    st.download_button(
        "Everything as a bundle (zip)",
        lambda: service.export_bundle(store(), study.id),
        f"{study.id}.zip",
        "application/zip",
        key="export",
    )
    csv_button(
        "All answers (CSV)",
        lambda: service.answers(store(), study.id),
        f"{study.id}-answers.csv",
    )
    with st.expander("Delete this study"):
        sure = st.checkbox("Yes, remove it with all its answers, for ever", key="sure")
        if st.button("Delete", key="delete", disabled=not sure):
            with said_plainly():
                service.delete_study(store(), study.id)
                del st.query_params["study"]
                st.rerun()


chosen = st.query_params.get("study")
if chosen is None:
    everything()
else:
    with said_plainly(stop=True):
        found = service.get_study(store(), chosen)
    one(found)
