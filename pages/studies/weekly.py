"""The page of a study of real people: the four steps of a week, and its tabs."""

from collections.abc import Callable

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Study, chart_text, week_of
from pages.shared import backend
from pages.shared.clicks import clicked
from pages.shared.errors import last_click_failed, safely, show_errors
from pages.shared.flash import flash
from pages.shared.guards import ALL_STUDIES, may, store, team_fragment
from pages.shared.markdown import plain
from pages.studies import (
    common_tabs,
    flags,
    list_tab,
    members_tab,
    people_tab,
    report_tab,
    settings_tab,
    undo_report,
)

STEPS = ("List", "Help", "Report", "Next list")
TABS: dict[str, Callable[[Study], None]] = {
    "List": list_tab.show,
    "Report": report_tab.show,
    "People": people_tab.show,
    "Invite": common_tabs.invites,
}
OWNERS_TABS: dict[str, Callable[[Study], None]] = {
    "Settings": settings_tab.show,
    "Members": members_tab.show,
    "Rehearse": common_tabs.rehearse,
    "Data": common_tabs.data,
}


def page(study: Study) -> None:
    """Where the study is, what to do next, and everything else in tabs."""
    if "go_to" in st.session_state:
        st.session_state.tab = st.session_state.go_to
    steps(study)
    undo_report.offer_right_after(study)
    flags.show(study)
    offered = tabs_for(study)
    tabs = st.tabs(list(offered), key="tab", bind="query-params")
    st.session_state.pop("go_to", None)
    for name, tab in zip(offered, tabs, strict=True):
        if tab.open:
            with tab:
                offered[name](study)


def tabs_for(study: Study) -> dict[str, Callable[[Study], None]]:
    """The tabs that the visitor's role opens; a rehearsal makes a new study."""
    if not may(study.id, "owner"):
        return TABS
    closed = set() if may(ALL_STUDIES, "owner") else {"Rehearse"}
    return TABS | {name: show for name, show in OWNERS_TABS.items() if name not in closed}


def steps(study: Study) -> None:
    """The four steps of a week, and what to do now."""
    now = _step(study)
    kinds = ["done" if n < now else "now" if n == now else "" for n in range(len(STEPS))]
    items = "".join(
        f'<li class="{kind}"{" aria-current=step" if kind == "now" else ""}>{step}</li>'
        for kind, step in zip(kinds, STEPS, strict=True)
    )
    with st.container(border=True, key="strip"):
        st.html(f'<ol class="dopl-steps">{items}</ol>')
        progress(study.id, _stage(study))
        with st.container(horizontal=True):
            buttons(study)


def buttons(study: Study) -> None:
    """The buttons for now; the primary one is the next step."""
    word, week = study.config.epoch_word, _week(study)
    if _in_first_round(study) and study.status == "running":
        common_tabs.answer_button(study, type="primary")
        st.button("Make the first list now", key="first-list", on_click=make_first, args=(study,))
    elif not _is_waiting_for_plan(study) and study.waits_for != "nobody":
        if _open_tab() != "Report":
            label = plain(f"Report {word} {week}")
            st.button(label, type="primary", key="to-report", on_click=go_to, args=("Report",))
        common_tabs.answer_button(study)
    if clicked("Insights", "insights", icon=":material/insights:", type="tertiary"):
        st.switch_page("pages/insights/page.py", query_params={"study": study.id})


def go_to(tab: str) -> None:
    """Open a tab when the whole page is drawn next.

    Not at once: a fragment that is drawn before the page would lose the choice.
    """
    st.session_state.go_to = tab


def make_first(study: Study) -> None:
    """End the first round, and make the first list from its answers so far."""

    def make() -> None:
        if studies.close_duels(store(), study.id):
            backend.planner().wait(study.id, seconds=20)

    safely(make)()
    if not last_click_failed():
        go_to("List")
        flash("The first list is ready.")


@st.fragment(run_every=3.0)
def progress(study_id: str, stage: tuple[object, ...]) -> None:
    """What the study waits for, refreshed every three seconds; a new stage draws the page."""
    team_fragment(study_id)
    with show_errors(stop=True):
        study = studies.get_study(store(), study_id)
    if study.plan_due:
        backend.planner().ask(study_id)  # the server stopped before the plan was made
    if _stage(study) != stage:
        st.rerun()
    st.markdown(sentence(study))


# The steps of making a list.
PLANNING_STEPS = {
    "": "It will be ready in a few seconds.",
    "moves": "Step 1 of 3: learning how people change with and without help.",
    "strengths": "Step 2 of 3: learning from the answers.",
    "plan": "Step 3 of 3: choosing whom to help.",
}


def sentence(study: Study) -> str:
    """Where the study is and what to do next, in the owner's words."""
    config, week = study.config, _week(study)
    word = plain(config.epoch_word)
    answers = f"{study.given} of {study.asked} answers"
    shaping = (
        f" {answers} so far; they shape the list for {word} {week + 1}." if study.asked else ""
    )
    if study.status == "closed":
        return "**Closed.** No answers are collected and no lists are made until you reopen it."
    if study.waits_for == "nobody":
        return "**Complete.** All planned lists are made."
    paused = " **Paused:** no answers are collected." if study.status == "paused" else ""
    if _in_first_round(study):
        return (
            f"**First round: {answers}.** Your team compares people before the first list is made. "
            f"More answers make a better list. You can also make the list now.{paused}"
        )
    if _is_waiting_for_plan(study):
        return (
            f"**The list for {word} {week} is being made.** "
            f"{PLANNING_STEPS.get(study.step, PLANNING_STEPS[''])}"
        )
    return (
        f"**{word.capitalize()} {week}.** Help the people on the list. Then report how everybody "
        f"is doing.{shaping}{paused}"
    )


def status_text(study: Study) -> str:
    """Where the study is, in a few words, for the list of all studies."""
    if study.status != "running":
        where = study.status
    elif _in_first_round(study):
        where = f"first round, {study.given} of {study.asked}"
    else:
        where = f"{study.config.epoch_word} {_week(study)}"
    return f"{chart_text.count(study.answers, 'answer')}, {where}"


def _stage(study: Study) -> tuple[object, ...]:
    """What changes the layout of the page."""
    return study.status, study.episode, study.epoch, _is_waiting_for_plan(study)


def _step(study: Study) -> int:
    """The number of the present step, from 0."""
    if _in_first_round(study):
        return 0
    if _is_waiting_for_plan(study):
        return 3
    return 2 if _open_tab() == "Report" else 1


def _open_tab() -> str:
    """The open tab; on the first run of a page only the address has it."""
    return st.session_state.get("tab") or st.query_params.get("tab", "List")


def _in_first_round(study: Study) -> bool:
    return study.episode == 0 and not study.plan_due


def _is_waiting_for_plan(study: Study) -> bool:
    return study.plan_due or (study.episode > 0 and study.epoch >= study.config.horizon)


def _week(study: Study) -> int:
    """The week of the present list, or of the list that is being made."""
    return max(1, week_of(study.config, study.episode, study.epoch))
