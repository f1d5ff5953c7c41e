"""Tabs and buttons of every study: invitations, rehearsal, data, status."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, access
from pages.shared.backend import run_in_background
from pages.shared.clicks import clicked
from pages.shared.copy_button import copy_button
from pages.shared.downloads import csv_button, file_button
from pages.shared.duel_cards import open_duels
from pages.shared.errors import safely, show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import may, store
from pages.shared.help_link import help_link
from pages.studies import erasure, invitations, judges, publish

WAITS = {
    "annotators": "Waiting for answers",
    "owner": "Waiting for your report",
    "plan": "The next plan is being made",
    "nobody": "Complete",
}


def status_buttons(study: Study) -> None:
    """Buttons that pause, reopen and close a study."""
    if study.status == "running":
        act("Pause", "pause", studies.pause_study, study)
    else:
        act("Reopen", "reopen", studies.reopen_study, study)
    if study.status != "closed":
        act("Close", "close", studies.close_study, study)


def act(label: str, key: str, do: Callable[..., object], study: Study) -> None:
    """A button that calls do(store, study id)."""
    st.button(label, key=key, on_click=safely(do), args=(store(), study.id))


def answer_button(study: Study, **options: Any) -> None:
    """A button that opens the comparisons, for people who may answer them."""
    if may(study.id, "owner", "annotator") and clicked(
        "Answer", key="answer", disabled=study.status != "running", **options
    ):
        open_duels(study.id)


def invites(study: Study) -> None:
    """Links for annotators."""
    st.markdown(
        "Each colleague gets a link of their own. It opens the comparisons of this study and "
        "nothing else."
    )
    help_link("coordinator", "How to invite and coordinate annotators")
    invitations.links(study, "duels")
    if study.config.world == "observed":
        judges.show(study)
    reminder(study)
    participants(study)
    erasure.annotator(study)


def reminder(study: Study) -> None:
    """Who is asked for how many answers now, as text to copy."""
    with show_errors():
        found = studies.due_rows(studies.due(store(), study.id))
        if found:
            with st.expander("Who is asked for answers now", icon=":material/mail:"):
                text = invitations.reminder_text(study, found)
                st.text(text)
                copy_button("Copy the text", text, "copy-reminder")


def participants(study: Study) -> None:
    """Participants of panels: their answers and codes, and ids that another browser may take."""
    if study.config.completion_code and not study.config.quota:
        st.warning(
            "Nobody sees the completion code: it needs a number of answers. Set *Most answers from "
            "each person* in the settings."
        )
    found = studies.participants(store(), study.id)
    if found.empty:
        return
    with st.expander(f"Participants: {len(found)}", icon=":material/groups:"):
        csv_button("Participants and codes (CSV)", found, f"{study.id}-participants.csv", study.id)
        st.markdown(
            "An id belongs to the browser that first used it. Release it if a participant changes "
            "the browser. The next browser that uses the id continues with their answers."
        )
        names = found.link + ", " + found.participant
        chosen = st.selectbox("Participant", found.index, format_func=names.get, key="participant")
        who = (study.id, found.link[chosen], found.participant[chosen])
        st.button("Release", key="release", on_click=safely(release), args=who)
        show_flash("release")


def release(study: str, link: str, participant: str) -> None:
    access.release_seat(store(), study, link, participant)
    flash(f"Another browser can now use the id {participant}.", "release")


def rehearse(study: Study) -> None:
    """Simulated annotators answer a copy, so that the real study has only real answers."""
    st.markdown(
        "Simulated annotators answer a copy of this study. See how long a round takes and what the "
        "insights will look like. Your study stays as it is."
    )
    left, right = st.columns(2)
    people = left.number_input("Annotators", 1, 50, 5, key="rehearsal-people")
    answers = right.number_input("Answers", 1, 5000, 200, key="rehearsal-answers")
    if clicked("Rehearse on a copy", key="rehearse"):
        with show_errors():
            own = {"title": f"Rehearsal: {study.title}", "annotator_limits": ""}
            config = replace(study.config, **own)
            copy = studies.create_study(store(), config)
            run_in_background(
                "rehearse", copy, "--annotators", people, "--answers", answers, "--think", 0.4
            )
            st.query_params["study"] = copy
            if study.config.world == "observed":
                st.session_state.go_to = "List"
            flash("This is the copy. Simulated annotators answer it now. Your study is unchanged.")
            st.rerun()


def _columns_to_keep(study: Study) -> list[str]:
    """What an export without names still has, and the columns that the owner keeps in it."""
    st.caption(
        "It still has title, question, states, times, answers, lists and the number of people. It "
        "shows who shares a group, but not the group's name."
    )
    cards = studies.read_cards(store(), study.id).values()
    columns = list(dict.fromkeys(column for cells in cards for column in cells))
    if not columns:
        return []
    help_text = "Choose only columns by which nobody can be recognised."
    return st.multiselect("Columns to keep", columns, key="keep-columns", help=help_text)


def data(study: Study) -> None:
    """Protocol, export and delete."""
    publish.show_fixed(study)
    st.caption(
        "A bundle holds the whole study, without links and photos. Import it on another server, or "
        "on this one if this study is no longer here."
    )
    nameless = st.checkbox(
        "Without names",
        key="without-names",
        help="Names and ids of real people are replaced by numbers. Columns and comments are left "
        "out.",
    )
    keep = _columns_to_keep(study) if nameless else []
    file_button(
        "Bundle without names (zip)" if nameless else "Bundle (zip)",
        lambda: studies.export_bundle(store(), study.id, nameless, keep),
        f"{study.id}.zip",
        "application/zip",
        key=f"export-{'nameless' if nameless else 'whole'}",
    )
    csv_button(
        "All answers (CSV)",
        lambda: studies.answers(store(), study.id, without_names=nameless),
        f"{study.id}-answers.csv",
        study.id,
    )
    if not nameless and len(flags := studies.flags(store(), study.id)):
        csv_button("All flags (CSV)", flags, f"{study.id}-flags.csv", study.id)
    erasure.everybody(study)
    with st.expander("Delete this study"):
        sure = st.checkbox("Yes, delete this study and all its answers for good", key="sure")
        if clicked("Delete", key="delete", disabled=not sure):
            with show_errors():
                studies.delete_study(store(), study.id)
                del st.query_params["study"]
                st.rerun()
