"""The account of a visitor: the button to sign in, and signing out."""

import streamlit as st

from dopl_core.studies import access
from dopl_core.wording import _
from pages.shared.backend import store
from pages.shared.sign_in_settings import sign_in_settings
from pages.shared.visitors import session_token


def door_title() -> str:
    """The title of the page for visitors without a session or a link."""
    return _("You need a link") if sign_in_settings() is None else _("Sign in, or open your link")


def offer_sign_in() -> None:
    """A button to sign in at the organisation's provider, if one is configured."""
    if sign_in_settings() is not None:
        st.markdown(_("If your organisation has given you an account, sign in."))
        st.button(_("Sign in"), type="primary", key="sign-in", on_click=st.login)


def sign_out() -> None:
    """End this browser's session, in all of its tabs, and the one at the provider."""
    access.end_session(store(), session_token(st.context.headers))
    if sign_in_settings() is None:
        st.rerun()
    st.logout()  # the browser leaves this page; a rerun would drop the message that tells it so
    st.stop()
