"""The box around a finding: its title, its note, its chart or table, and its data as CSV."""

from collections.abc import Iterator
from contextlib import contextmanager

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core.studies import Study, chart_text
from pages.shared.downloads import csv_button
from pages.shared.markdown import plain

_PERCENT_COLUMNS = (
    "weight",
    "left",
    "consistency",
    "correct on obvious pairs",
    "agrees with others",
    "probability",
)


@contextmanager
def finding_box(
    finding: chart_text.Finding, name: str, study: Study, folded: str = ""
) -> Iterator[None]:
    """A box with the finding's title, note and data; draw the chart in between.

    name: of the CSV file;  folded: the label under which the box is folded, if it is
    """
    with st.expander(folded) if folded else st.container(border=True, height="stretch"):
        st.markdown(f"**{plain(finding.title)}**")
        if finding.note:
            st.caption(plain(finding.note))
        yield
        if len(finding.data):
            csv_button(
                "Data (CSV)",
                finding.data,
                f"{study.id}-{name}.csv",
                study.id,
                key=f"csv-{name}",
                type="tertiary",
                icon=":material/download:",
            )


def show_chart(
    finding: chart_text.Finding, name: str, study: Study, chart: alt.Chart | alt.LayerChart
) -> None:
    """A finding with its chart, if there are data."""
    with finding_box(finding, name, study):
        if len(finding.data):
            st.altair_chart(chart)


def show_table(finding: chart_text.Finding, name: str, study: Study) -> None:
    """A finding with its data as a table."""
    with finding_box(finding, name, study):
        if len(finding.data):
            shown = finding.data
            if "probability" in shown:
                shown = shown.assign(probability=(100 * shown.probability).round())
            columns = _wide_columns(shown) | _column_formats()
            st.dataframe(shown, hide_index=True, column_config=columns, placeholder="")


def _wide_columns(table: pd.DataFrame) -> dict[str, object]:
    """Columns as wide as their longest text: two long names may differ only at the end."""
    texts = table.select_dtypes(["object", "string"])
    longest = {name: max(len(name), texts[name].astype(str).str.len().max()) for name in texts}
    return {
        name: st.column_config.Column(width=int(min(600, 30 + 7 * most)))
        for name, most in longest.items()
        if most > 14
    }


def _column_formats() -> dict[str, object]:
    percent = st.column_config.NumberColumn(format="%d %%")
    last = st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm", timezone=st.context.timezone)
    return {
        "last answer": last,
        "time": last,
        **dict.fromkeys(_PERCENT_COLUMNS, percent),
    }
