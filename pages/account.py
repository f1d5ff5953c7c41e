"""Account: who is signed in with this browser, and signing out."""

import streamlit as st

from dopl_core.wording import _
from pages.shared.account import sign_out
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.guards import only, visitor
from pages.shared.markdown import plain

only("owner", "coordinator", "reader", "annotator")

st.title(_("Account"), anchor=False)
actor = visitor()
if actor.came_by == "local":
    st.markdown(_("You are the owner because you use the app on its own computer."))
    st.stop()

st.markdown(_("You are signed in as **{name}**.").format(name=plain(actor.name)))
st.markdown(_("Signing out ends all tabs of this browser. Do it before somebody else uses it."))
if clicked(_("Sign out"), type="primary", key="sign-out"):
    with show_errors():
        sign_out()
