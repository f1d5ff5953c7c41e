"""The lists of all weeks: who is on them and why, what came of it, and how to put it right."""

import pandas as pd
import streamlit as st

from dopl_core.studies import csvtext, lists, service
from dopl_core.studies.lists import Listed, WeekList
from dopl_core.studies.service import Study, StudyConfig
from pages import _study
from pages._backend import store
from pages._done import say_done
from pages._sheet import date, sheet
from pages._trouble import said_plainly
from pages._words import plain

MOST_ROWS = 60  # of a list that is shown as rows; a longer one is a table
UNKNOWN = -1  # among the numbers of states


def show(study: Study) -> None:
    """This week's list, or that of a week before."""
    made = service.read_lists(store(), study.id)
    if not made:
        no_list(study)
        return
    newest = made[-1]
    chosen = newest
    if len(made) > 1:
        weeks = {one.week: one for one in reversed(made)}
        week = st.selectbox(
            f"List of which {plain(newest.word)}?",
            list(weeks),
            format_func=lambda number: _name(weeks[number]),
            key=f"week of {newest.week}",
        )
        chosen = weeks[week]
    one(study.config, chosen)
    take_home(study, chosen)
    if chosen.reported:
        with st.expander(f"Correct the report of {plain(chosen.word)} {chosen.week}"):
            correct(study, chosen.week)
    elif chosen.week == 1:
        with st.expander("Correct a state of the roster"):
            correct(study, 0)
    with st.expander("A link for a colleague, to read the list and nothing else"):
        _study.links(study, "list", "Name of the colleague", "list?read")


def one(config: StudyConfig, week: WeekList) -> None:
    """A list as people read it; also what a reader's link shows."""
    here, noun = int(config.present.sum()), plain(config.noun)
    of_all = f"{len(week.listed)} of {here} {noun}s to help"
    if week.reported:  # there may have been more of them then, or fewer
        of_all = f"{len(week.listed)} {noun}s were to be helped"
    st.markdown(
        f"**{plain(week.word).capitalize()} {week.week}: {of_all}**, the most urgent first. "
        f"Made on {date(week)}."
    )
    if week.all_equal:
        st.info(
            "All of these are equal to others who are not on the list, as far as is known yet: "
            "among equals chance has decided. Answers and reports will tell them apart.",
            icon=":material/casino:",
        )
    if len(week.listed) > MOST_ROWS:
        st.dataframe(pd.DataFrame(lists.list_rows(week), columns=lists.LIST_COLUMNS[:]))
        return
    for number, listed in enumerate(week.listed, start=1):
        row(number, listed, week)


def row(number: int, listed: Listed, week: WeekList) -> None:
    """One of those on the list; their names as plain text."""
    with st.container(border=True, key=f"listed-{week.week}-{number}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{number}. {called(listed.label, listed.id)}")
            st.text(lists.whereabouts_words(listed, week.word))
            if listed.group != "all":
                st.text(listed.group)
        st.text(lists.why(listed, week))
        if week.reported:
            helped = "Helped" if listed.helped else "Not helped"
            st.text(f"{helped}; then {listed.then or 'unknown'}.")


def take_home(study: Study, week: WeekList) -> None:
    """The list as files."""
    name = f"{study.id}-{week.word}-{week.week}"
    content = csvtext.write(lists.LIST_COLUMNS, lists.list_rows(week))
    page = sheet(study.title, study.config, week)
    with st.container(horizontal=True):
        st.download_button(
            "Sheet to print", page, f"{name}.html", "text/html", icon=":material/print:"
        )
        st.download_button("This list (CSV)", content, f"{name}.csv", "text/csv")


def correct(study: Study, week: int) -> None:
    """Put right one person's state and mark of a week that was reported."""
    config = service.coming_config(store(), study.id)
    known = lists.read_week(store(), study.id, week)
    names = {arm.id: called(arm.label, arm.id) for arm in config.arms}
    arm = st.selectbox("Who?", list(known), format_func=names.get, index=None, key=f"who-{week}")
    if arm is None:
        st.caption("What was reported stays in the log; the next list is made with the correction.")
        return
    was = known[arm]
    state = state_control(config, "Was really", was.state, key=f"really-{week}-{arm}")
    helped = was.helped
    if week:
        helped = st.checkbox("Was helped", was.helped, key=f"was-helped-{week}-{arm}")
    if st.button("Correct", key=f"correct-{week}"):
        with said_plainly():
            marks = {arm: helped} if week and helped != was.helped else None
            service.correct(store(), study.id, week, {arm: state}, marks)
            say_done(f"{names[arm]} is corrected. The next list is made with it.")
            st.rerun()


def state_control(config: StudyConfig, label: str, state: str | None, key: str) -> str | None:
    """One click for a state, or for that it is unknown."""
    labels = [one.label for one in config.states]
    options = [*range(len(labels)), UNKNOWN]
    chosen = st.segmented_control(
        label,
        options,
        default=UNKNOWN if state is None else labels.index(state),
        format_func=lambda number: "Unknown" if number == UNKNOWN else plain(labels[number]),
        required=True,
        key=key,
    )
    return None if chosen == UNKNOWN else labels[chosen]


def no_list(study: Study) -> None:
    if study.episode == 0:
        st.markdown(
            "The first list is made when the first sitting ends. Let people answer by a link from "
            "*Invite*, or answer yourself."
        )
        return
    st.markdown("This list was made by an earlier version; the next will say why, too.")
    for helped in service.epoch_list(store(), study.id):
        st.text(f"{called(helped.label, helped.arm)}, {helped.state}")


def called(label: str, arm: str) -> str:
    """A name, and the id where it is not the name."""
    return label if label == arm else f"{label} ({arm})"


def _name(week: WeekList) -> str:
    return f"{week.word.capitalize()} {week.week}, {date(week)}" + (
        "" if week.reported else " (now)"
    )
