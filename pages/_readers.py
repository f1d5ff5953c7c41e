"""Colleagues who read a study's list: the guard of their page, and how an owner lets them in."""

import streamlit as st

from dopl_core.studies import readers
from dopl_core.studies.readers import Reader
from dopl_core.studies.service import Study
from pages._backend import store
from pages._study import address
from pages._trouble import safely, said_plainly
from pages._who import run_the_navigation_first, turn_away
from pages._words import plain


def reader_only() -> Reader:
    """A page's guard: whose link it is; without one that is valid nobody goes on."""
    run_the_navigation_first()
    token = st.query_params.get("read")
    reader = readers.who_reads(store(), token) if token else None
    if reader is None:
        turn_away("This link opens nothing any more. Ask whoever sent it for a new one.")
    return reader


def share(study: Study) -> None:
    """A link for each colleague; it is shown once, for only its hash is kept."""
    name = st.text_input("Name of the colleague", key="reader")
    if st.button("Make a link to read", key="let-read", disabled=not name.strip()):
        with said_plainly():
            token = readers.let_read(store(), study.id, name)
            st.markdown(
                f"Send this to {plain(name)}. It is shown once, and opens the list and nothing "
                "else."
            )
            st.code(f"{address()}/list?read={token}", language=None, wrap_lines=True)
    for reader in readers.readers(store(), study.id):
        row = st.container(border=True, horizontal=True, vertical_alignment="center")
        row.text(reader.name, width="stretch")
        if reader.revoked_at:
            row.text("revoked")
        else:
            row.button(
                "Revoke",
                key=f"unread-{reader.name}-{reader.made_at}",
                on_click=safely(readers.revoke),
                args=(store(), study.id, reader.name),
            )
