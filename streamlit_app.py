"""The web app: `streamlit run` finds `app` here, and serves entrance.py behind our own door."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from pages._door import Door

app = st.App(Path(__file__).parent / "entrance.py", middleware=[Middleware(Door)])
