"""The Members tab: which role people have who sign in, in one study or in all."""

import streamlit as st

from dopl_core import studies
from dopl_core.studies import ALL_STUDIES, ROLES, Study
from pages.shared.clicks import clicked
from pages.shared.errors import safely, show_errors
from pages.shared.guards import may, store
from pages.shared.help_link import help_link
from pages.shared.sign_in_settings import sign_in_settings

MEANINGS = {
    "owner": "everything",
    "coordinator": "people, reports, lists, invitations, insights",
    "reader": "lists",
    "annotator": "comparisons",
}


def show(study: Study) -> None:
    """Members of this study; owners of all studies see those of all studies too."""
    st.markdown(
        "People who sign in get a role by their email address, or by another claim of your "
        "provider, such as a group. A change holds at their next click."
    )
    if sign_in_settings() is None:
        st.info(
            "Nobody signs in on this server yet, so roles have no effect. Colleagues with a link "
            "need no role."
        )
    help_link("server", "How people sign in, and what each role may do")
    rows(study.id)
    if may(ALL_STUDIES, "owner"):
        with st.expander("Members of all studies"):
            rows(ALL_STUDIES)


def rows(study: str) -> None:
    """The members of a study, or of all, and a form for one more."""
    for member in studies.list_members(store(), study):
        row = st.container(border=True, horizontal=True, vertical_alignment="center")
        row.text(f"{member.claim}: {member.value}", width="stretch")
        row.text(member.role.capitalize())
        row.button(
            "Remove",
            key=f"remove-{study}-{member.claim}-{member.value}",
            on_click=safely(studies.remove_member),
            args=(store(), study, member.value, member.claim),
        )
    with st.form(f"member-{study}", clear_on_submit=True):
        left, middle, right = st.columns(3)
        claim = left.text_input("Claim", "email", key=f"claim-{study}")
        value = middle.text_input("Value, such as an address", key=f"value-{study}")
        role = right.selectbox(
            "Role",
            ROLES,
            index=ROLES.index("reader"),
            format_func=lambda one: f"{one.capitalize()}: {MEANINGS[one]}",
            key=f"role-{study}",
        )
        if clicked("Add the member", f"add-member-{study}", st.form_submit_button):
            with show_errors():
                studies.add_member(store(), study, value, role, claim)
                st.rerun()
