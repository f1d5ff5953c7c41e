"""The report of a week: where everybody is now and who was helped, looked at before it counts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from dopl_core.studies import lists, roster, service
from dopl_core.studies.history import week_of
from dopl_core.studies.replies import name_of
from dopl_core.studies.service import Arm, Report, Study
from pages import _backend, _roster
from pages._backend import store
from pages._done import say_done
from pages._downloads import csv_button
from pages._lists import UNKNOWN, called
from pages._trouble import safely, said_plainly, show_trouble
from pages._who import owner_still
from pages._words import plain

AT_ONCE = 40  # of those on the list, and of the others, shown until more are asked for


@dataclass
class Draft:
    """A report that is being written; kept by the server, so that a reload finds it.

    states: arm id -> label, None for unknown; those left out were not said yet
    rest: what holds for them: "as before", "unknown", or None while that is not said either
    columns: what is newly known of somebody, for the cards
    """

    helped: set[str]
    states: dict[str, str | None] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    rest: str | None = None

    def report(self, before: dict[str, str | None]) -> Report:
        """All of it: those not said yet are as they were, or unknown."""
        rest = before if self.rest == "as before" else dict.fromkeys(before)
        return Report(rest | self.states, self.columns, sorted(self.helped))


@st.cache_resource(show_spinner=False)
def _drafts() -> dict[tuple[str, int], Draft]:
    return {}


def draft_of(study: Study) -> Draft:
    """The draft for the week that is open; the list was helped, until somebody says otherwise."""
    place = (study.id, week_of(study.config, study.episode, study.epoch))
    if place not in _drafts():
        _drafts()[place] = Draft(set(on_the_list(study)))
    return _drafts()[place]


def on_the_list(study: Study) -> list[str]:
    made = service.read_lists(store(), study.id, last=1)
    if made and not made[-1].reported:
        return [one.id for one in made[-1].listed]
    # A list that an earlier version made is not among them.
    return [one.arm for one in service.epoch_list(store(), study.id)]


def show(study: Study) -> None:
    """By hand or by file, for the week that is open and no other."""
    config = study.config
    word, week = plain(config.epoch_word), week_of(config, study.episode, study.epoch)
    if study.episode == 0:
        st.markdown("There is no list yet, so there is nothing to report: first comes the sitting.")
        return
    if study.status == "closed" or study.waits_for == "nobody":
        st.markdown("The study is closed: reopen it in *Settings* to report.")
        return
    if study.epoch >= config.horizon:
        st.markdown(f"{word.capitalize()} {week - 1} is reported. The next list is being made.")
        return
    st.markdown(
        f"**How is everybody at the end of {word} {week}, and who was helped?** Nothing counts "
        "before you have seen it summed up. What you click is kept, also when you reload."
    )
    how = st.segmented_control(
        "How", ["By hand", "By file"], default="By hand", required=True, key="how-to-report"
    )
    if how == "By hand":
        by_hand(study, week)
    else:
        by_file(study, week)


@st.fragment
def by_hand(study: Study, week: int) -> None:
    """A row for everybody: those on the list first, then the others."""
    owner_still()
    if st.session_state.pop("reported", False):
        st.rerun()
    with st.container():
        show_trouble()
    draft, before = draft_of(study), service.present_states(store(), study.id)
    if st.session_state.get("checking") == (study.id, week):
        check_draft(study, week, draft, before)
        return
    looked_for = st.text_input("Search", key="search", placeholder="name or id").casefold()
    found = [
        arm
        for arm in study.config.arms
        if arm.present and looked_for in called(arm.label, arm.id).casefold()
    ]
    first = {arm: place for place, arm in enumerate(on_the_list(study))}
    listed = sorted((arm for arm in found if arm.id in first), key=lambda arm: first[arm.id])
    others = [arm for arm in found if arm.id not in first]
    most = st.session_state.setdefault("report-rows", AT_ONCE)
    rows("On the list", listed[:most], study, week, before, of=len(listed))
    rows("Everybody else", others[:most], study, week, before, of=len(others))
    left = max(len(listed), len(others)) - most
    if left > 0:
        st.button(f"Show {min(AT_ONCE, left)} more", on_click=show_more, key="more")
    missing = sum(arm not in draft.states for arm in before)
    said = lists.report_words(_said(draft, before), draft.states, list(first), draft.helped)
    with st.container(key="foot", horizontal=True, vertical_alignment="center"):
        st.button("Check the report", "check", type="primary", on_click=check, args=(study, week))
        st.markdown(f"{said}{f', **{missing} not said yet**' if missing else ''}.")


def show_more() -> None:
    st.session_state["report-rows"] += AT_ONCE


def check(study: Study, week: int) -> None:
    st.session_state.checking = (study.id, week)


def rows(
    title: str,
    arms: list[Arm],
    study: Study,
    week: int,
    before: dict[str, str | None],
    of: int | None = None,
) -> None:
    """A state is one click, and so is that it is unknown, or that somebody was helped."""
    if not arms:
        return
    many = len(arms) if of is None or of == len(arms) else f"{len(arms)} of {of}"
    st.markdown(f"**{title}** ({many})")
    labels = [state.label for state in study.config.states]
    options = [*range(len(labels)), UNKNOWN]
    draft = draft_of(study)
    box = st.container(key=f"rows-{title.split()[0]}")
    for arm in arms:
        place = f"{study.id}-{week}-{study.config.arm_number(arm.id)}"
        state, helped = f"state-{place}", f"helped-{place}"
        # The draft is what counts: another tab may have changed it.
        st.session_state[state] = _option(draft, arm.id, labels)
        st.session_state[helped] = arm.id in draft.helped
        row = {"horizontal": True, "vertical_alignment": "center", "key": f"report-{place}"}
        with box.container(**row):
            was = before[arm.id] or "unknown"
            st.text(f"{called(arm.label, arm.id)}, was {was}", width="stretch")
            st.segmented_control(
                spoken(f"{arm.label} is now"),
                options,
                format_func=lambda n: "Unknown" if n == UNKNOWN else plain(labels[n]),
                key=state,
                label_visibility="collapsed",
                on_change=say_state,
                args=(draft, arm.id, state, labels),
            )
            st.checkbox("helped", key=helped, on_change=say_helped, args=(draft, arm.id, helped))


def say_state(draft: Draft, arm: str, key: str, labels: list[str]) -> None:
    option = st.session_state[key]
    if option is None:
        draft.states.pop(arm, None)
    else:
        draft.states[arm] = None if option == UNKNOWN else labels[option]


def say_helped(draft: Draft, arm: str, key: str) -> None:
    (draft.helped.add if st.session_state[key] else draft.helped.discard)(arm)


def say_rest(draft: Draft) -> None:
    draft.rest = st.session_state["rest"]


def check_draft(study: Study, week: int, draft: Draft, before: dict[str, str | None]) -> None:
    """What the report says, once more, before it counts."""
    missing = [arm for arm in before if arm not in draft.states]
    if missing:
        many = "1 was" if len(missing) == 1 else f"{len(missing)} were"
        st.session_state["rest"] = draft.rest
        st.segmented_control(
            f"{many} not said. They are",
            ["as before", "unknown"],
            key="rest",
            on_change=say_rest,
            args=(draft,),
        )
    ready = draft.rest is not None or not missing
    if ready:
        summary(study, draft.report(before), before)
    else:
        st.markdown("Say it, and the report is summed up here.")
    with st.container(horizontal=True):
        report = draft.report(before) if ready else None
        confirm(study, week, report)
        st.button("Back to the form", key="back", on_click=do_not_check)


def do_not_check() -> None:
    st.session_state.pop("checking", None)


def summary(study: Study, report: Report, before: dict[str, str | None]) -> None:
    """What would count: numbers first, then names."""
    listed = on_the_list(study)
    helped = listed if report.helped is None else report.helped
    st.markdown(f"**{lists.report_words(before, report.states, listed, helped)}.**")
    now = {arm: report.states.get(arm) for arm in before}
    names = {arm.id: name_of(study.config, arm) for arm in study.config.arms}
    moved = (
        f"{names[arm]}: {was} → {now[arm]}"
        for arm, was in before.items()
        if was and now[arm] and now[arm] != was
    )
    some("Moved", moved)
    again = (f"{names[arm]}: {now[arm]}" for arm, was in before.items() if now[arm] and not was)
    some("Seen again", again)
    some("Unknown", (names[arm] for arm, state in now.items() if state is None))
    some("On the list, but not helped", (names[arm] for arm in listed if arm not in helped))
    some("Helped, but not on the list", (names[arm] for arm in helped if arm not in listed))


def some(what: str, names: Iterable[str], most: int = 30) -> None:
    found = list(names)
    if found:
        more = f" and {len(found) - most} more" if len(found) > most else ""
        st.text(f"{what}: {', '.join(found[:most])}{more}")


def confirm(study: Study, week: int, report: Report | None) -> None:
    """The button after which it counts."""
    st.button(
        plain(f"This is right: report {study.config.epoch_word} {week}"),
        type="primary",
        key="report",
        disabled=report is None,
        on_click=send,
        args=(study, week, report),
    )


def send(study: Study, week: int, report: Report) -> None:
    """Report it, once, and have the next list made."""

    def do() -> None:
        columns = draft_of(study).columns | report.columns
        due = service.observe(
            store(), study.id, report.states, columns, helped=report.helped, week=week
        )
        if due:
            _backend.planner().wait(study.id, seconds=20)

    safely(do)()
    if not st.session_state.trouble["words"]:
        _drafts().pop((study.id, week), None)
        st.session_state.pop("checking", None)
        st.session_state.reported = True
        st.session_state.go_to = "List"
        say_done(f"{study.config.epoch_word.capitalize()} {week} is reported.")


def by_file(study: Study, week: int) -> None:
    """The same from a CSV file, with the same summary before it counts."""
    config, before = study.config, service.present_states(store(), study.id)
    listed = set(on_the_list(study))
    table = [
        (arm.id, arm.label, before[arm.id], None, int(arm.id in listed))
        for arm in config.arms
        if arm.present
    ]
    st.markdown(
        "A CSV with the columns id and state, helped (1 or 0) if you like, and what is newly known "
        "for the cards. An empty state is unknown, and so is whoever is left out. Without the "
        "column helped, those on the list were."
    )
    frame = pd.DataFrame(table, columns=["id", "name", "was", "state", "helped"])
    csv_button("A file to fill in (CSV)", frame, f"{study.id}-{config.epoch_word}-{week}.csv")
    upload = st.file_uploader("Report (CSV)", type=["csv", "txt", "tsv"], key=f"file-{week}")
    if upload is None:
        return
    with said_plainly():
        sheet = roster.open_sheet(upload.getvalue(), upload.name)
        columns = _roster.choose_columns(sheet, f"report {upload.file_id}", report=True)
        if columns is not None:
            report = service.read_report(sheet, config, columns=columns)
            summary(study, report, before)
            confirm(study, week, report)


def spoken(text: str) -> str:
    """A label that is heard and not seen: its escapes would be read out, so it needs none."""
    return " ".join(re.findall(r"[^\W_]+", text))


def _option(draft: Draft, arm: str, labels: list[str]) -> int | None:
    """What is chosen of somebody's states; None where nothing was said."""
    if arm not in draft.states:
        return None
    state = draft.states[arm]
    return UNKNOWN if state is None else labels.index(state)


def _said(draft: Draft, before: dict[str, str | None]) -> dict[str, str | None]:
    return {arm: state for arm, state in before.items() if arm in draft.states}
