"""Account: who is signed in with this browser, and signing out."""

import streamlit as st

from pages.shared.account import sign_out
from pages.shared.errors import show_errors
from pages.shared.guards import only, visitor
from pages.shared.markdown import plain

only("owner", "coordinator", "reader", "annotator")

st.title("Account", anchor=False)
actor = visitor()
if actor.came_by == "local":
    st.markdown("You are the owner because you use the app on its own computer.")
    st.stop()

st.markdown(f"You are signed in as **{plain(actor.name)}**.")
st.markdown("Signing out ends all tabs of this browser. Do it before somebody else uses it.")
if st.button("Sign out", type="primary", key="sign-out"):
    with show_errors():
        sign_out()
