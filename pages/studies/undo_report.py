"""Undoing the latest report: offered right after it, and in the Report tab."""

import streamlit as st

from dopl_core import studies
from dopl_core.studies import LastReport, Study
from pages.shared.errors import last_click_failed, safely
from pages.shared.flash import flash
from pages.shared.guards import store
from pages.shared.markdown import plain


def offer_right_after(study: Study) -> None:
    """A line under the steps of the week, for an hour after a report.

    The container is always there: tabs that move would forget which one is open.
    """
    last = studies.last_report(store(), study.id)
    with st.container(horizontal=True, vertical_alignment="center", key="last-report"):
        if last is not None and last.is_recent and study.status != "closed":
            word = plain(study.config.epoch_word)
            sent = f"{last.when.capitalize()} you sent the report of {word} {last.week}."
            st.caption(sent, width="content")
            _popover(study, last, "Undo this report", "now")


def offer(study: Study) -> None:
    """The same at the end of the Report tab, once it is gone from above the tabs."""
    last = studies.last_report(store(), study.id)
    if last is not None and not last.is_recent:
        st.divider()
        label = plain(f"Undo the report of {study.config.epoch_word} {last.week}")
        _popover(study, last, label, "tab")


def _popover(study: Study, last: LastReport, label: str, key: str) -> None:
    """What undoing means, and the button that does it."""
    word, week = plain(study.config.epoch_word), last.week
    # Named after the week: it closes when the report is undone, and does not offer the next one.
    with st.popover(label, icon=":material/undo:", key=f"undo-{key}-{week}"):
        st.markdown(
            f"The list of {word} {week} opens again as it was. Your report and the list of {word} "
            f"{week + 1} do not count any more. Answers still count."
        )
        st.button(
            f"Undo the report of {word} {week} now",
            key=f"undo-report-{key}",
            on_click=undo,
            args=(study, week),
        )


def undo(study: Study, week: int) -> None:
    """Undo the report once, and show the list that is open again."""
    safely(lambda: studies.undo_report(store(), study.id, week))()
    if not last_click_failed():
        word = study.config.epoch_word
        st.session_state.go_to = "List"
        flash(f"The report of {word} {week} is undone. The list of {word} {week} is open again.")
