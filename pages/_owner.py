"""The page of a study of real people: four steps a week, the list, reports, people, settings."""

from collections.abc import Callable

import streamlit as st

from dopl_core.studies import service
from dopl_core.studies.history import week_of
from dopl_core.studies.service import Study
from pages import _backend, _lists, _people, _report, _settings, _study
from pages._backend import store
from pages._done import say_done, show_done
from pages._duels import open_duels
from pages._trouble import safely, said_plainly
from pages._who import owner_still
from pages._words import plain

STEPS = ("List", "Help", "Report", "Next list")
TABS: dict[str, Callable[[Study], None]] = {
    "List": _lists.show,
    "Report": _report.show,
    "People": _people.show,
    "Invite": _study.invites,
    "Settings": _settings.show,
    "Rehearse": _study.rehearse,
    "Data": _study.data,
}


def page(study: Study) -> None:
    """Where the study is, what comes next, and everything else in tabs."""
    show_done()
    if "go_to" in st.session_state:
        st.session_state.tab = st.session_state.go_to
    strip(study)
    _study.flags(study)
    tabs = st.tabs(list(TABS), key="tab", bind="query-params")
    st.session_state.pop("go_to", None)
    for name, tab in zip(TABS, tabs, strict=True):
        if tab.open:
            with tab:
                TABS[name](study)


def strip(study: Study) -> None:
    """The four steps, and the one thing to do now."""
    now = _step(study)
    kinds = ["done" if n < now else "now" if n == now else "" for n in range(len(STEPS))]
    items = "".join(
        f'<li class="{kind}"{" aria-current=step" if kind == "now" else ""}>{step}</li>'
        for kind, step in zip(kinds, STEPS, strict=True)
    )
    with st.container(border=True, key="strip"):
        st.html(f'<ol class="dopl-steps">{items}</ol>')
        where(study.id, _stage(study))
        with st.container(horizontal=True):
            buttons(study)


def buttons(study: Study) -> None:
    """What can be done now; the first is what comes next."""
    sitting, word, week = _in_sitting(study), study.config.epoch_word, _week(study)
    if sitting and study.status == "running":
        if st.button("Answer duels", type="primary", key="answer"):
            open_duels(study.id)
        st.button("Make the first list now", key="first-list", on_click=make_first, args=(study,))
    elif not _is_waiting_for_plan(study) and study.waits_for != "nobody":
        if st.session_state.get("tab", "List") != "Report":
            label = plain(f"Report {word} {week}")
            st.button(label, type="primary", key="to-report", on_click=go_to, args=("Report",))
        if st.button("Answer duels", key="answer", disabled=study.status != "running"):
            open_duels(study.id)
    if st.button("Insights", icon=":material/insights:", type="tertiary"):
        st.switch_page("pages/insights.py", query_params={"study": study.id})


def go_to(tab: str) -> None:
    """Open a tab when the page is drawn next.

    Not at once: a part of the page that is drawn before, alone, would lose it again.
    """
    st.session_state.go_to = tab


def make_first(study: Study) -> None:
    """End the first sitting, and make the first list with the answers there are."""

    def make() -> None:
        if service.close_duels(store(), study.id):
            _backend.planner().wait(study.id, seconds=20)

    safely(make)()
    if not st.session_state.trouble["words"]:
        go_to("List")
        say_done("The first list is made, with the answers there were.")


@st.fragment(run_every=3.0)
def where(study_id: str, stage: tuple[object, ...]) -> None:
    """What the study waits for, live; the page is drawn anew when that changes."""
    owner_still()
    with said_plainly(stop=True):
        study = service.get_study(store(), study_id)
    if study.plan_due:
        _backend.planner().ask(study_id)  # the server was stopped before it could
    if _stage(study) != stage:
        st.rerun()
    st.markdown(sentence(study))


# How far a list is that takes a while.
HOW_FAR = {
    "": "It will be here in some seconds.",
    "moves": "Step 1 of 3: how everybody moves, with help and without.",
    "strengths": "Step 2 of 3: what was preferred.",
    "plan": "Step 3 of 3: whom to help.",
}


def sentence(study: Study) -> str:
    """Where the study is and what comes next, in the owner's words."""
    config, week = study.config, _week(study)
    word = plain(config.epoch_word)
    answers = f"{study.given} of {study.asked} answers"
    if study.status == "closed":
        return "**Closed.** Nobody is asked and no list is made until you reopen it."
    if study.waits_for == "nobody":
        return "**Complete.** All the lists that were wanted are made."
    paused = " **Paused:** nobody is asked for answers." if study.status == "paused" else ""
    if _in_sitting(study):
        return (
            f"**First sitting: {answers}.** They say who is doing better, before there is a list. "
            f"The more of them, the better it is; or make the first list now.{paused}"
        )
    if _is_waiting_for_plan(study):
        return (
            f"**The list of {word} {week} is being made.** {HOW_FAR.get(study.step, HOW_FAR[''])}"
        )
    return (
        f"**{word.capitalize()} {week}.** Help the {config.budget} on the list, then report how "
        f"everybody is. {answers} so far: this {word}'s answers shape the list of {word} "
        f"{week + 1}.{paused}"
    )


def where_it_is(study: Study) -> str:
    """The same in a few words, for the list of all studies."""
    if study.status != "running":
        where = study.status
    elif _in_sitting(study):
        where = f"first sitting, {study.given} of {study.asked}"
    else:
        where = f"{study.config.epoch_word} {_week(study)}"
    return f"{study.answers} answers, {where}"


def _stage(study: Study) -> tuple[object, ...]:
    """What the page looks different for."""
    return study.status, study.episode, study.epoch, _is_waiting_for_plan(study)


def _step(study: Study) -> int:
    """Which of the four it is."""
    if _in_sitting(study):
        return 0
    if _is_waiting_for_plan(study):
        return 3
    return 2 if st.session_state.get("tab") == "Report" else 1


def _in_sitting(study: Study) -> bool:
    return study.episode == 0 and not study.plan_due


def _is_waiting_for_plan(study: Study) -> bool:
    return study.plan_due or (study.episode > 0 and study.epoch >= study.config.horizon)


def _week(study: Study) -> int:
    """The week whose list is open, or is being made."""
    return max(1, week_of(study.config, study.episode, study.epoch))
