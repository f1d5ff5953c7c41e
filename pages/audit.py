"""Audit: who looked at what, changed what or was refused, and for how long this is kept."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import ALL_STUDIES, AUDIT_COLUMNS
from pages.shared.clicks import clicked
from pages.shared.downloads import csv_button
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import may, only, store
from pages.shared.help_link import help_link

MOST_ROWS = 5_000

only("owner")


def keep() -> None:
    """For how long the trail is kept."""
    with st.expander("How long it is kept"):
        days = st.number_input("Days", value=studies.audit_days(store()), step=1, key="audit-days")
        st.caption("`dopl retain` deletes what is older.")
        show_flash("audit-days")
        if clicked("Save", key="save-audit-days"):
            with show_errors():
                studies.keep_audit(store(), days)
                flash(f"Saved: {days} days.", "audit-days")
                st.rerun()


def filtered(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that the filters leave."""
    left, middle, right = st.columns(3)
    who = left.multiselect("Person", sorted(set(table.who)), key="who", select_all=False)
    act = middle.multiselect("Act", sorted(set(table.act)), key="act", select_all=False)
    days = right.date_input("Days from and to", value=[], key="days")
    if who:
        table = table[table.who.isin(who)]
    if act:
        table = table[table.act.isin(act)]
    if len(days) == 2:
        day = table.time.dt.date
        table = table[(day >= days[0]) & (day <= days[1])]
    if st.checkbox("Only refused tries", key="refused"):
        table = table[table.refused]
    return table


st.title("Audit", anchor=False)
st.markdown(
    "Who looked at data of people, changed something, or was refused. It names studies, weeks and "
    "numbers, never the people in a study. A word alone, such as *list*, is a look. Times are UTC."
)
help_link("server", "Roles and the audit trail")
titles = {one.id: one.title for one in studies.list_studies(store()) if may(one.id, "owner")}
everywhere = [ALL_STUDIES] if may(ALL_STUDIES, "owner") else []
chosen = st.selectbox(
    "Study",
    [*everywhere, *titles],
    format_func=lambda study: titles.get(study, "All studies, and sign-in"),
    key="audit-study",
)
with show_errors(stop=True):
    found = studies.read_audit(store(), chosen, MOST_ROWS)
table = pd.DataFrame(studies.audit_rows(found), columns=list(AUDIT_COLUMNS))
table["time"] = pd.to_datetime(table.time)
shown = filtered(table)
st.dataframe(shown, hide_index=True)
if len(found) == MOST_ROWS:
    st.caption(f"The newest {MOST_ROWS} rows are shown. `dopl audit` prints all.")
csv_button("These rows (CSV)", shown, "audit.csv", chosen)
if may(ALL_STUDIES, "owner"):
    keep()
