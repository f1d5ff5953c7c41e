"""The List tab: whom to help and why, and earlier lists with their outcomes."""

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, StudyConfig, WeekList
from dopl_core.wording import _, format_number, ngettext, numbered_week
from pages.shared.clicks import clicked
from pages.shared.downloads import csv_button, xlsx_button
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import store
from pages.shared.help_link import help_link
from pages.shared.markdown import plain
from pages.studies import corrections, invitations
from pages.studies.list_table import list_table
from pages.studies.people_fields import name_and_id
from pages.studies.print_sheet import date, print_button

MOST_ROWS = 60  # a longer list is shown as a table


def show(study: Study) -> None:
    """This week's list, or an earlier one."""
    made = studies.read_lists(store(), study.id)
    if not made:
        st.markdown(
            "The first list is made after the first round. Invite colleagues in *Invite*, or "
            "answer yourself."
        )
        return
    newest = made[-1]
    chosen = newest
    if len(made) > 1:
        weeks = {one.week: one for one in reversed(made)}
        week = st.selectbox(
            f"Choose a {plain(newest.word)}",
            list(weeks),
            format_func=lambda number: _name(weeks[number]),
            key=f"week of {newest.week}",
        )
        chosen = weeks[week]
    show_list(study.config, chosen)
    downloads(study, chosen)
    help_link("owner", "How to read the list")
    if chosen.reported:
        with st.expander(f"Correct the report of {plain(chosen.word)} {chosen.week}"):
            corrections.show(study, chosen.week)
    else:
        with st.expander("Why is somebody on the list or not?", icon=":material/help:"):
            why(study)
        if study.status != "closed":
            with st.expander("Change this list", icon=":material/edit:"):
                change(study, chosen)
        if chosen.week == 1:
            with st.expander("Correct a state in the roster"):
                corrections.show(study, 0)
    with st.expander("Share the list with a colleague (read-only link)"):
        invitations.links(study, "list")


def show_list(config: StudyConfig, week: WeekList) -> None:
    """The list of a week; read-only links show the same."""
    listed, here = len(week.listed), int(config.present.sum())
    head = _("**{week}: help these {listed} of {people}**, the most urgent first. Made on {day}.")
    if listed == 1:
        head = _("**{week}: help this one of {people}**. Made on {day}.")
    people = studies.counted_people(config.noun, here)
    if week.reported:  # the number of people may have changed since then
        head = ngettext(
            "**{week}: {people} was on the list**. Made on {day}.",
            "**{week}: {people} were on the list**, the most urgent first. Made on {day}.",
            listed,
        )
        people = studies.counted_people(config.noun, listed)
    head = head.format(
        week=plain(numbered_week(week.word, week.week)),
        people=plain(people),
        listed=format_number(listed),
        day=date(week),
    )
    st.markdown(f"{head} {answers_text(week)}")
    if short := studies.short_list_text(week):
        st.caption(plain(short))
    if week.all_equal:
        equal = _(
            "By all that is known so far, other {people} are as urgent as these. These were chosen "
            "at random. Answers and reports will make the next lists better."
        )
        people = plain(studies.people(config.noun))
        st.info(equal.format(people=people), icon=":material/casino:")
    if len(week.listed) > MOST_ROWS:
        st.dataframe(_frame(week))
        if week.left_out:
            names = ", ".join(name_and_id(one.label, one.id) for one in week.left_out)
            waits = _("Chosen at random to wait {this_week}: {names}.")
            st.caption(plain(waits.format(this_week=studies.this_week(week.word), names=names)))
    else:
        st.html(list_table(week, config.own_words))


def answers_text(week: WeekList) -> str:
    """How many places of the list the newest answers changed, where that is known."""
    if week.by_answers is None:
        return ""
    places = len(week.listed)
    changed = ngettext(
        "The newest answers changed {changed} of the {places} place on the list.",
        "The newest answers changed {changed} of the {places} places on the list.",
        places,
    )
    if not week.by_answers:
        changed = _("The newest answers changed none of the places on the list.")
    return changed.format(changed=format_number(week.by_answers), places=format_number(places))


def why(study: Study) -> None:
    """Where anybody in the roster stands, what put them there, and what would change it."""
    arm = pick_person(study, "Whose place?", "why")
    if arm is None:
        st.caption("Choose anybody in the roster.")
        return
    with show_errors():
        found = studies.explain(store(), study.id, arm)
        st.text(found.where)
        st.markdown("**What put them there**")
        for sentence in found.because:
            st.text(sentence)
        st.markdown("**What would change it**")
        for sentence in found.change:
            st.text(sentence)


def pick_person(study: Study, label: str, key: str) -> str | None:
    """A person who is present, chosen by name."""
    names = {arm.id: name_and_id(arm.label, arm.id) for arm in study.config.arms if arm.present}
    return st.selectbox(label, list(names), format_func=names.get, index=None, key=key)


def change(study: Study, week: WeekList) -> None:
    """Take people off this list, put people on it; the next in line moves up."""
    key = f"{week.week}-{len(week.everybody)}-{len(week.removed)}"
    listed = {one.id for one in week.listed}
    names = {arm.id: name_and_id(arm.label, arm.id) for arm in study.config.arms if arm.present}
    coming = studies.coming_config(store(), study.id)
    absent = {arm.id for arm in coming.arms if not arm.present}  # some have left since
    options = {"format_func": names.get, "select_all": False}
    left, right = st.columns(2)
    off = left.multiselect("Take off", [one.id for one in week.listed], key=f"off-{key}", **options)
    on = right.multiselect(
        "Put on", [arm for arm in names if arm not in listed | absent], key=f"on-{key}", **options
    )
    because = st.text_input(
        "Why, in a few words", key=f"because-{key}", max_chars=studies.LONGEST_REASON
    )
    st.caption("The next in line moves up. If you put somebody on, the least urgent makes room.")
    show_flash("change-list")
    if clicked("Change the list", key="change-list", disabled=not off and not on):
        with show_errors():
            studies.change_list(
                store(), study.id, remove=off, add=on, because=because, week=week.week
            )
            done = [f"{names[arm]} is off" for arm in off] + [f"{names[arm]} is on" for arm in on]
            flash(f"The list is changed: {', '.join(done)}.", "change-list")
            st.rerun()


def downloads(study: Study, week: WeekList) -> None:
    """The list on paper and as a file."""
    frame = _frame(week)
    name = f"{study.id}-{week.word}-{week.week}"
    with st.container(horizontal=True):
        print_button(study, week)
        csv_button("This list (CSV)", frame, f"{name}.csv", study.id)
        xlsx_button("This list (XLSX)", frame, f"{name}.xlsx", study.id)


def _frame(week: WeekList) -> pd.DataFrame:
    return pd.DataFrame(studies.list_rows(week), columns=studies.list_columns(week), dtype=object)


def _name(week: WeekList) -> str:
    return f"{week.word.capitalize()} {week.week}, {date(week)}" + (
        "" if week.reported else " (this list)"
    )
