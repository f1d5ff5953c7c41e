"""The form that makes a study, with a duel as its annotators will see it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dopl_core import environments, studies
from dopl_core.paths import ROOT
from dopl_core.studies import Arm, StudyConfig, World, chart_text
from pages.shared.clicks import clicked
from pages.shared.downloads import xlsx_button
from pages.shared.duel_cards import show_pair
from pages.shared.errors import show_errors
from pages.shared.guards import store
from pages.shared.help_link import help_link
from pages.shared.markdown import plain
from pages.studies import publish, roster_mapping, setting_fields

ROSTERS = ROOT / "data" / "rosters"
MOST_SHOWN = 200  # rows of an uploaded table that are shown
LONGEST_FIRST_LIST = 20  # that is offered; owners may want a longer one


@dataclass(frozen=True)
class People:
    """What step 1 settles: whom the study is about.

    begin: values that the settings begin with;  columns: of the owner's roster
    facts: the columns that the study has of each person
    make: makes the study's configuration from its settings
    """

    world: World
    key: str
    begin: dict[str, Any]
    make: Callable[..., StudyConfig]
    columns: studies.Columns | None = None
    facts: Sequence[str] = ()


def form() -> None:
    """Three steps to a study: people, question, how often; with a card beside the question."""
    help_link("owner", "How to make a roster and a study")
    st.subheader("1. People", anchor=False)
    worlds = {"My own roster": own_roster, "A simulated world": simulated}
    choice = st.segmented_control(
        "Where do the people come from?",
        list(worlds),
        default=next(iter(worlds)),
        required=True,
        key="world",
    )
    with show_errors():
        people = worlds[choice]()
        if people is None:
            return
        offered, now = studies.offered_in(people.world), setting_fields.first_values(**people.begin)
        ask = partial(setting_fields.ask, now=now, key=people.key, columns=people.facts)
        st.subheader("2. Question", anchor=False)
        with st.container(key="question-and-card"):
            left, right = st.columns([3, 2], gap="large")
        with left:
            chosen = ask("words", offered)
            with st.expander(studies.SECTIONS["cards"]):
                chosen |= ask("cards", offered)
        st.subheader(f"3. {studies.SECTIONS['list']}", anchor=False)
        chosen |= ask("list", offered)
        if people.world == "observed":
            with st.expander(studies.SECTIONS["rules"]):
                chosen |= ask("rules", offered)
        with st.expander(studies.SECTIONS["more"]):
            chosen |= ask("more", offered)
        config = people.make(**chosen)
        with right:
            preview(config)
        observed = people.world == "observed"
        past = past_records(config, people.columns) if observed else None
        answers = past_answers(config, past) if observed else None
        ready, trial = True, None
        if observed:
            ready, trial = publish.ask(config, past, f"by_lot {people.key}")
        if clicked("Create the study", type="primary", key="create", disabled=not ready):
            many = f"{config.n_arms:,} {plain(studies.plural(config.noun))}"
            with st.spinner(f"Creating a study of {many}…", show_time=True):
                study = studies.create_study(store(), config, past, answers, trial)
                if people.columns is not None:
                    studies.remember_columns(store(), study, "roster", people.columns)
            st.query_params["study"] = study
            st.rerun()


def simulated() -> People:
    """The arms of one of the environments."""
    titles = {environments.load(name).title: name for name in environments.names()}
    title = st.selectbox("World", list(titles), index=list(titles.values()).index("cpap"))
    name = titles[title]
    bandit = environments.load(name)
    st.caption(
        f"{bandit.n_arms} simulated {plain(studies.plural(bandit.noun))} move between "
        f"{bandit.n_states} states by themselves. Use it to try things out, or to teach."
    )
    begin = {what: getattr(bandit, what) for what in ("title", "question", "noun", "budget")}
    make = partial(studies.from_environment, name)
    return People("simulated", name, begin, make)


def own_roster() -> People | None:
    """The owner's own people and the order of their states; None while a part is missing."""
    uploaded = roster_mapping.upload_table(
        "Roster",
        "roster",
        "One row for each person: an id and a state. You may add a name, a group, and anything "
        "that cards should show. You choose which column is what.",
    )
    if uploaded is None:
        with st.container(horizontal=True):
            example_button("An example roster (CSV)", "clinic.csv")
            table = studies.open_sheet(ROSTERS / "clinic.csv")
            frame = pd.DataFrame([cells for _, cells in table.rows])
            xlsx_button("An example roster (XLSX)", frame, "clinic.xlsx")
        return None
    sheet, key = uploaded
    with st.expander(f"Your table ({len(sheet.rows):,} rows)", expanded=True):
        rows = [cells for _, cells in sheet.rows[:MOST_SHOWN]]
        height = 38 + 35 * min(5, len(rows))
        st.dataframe(pd.DataFrame(rows, dtype=str), hide_index=True, height=height)
    columns = roster_mapping.choose_columns(sheet, key)
    if columns is None:
        return None
    found = studies.count_states(sheet, columns=columns)
    studies.read_roster(sheet, list(found), columns=columns)  # refuses wrong ids first
    if len(sheet.rows) < 2:
        raise ValueError(f"{sheet.name} has one row: at least two are needed for a comparison")
    spelt = roster_mapping.settle_spelling(found, f"{key} {columns.state}")
    if spelt is None:
        return None
    right = list(dict.fromkeys(spelt.get(state, state) for state in found))
    states = roster_mapping.order_states(right, f"{key} {columns.state} {len(right)}")
    if states is None:
        return None
    arms = studies.read_roster(sheet, states, columns=columns, spelt=spelt)
    warn_about(arms)
    begin = {
        "title": Path(sheet.name).stem,
        "budget": min(max(2, len(arms) // 4), LONGEST_FIRST_LIST),
        "hide_state": any(arm.columns for arm in arms),
    }
    make = partial(studies.from_roster, arms, states)
    facts = list(dict.fromkeys(column for arm in arms for column in arm.columns))
    return People("observed", "roster", begin, make, columns, facts)


def warn_about(arms: Sequence[Arm]) -> None:
    """Say what annotators will miss."""
    if unknown := sum(not arm.state for arm in arms):
        st.caption(
            f"{unknown:,} of {len(arms):,} {'has' if unknown == 1 else 'have'} no state, which "
            "counts as unknown. Annotators are not asked about them."
        )
    if not any(arm.columns for arm in arms):
        st.warning(
            "Cards will show nothing but the state, so annotators have nothing to judge by. Add "
            "columns to your roster, such as age, last visit or a note. Or go on without "
            "annotators: the list then follows the order of your states, and what helped before.",
            icon=":material/info:",
        )


def past_records(
    config: studies.StudyConfig, roster: studies.Columns | None
) -> studies.Records | None:
    """States and help from before the study, where the owner has records; roster: its columns."""
    with st.expander("Past records: earlier states, and who was helped"):
        st.markdown(
            "One row for each person and time: an id, when (a date or a number), the state and "
            "whether they were helped (1 or 0). Past records improve the first list. Records of "
            "people who are not in the roster help too."
        )
        uploaded = roster_mapping.upload_table("Past records", "history")
        if uploaded is None:
            example_button("Example records", "clinic_history.csv")
            return None
        sheet, key = uploaded
        guess = studies.guess_columns(sheet.columns, history=True, like=roster)
        columns = roster_mapping.choose_columns(sheet, key, "history", guess)
        if columns is None:
            return None
        try:
            past = studies.read_history(sheet, config, columns=columns)
        except studies.AmbiguousDatesError:
            order = st.radio(
                f"How are the dates in {plain(sheet.name)} written?",
                ["Day first (31/12/2026)", "Month first (12/31/2026)"],
                index=None,
                key=f"dates of {key}",
            )
            if order is None:
                return None
            past = studies.read_history(sheet, config, columns=columns, day_first="Day" in order)
        moves = chart_text.count(past.moves, "move")
        people = studies.counted_people(config.noun, past.arms)
        gaps = f"; not counted: {chart_text.count(past.gaps, 'gap')}" if past.gaps else ", no gaps"
        st.markdown(f"**{moves} of {plain(people)} found**{gaps}.")
        return past


def past_answers(
    config: studies.StudyConfig, past: studies.Records | None
) -> studies.PastAnswers | None:
    """Comparisons from before the study, where the owner has some."""
    with st.expander("Past answers: earlier comparisons, or those of a model"):
        st.markdown(
            "A table with the columns annotator, winner, loser and when. Winner and loser are ids "
            "of your roster. A model needs a name of its own, and its answers are weighted like "
            "anybody's. When is a date, a time, or empty.\n\n"
            "An answer is about the states of both people at that time, by your past records. "
            "Without such a record, it is about their states in the roster."
        )
        uploaded = roster_mapping.upload_table("Past answers", "past answers")
        if uploaded is None:
            example_button("Example answers", "clinic_answers.csv")
            return None
        records = None if past is None else past.text
        found = studies.read_answers(uploaded[0], config, records)
        answers = chart_text.count(found.count, "answer")
        people = chart_text.count(len(found.annotators), "annotator")
        st.markdown(f"**{answers} of {people} found**.")
        return found


def example_button(label: str, name: str) -> None:
    """A button that downloads one of the example files."""
    content = (ROSTERS / name).read_bytes()
    st.download_button(label, content, name, "text/csv", key=name, on_click="ignore")


def preview(config: studies.StudyConfig) -> None:
    """Two cases side by side, in different states where possible."""
    if config.world == "observed":
        known = [
            (n, config.state_number(arm.state)) for n, arm in enumerate(config.arms) if arm.state
        ]
        if len(known) < 2:
            return
        other = next((one for one in known if one[1] != known[0][1]), known[1])
        pair = [known[0], other]
    else:
        pair = [(0, 0), (1, config.n_states - 1)]
    st.markdown("**A comparison as annotators see it**")
    with st.container(border=True, key="preview"):
        st.markdown(f"**{plain(config.question)}**")
        left, right = (
            studies.side_of(config, arm, state, {}, config.hidden) for arm, state in pair
        )
        show_pair(config, left, right, 1, 0, key="preview-card")
    if any(arm.columns for arm in config.arms):
        cards = studies.SECTIONS["cards"]
        st.caption(f"To hide a column, such as a phone number, open *{cards}*.")
