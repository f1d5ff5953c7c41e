"""Corrections of an earlier report: of one person, or of several people by file."""

from collections.abc import Mapping

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study
from pages.shared.clicks import clicked
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import store
from pages.shared.markdown import plain
from pages.studies import roster_mapping
from pages.studies.people_fields import name_and_id, show_some, state_control


def show(study: Study, week: int) -> None:
    """Correct what was reported at the end of a week; week 0 is the roster."""
    show_flash("correct")
    config = studies.coming_config(store(), study.id)
    names = {arm.id: name_and_id(arm.label, arm.id) for arm in config.arms}
    how = st.segmented_control(
        "How do you want to correct it?",
        ["One person", "By file"],
        default="One person",
        required=True,
        key=f"how-to-correct-{week}",
    )
    if how == "One person":
        one_person(study, week, names)
    else:
        by_file(study, week, names)


def one_person(study: Study, week: int, names: Mapping[str, str]) -> None:
    """Correct one person's state, and whether they were helped."""
    config = studies.coming_config(store(), study.id)
    known = studies.read_week(store(), study.id, week)
    arm = st.selectbox(
        f"Whose {'report' if week else 'state'} is wrong?",
        list(known),
        format_func=names.get,
        index=None,
        key=f"who-{week}",
    )
    if arm is None:
        st.caption("The next list uses the correction. The history keeps both.")
        return
    was = known[arm]
    state = state_control(config, "Correct state", was.state, key=f"really-{week}-{arm}")
    helped = was.helped
    if week:
        helped = st.checkbox("Was helped", was.helped, key=f"was-helped-{week}-{arm}")
    if clicked("Save the correction", key=f"correct-{week}"):
        with show_errors():
            marks = {arm: helped} if week and helped != was.helped else None
            studies.correct(store(), study.id, week, {arm: state}, marks)
            say_corrected(study, week, names[arm])
            st.rerun()


def by_file(study: Study, week: int, names: Mapping[str, str]) -> None:
    """Correct several people; what changes is shown before it counts."""
    with show_errors():
        done = st.session_state.get(f"corrected-{study.id}", 0)
        uploaded = roster_mapping.upload_table("Corrections", f"correction-{week}-{done}")
        if uploaded is None:
            st.caption(
                "Upload a table like a report, with only the rows that were wrong. People who are "
                "not in it stay as they are. An empty state counts as unknown."
            )
            return
        sheet, key = uploaded
        last = studies.remembered_columns(store(), study.id, "report", sheet)
        columns = roster_mapping.choose_columns(sheet, key, "report", last)
        if columns is None:
            return
        config = studies.coming_config(store(), study.id)
        report = studies.read_report(sheet, config, columns=columns, week=week)
        change = (week, report.states, report.help_marks)
        found = studies.read_correction(store(), study.id, *change)
        people = {*found.states, *found.helped}
        moved = (
            f"{names[arm]}: {was or 'unknown'} → {now or 'unknown'}"
            for arm, (was, now) in found.states.items()
        )
        show_some("Changed state", moved, "\n")
        for what, wanted in (("helped", True), ("not helped", False)):
            changed = (names[arm] for arm, (_, now) in found.helped.items() if now == wanted)
            show_some(f"Now counted as {what}", changed)
        if report.news:
            st.caption(
                plain(f"Not changed, because cards change with reports: {', '.join(report.news)}.")
            )
        many = f"{len(people)} {'person' if len(people) == 1 else 'people'}"
        if clicked(f"Correct {many}", type="primary", key=f"correct-file-{week}"):
            studies.correct(store(), study.id, *change)
            st.session_state[f"corrected-{study.id}"] = done + 1
            say_corrected(study, week, many)
            st.rerun()


def say_corrected(study: Study, week: int, whom: str) -> None:
    """A message for the next run of the page."""
    what = f"The report of {study.config.epoch_word} {week}" if week else "The roster"
    flash(f"{what} is corrected for {whom}. The next list uses it.", "correct")
