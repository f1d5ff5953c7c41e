"""What the page of any study has: people to invite, a rehearsal, its data, its status."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import streamlit as st

from dopl_core.studies import access, service
from dopl_core.studies.service import Study
from pages._backend import run_beside, store
from pages._downloads import csv_button, made_button
from pages._trouble import safely, said_plainly
from pages._words import plain

WAITS = {
    "annotators": "waiting for answers",
    "owner": "waiting for your report",
    "plan": "planning",
    "nobody": "complete",
}


def status_buttons(study: Study) -> None:
    """Pause, reopen, close."""
    if study.status == "running":
        act("Pause", "pause", service.pause_study, study)
    else:
        act("Reopen", "reopen", service.reopen_study, study)
    if study.status != "closed":
        act("Close", "close", service.close_study, study)


def act(label: str, key: str, do: Callable[..., object], study: Study) -> None:
    """A button that does something with a study."""
    st.button(label, key=key, on_click=safely(do), args=(store(), study.id))


def invites(study: Study) -> None:
    """Links for annotators."""
    links(study, "duels", "Name of the person to invite", "annotate?invite")


def links(study: Study, opens: access.Opens, whose: str, path: str) -> None:
    """A link for each person; it is shown once, for only its hash is kept."""
    name = st.text_input(whose, key=f"whose-{opens}")
    if st.button("Make a link", key=f"link-{opens}", disabled=not name.strip()):
        with said_plainly():
            token = access.invite(store(), study.id, name, opens)
            what = "only duels" if opens == "duels" else "the list and nothing else"
            st.markdown(f"Send this to {plain(name)}. It is shown once, and opens {what}.")
            st.code(f"{address()}/{path}={token}", language=None, wrap_lines=True)
    for link in access.invites(store(), study.id, opens):
        row = st.container(border=True, horizontal=True, vertical_alignment="center")
        row.text(link.annotator, width="stretch")
        if link.revoked_at:
            row.text("revoked")
        else:
            row.button(
                "Revoke",
                key=f"revoke-{opens}-{link.annotator}-{link.made_at}",
                on_click=safely(access.revoke),
                args=(store(), study.id, link.annotator, opens),
            )


def address() -> str:
    """Where the app is, as its visitors know it."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}" + parts.path.rpartition("/")[0]


def flags(study: Study) -> None:
    """What annotators found wrong with cards, if anything."""
    told = service.flags(store(), study.id)
    if told.empty:
        return
    many = "1 card was flagged" if len(told) == 1 else f"{len(told)} cards were flagged"
    with st.expander(f"{many} by annotators", icon=":material/flag:"):
        for row in told.head(20).itertuples():
            about = row.about or f"{row.left_arm} or {row.right_arm}"
            st.text(f"{row.at:%Y-%m-%d %H:%M} {row.annotator}, about {about}: {row.comment}")
        csv_button("All of them (CSV)", told, f"{study.id}-flags.csv")


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
    pseudonyms = st.checkbox(
        "Without the names of those who answer",
        key="pseudonyms",
        help='The bundle and the answers have "annotator 1" and so on in their place.',
    )
    made_button(
        "Everything but names as a bundle (zip)" if pseudonyms else "Everything as a bundle (zip)",
        lambda: service.export_bundle(store(), study.id, pseudonyms),
        f"{study.id}.zip",
        "application/zip",
        key=f"export-{'nameless' if pseudonyms else 'whole'}",
    )
    csv_button(
        "All answers (CSV)",
        lambda: service.answers(store(), study.id, pseudonyms=pseudonyms),
        f"{study.id}-answers.csv",
    )
    with st.expander("Delete this study"):
        sure = st.checkbox("Yes, remove it with all its answers, for ever", key="sure")
        if st.button("Delete", key="delete", disabled=not sure):
            with said_plainly():
                service.delete_study(store(), study.id)
                del st.query_params["study"]
                st.rerun()
