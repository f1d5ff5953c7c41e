"""Links from pages to the guides."""

import streamlit as st


def help_link(guide: str, label: str) -> None:
    """A link to a guide on the Help page; it opens in a new tab, so that no form is lost.

    guide: the file's name in data/guides, without .md
    """
    st.markdown(f":material/help: [{label}](help?guide={guide})")
