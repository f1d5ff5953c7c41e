"""The Report tab: how everybody is doing now and who was helped, summed up before it counts."""

import re
from collections.abc import Callable

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Arm, Draft, Report, Study, name_of, report_words, week_of
from pages.shared import backend
from pages.shared.downloads import csv_button, xlsx_button
from pages.shared.errors import last_click_failed, safely, show_errors, show_last_error
from pages.shared.flash import flash
from pages.shared.guards import store, team_fragment
from pages.shared.help_link import help_link
from pages.shared.markdown import plain
from pages.studies import roster_mapping, undo_report
from pages.studies.people_fields import UNKNOWN, name_and_id, show_some

AT_ONCE = 40  # rows shown at first, of people on the list and of the others


def draft_of(study: Study) -> Draft:
    """The draft for the present week."""
    return studies.read_draft(store(), study.id, _week(study))


def change_draft(study: Study, change: Callable[[Draft], object]) -> None:
    """Change the draft for the present week."""
    studies.change_draft(store(), study.id, _week(study), change)


def on_the_list(study: Study) -> list[str]:
    """The ids of the people on the list that is not reported yet."""
    made = studies.read_lists(store(), study.id, last=1)
    return [one.id for one in made[-1].listed] if made and not made[-1].reported else []


def show(study: Study) -> None:
    """By hand or by file, for the present week."""
    config = study.config
    word, week = plain(config.epoch_word), _week(study)
    if study.episode == 0:
        st.markdown("There is nothing to report yet. The first list is made after the first round.")
        return
    if study.status == "closed" or study.waits_for == "nobody":
        st.markdown("The study is closed. To report, reopen it in *Settings*.")
        return
    if study.epoch >= config.horizon:
        st.markdown(f"{word.capitalize()} {week - 1} is reported. The next list is being made.")
        undo_report.offer(study)
        return
    st.markdown(
        f"**How is everybody doing at the end of {word} {week}, and who was helped?** You can "
        "check a summary before the report counts."
    )
    help_link("owner", "How to report")
    how = st.segmented_control(
        "How do you want to report?",
        ["By hand", "By file"],
        default="By hand",
        required=True,
        key="how-to-report",
    )
    if how == "By hand":
        by_hand(study, week)
    else:
        by_file(study, week)
    undo_report.offer(study)


@st.fragment
def by_hand(study: Study, week: int) -> None:
    """A row for each person: first the people on the list, then the others."""
    team_fragment(study.id)
    if st.session_state.pop("reported", False):
        st.rerun()
    with st.container():
        show_last_error()
    draft, before = draft_of(study), studies.present_states(store(), study.id)
    if st.session_state.get("checking") == (study.id, week):
        check_draft(study, week, draft, before)
        return
    st.caption("Your clicks are kept if you reload the page.")
    wanted = st.text_input("Search", key="search", placeholder="Name or ID").casefold()
    found = [
        arm
        for arm in studies.report_config(store(), study.id).arms
        if arm.present and wanted in name_and_id(arm.label, arm.id).casefold()
    ]
    new = [arm for arm in found if arm.id not in before]
    first = {arm: place for place, arm in enumerate(on_the_list(study))}
    listed = sorted((arm for arm in found if arm.id in first), key=lambda arm: first[arm.id])
    others = [arm for arm in found if arm.id not in first and arm.id in before]
    most = st.session_state.setdefault("report-rows", AT_ONCE)
    rows("On the list", listed[:most], study, draft, before, of=len(listed))
    rows("Everybody else", others[:most], study, draft, before, of=len(others))
    rows("Joined since the list was made", new[:most], study, draft, before, of=len(new))
    left = max(len(listed), len(others), len(new)) - most
    if left > 0:
        st.button(f"Show {min(AT_ONCE, left)} more", on_click=show_more, key="more")
    missing = sum(arm not in draft.states for arm in before)
    helped = draft.who_was_helped(first)
    summed_up = report_words(_filled_in(draft, before), draft.states, list(first), helped)
    with st.container(key="foot", horizontal=True, vertical_alignment="center"):
        st.button("Check the report", "check", type="primary", on_click=check, args=(study, week))
        still = f", **{missing} still to fill in**" if missing else ""
        st.markdown(f"{summed_up}{still}.")


def show_more() -> None:
    st.session_state["report-rows"] += AT_ONCE


def check(study: Study, week: int) -> None:
    st.session_state.checking = (study.id, week)


def rows(
    title: str,
    arms: list[Arm],
    study: Study,
    draft: Draft,
    before: dict[str, str | None],
    of: int | None = None,
) -> None:
    """One row for each person: a button for each state, one for unknown, a box for helped.

    Newcomers, who are not in `before`, have no such box: help counts from their first list on.
    """
    if not arms:
        return
    many = len(arms) if of is None or of == len(arms) else f"{len(arms)} of {of}"
    st.markdown(f"**{title}** ({many})")
    labels = [state.label for state in study.config.states]
    options = [*range(len(labels)), UNKNOWN]
    week, listed = _week(study), set(on_the_list(study))
    box = st.container(key=f"rows-{title.split()[0]}")
    numbers = {arm.id: n for n, arm in enumerate(studies.coming_config(store(), study.id).arms)}
    for arm in arms:
        place = f"{study.id}-{week}-{numbers[arm.id]}"
        state, helped = f"state-{place}", f"helped-{place}"
        # The draft decides, because another tab may have changed it.
        st.session_state[state] = _option(draft, arm.id, labels)
        st.session_state[helped] = draft.helped.get(arm.id, arm.id in listed)
        row = {"horizontal": True, "vertical_alignment": "center", "key": f"report-{place}"}
        with box.container(**row):
            was = before.get(arm.id, arm.state) or "unknown"
            st.text(f"{name_and_id(arm.label, arm.id)}, was {was}", width="stretch")
            st.segmented_control(
                spoken(f"{arm.label} is now"),
                options,
                format_func=lambda n: "Unknown" if n == UNKNOWN else plain(labels[n]),
                key=state,
                label_visibility="collapsed",
                on_change=safely(set_state),
                args=(study, arm.id, state),
            )
            if arm.id in before:
                set_one = safely(set_helped)
                st.checkbox("helped", key=helped, on_change=set_one, args=(study, arm.id, helped))


def set_state(study: Study, arm: str, key: str) -> None:
    option, labels = st.session_state[key], [state.label for state in study.config.states]
    if option is None:
        change_draft(study, lambda draft: draft.states.pop(arm, None))
    else:
        label = None if option == UNKNOWN else labels[option]
        change_draft(study, lambda draft: draft.states.update({arm: label}))


def set_helped(study: Study, arm: str, key: str) -> None:
    ticked = st.session_state[key]
    change_draft(study, lambda draft: draft.helped.update({arm: ticked}))


def set_rest(study: Study) -> None:
    rest = st.session_state["rest"]
    change_draft(study, lambda draft: setattr(draft, "rest", rest))


def check_draft(study: Study, week: int, draft: Draft, before: dict[str, str | None]) -> None:
    """The summary of the report, before it counts."""
    missing = [arm for arm in before if arm not in draft.states]
    if missing:
        them = "it" if len(missing) == 1 else "them"
        st.session_state["rest"] = draft.rest
        st.segmented_control(
            f"You left {len(missing)} blank. Count {them} as",
            ["as before", "unknown"],
            key="rest",
            on_change=safely(set_rest),
            args=(study,),
        )
    ready = draft.rest is not None or not missing
    report = draft.report(before, on_the_list(study), newcomers(study, before)) if ready else None
    if report is not None:
        summary(study, report, before)
    else:
        st.markdown("Choose one of the two, and the summary appears here.")
    over = report is not None and week_is_over(study, week)
    with st.container(horizontal=True):
        confirm(study, week, report, over)
        st.button("Back to the form", key="back", on_click=stop_checking)


def newcomers(study: Study, before: dict[str, str | None]) -> list[str]:
    """The ids of people who joined since the list was made."""
    config = studies.report_config(store(), study.id)
    return [arm.id for arm in config.arms if arm.present and arm.id not in before]


def stop_checking() -> None:
    st.session_state.pop("checking", None)


def summary(study: Study, report: Report, before: dict[str, str | None]) -> None:
    """What the report would change: first numbers, then names."""
    listed = on_the_list(study)
    helped = listed if report.helped is None else report.helped
    st.markdown(f"**{report_words(before, report.states, listed, helped)}.**")
    now = {arm: report.states.get(arm) for arm in before}
    known = studies.report_config(store(), study.id)
    names = {arm.id: name_of(known, arm) for arm in known.arms}
    moved = (
        f"{names[arm]}: {was} → {now[arm]}"
        for arm, was in before.items()
        if was and now[arm] and now[arm] != was
    )
    show_some("Changed state", moved, "\n")
    again = (f"{names[arm]}: {now[arm]}" for arm, was in before.items() if now[arm] and not was)
    show_some("Now known", again, "\n")
    show_some("Unknown", (names[arm] for arm, state in now.items() if state is None))
    show_some("On the list but not helped", (names[arm] for arm in listed if arm not in helped))
    show_some("Helped but not on the list", (names[arm] for arm in helped if arm not in listed))
    new = (names[arm] for arm in report.states if arm not in before)
    show_some("Joined since the list was made; no change is counted", new)


def week_is_over(study: Study, week: int) -> bool:
    """Whether a report may be sent; the owner is asked if the last one is not long ago."""
    last, word = studies.last_report(store(), study.id), plain(study.config.epoch_word)
    if last is None or not last.is_recent:
        return True
    sent = f"{last.when.capitalize()} you sent the report of {word} {last.week}."
    st.warning(f"{sent} Is {word} {week} over?")
    return st.checkbox(f"Yes, {word} {week} is over", key=f"over-{study.id}-{week}")


def confirm(study: Study, week: int, report: Report | None, over: bool) -> None:
    """The button that sends the report; over: whether the week is over."""
    st.button(
        plain(f"Send the report of {study.config.epoch_word} {week}"),
        type="primary",
        key="report",
        disabled=report is None or not over,
        on_click=send,
        args=(study, week, report),
    )


def send(study: Study, week: int, report: Report) -> None:
    """Send the report once, and have the next list made."""

    def do() -> None:
        columns = draft_of(study).columns | report.columns
        due = studies.observe(
            store(), study.id, report.states, columns, helped=report.helped, week=week
        )
        if due:
            backend.planner().wait(study.id, seconds=20)

    safely(do)()
    if not last_click_failed():
        st.session_state.pop("checking", None)
        st.session_state.reported = True
        st.session_state.go_to = "List"
        flash(f"{study.config.epoch_word.capitalize()} {week} is reported.")


def by_file(study: Study, week: int) -> None:
    """A report from a file, with the same summary before it counts."""
    config, before = study.config, studies.present_states(store(), study.id)
    listed = set(on_the_list(study))
    table = [
        (arm.id, arm.label, before[arm.id], None, int(arm.id in listed))
        for arm in config.arms
        if arm.present
    ]
    st.markdown(
        "Upload a table with the columns *id* and *state*. You can add *helped* (1 or 0) and "
        "new texts for the cards. An empty state or a missing person counts as unknown. Without "
        "the column *helped*, everybody on the list counts as helped."
    )
    frame = pd.DataFrame(table, columns=["id", "name", "was", "state", "helped"])
    name = f"{study.id}-{config.epoch_word}-{week}"
    with st.container(horizontal=True):
        csv_button("File to fill in (CSV)", frame, f"{name}.csv", study.id)
        xlsx_button("File to fill in (XLSX)", frame, f"{name}.xlsx", study.id)
    with show_errors():
        uploaded = roster_mapping.upload_table("Report", f"file-{week}")
        if uploaded is None:
            return
        sheet, key = uploaded
        last = studies.remembered_columns(store(), study.id, "report", sheet)
        columns = roster_mapping.choose_columns(sheet, key, "report", last)
        if columns is not None:
            known = studies.report_config(store(), study.id)
            report = studies.read_report(sheet, known, columns=columns, week=week)
            if columns != last:
                studies.remember_columns(store(), study.id, "report", columns)
            check_file(study, week, report, before)


def check_file(study: Study, week: int, report: Report, before: dict[str, str | None]) -> None:
    """What is unclear in a file, then its summary, before it counts."""
    blank = None
    if report.blank:
        one = len(report.blank) == 1
        options = {"no": "not helped", "yes": "helped"}
        blank = st.segmented_control(
            f"You left {len(report.blank)} {'cell' if one else 'cells'} for help empty. "
            f"Count {'it' if one else 'them'} as",
            list(options),
            format_func=options.get,
            key=f"blank-{week}",
        )
        if blank is None:
            st.markdown("Choose one of the two, and the summary appears here.")
            return
    report = Report(report.states, report.columns, report.who_was_helped(blank))
    if studies.is_last_report(store(), study.id, report.states, report.columns, report.helped):
        st.warning(
            plain(
                f"This is the report of {study.config.epoch_word} {week - 1} again. Send it only "
                "if nothing has changed."
            )
        )
    summary(study, report, before)
    show_some("New on cards", report.news)
    confirm(study, week, report, week_is_over(study, week))


def spoken(text: str) -> str:
    """A label for screen readers, without characters that Markdown would need to escape."""
    return " ".join(re.findall(r"[^\W_]+", text))


def _week(study: Study) -> int:
    return week_of(study.config, study.episode, study.epoch)


def _option(draft: Draft, arm: str, labels: list[str]) -> int | None:
    """The option chosen for a person; None while it is blank."""
    if arm not in draft.states:
        return None
    state = draft.states[arm]
    return UNKNOWN if state is None else labels.index(state)


def _filled_in(draft: Draft, before: dict[str, str | None]) -> dict[str, str | None]:
    return {arm: state for arm, state in before.items() if arm in draft.states}
