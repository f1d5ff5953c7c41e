"""A study's list for a colleague with a link: to read, and nothing else."""

import streamlit as st

from dopl_core.studies import service
from pages import _lists
from pages._backend import store
from pages._sheet import sheet
from pages._trouble import said_plainly
from pages._who import reader_only
from pages._words import plain

reader = reader_only()

with said_plainly(stop=True):
    study = service.get_study(store(), reader.study)
    made = service.read_lists(store(), study.id, last=1)
st.title(plain(study.title), anchor=False)
if not made:
    st.markdown("There is no list yet.")
    st.stop()
_lists.one(study.config, made[-1])
st.download_button(
    "Sheet to print",
    sheet(study.title, study.config, made[-1]),
    f"{made[-1].word}-{made[-1].week}.html",
    "text/html",
    icon=":material/print:",
)
