"""studies."""

import streamlit as st

from pages import _shared as ui

ui.owner_only()
st.title("studies")
