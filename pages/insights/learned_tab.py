"""What was learned: strengths, how much plans change, how people move, and the plan."""

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import Learner, Study, chart_text, printable, sizes_text
from pages.insights.finding_box import finding_box, show_chart, show_table
from pages.shared import charts
from pages.shared.guards import store
from pages.shared.markdown import plain

MOST_PEOPLE = 40  # in one chart; its CSV file has all


def show(study: Study, learner: Learner) -> None:
    """Charts of what the learner estimates, and its plan as a table."""
    if learner.plan is None:
        st.markdown("There is no list yet.")
        return
    present = [arm.id for arm in study.config.arms if arm.present]
    beliefs = studies.beliefs(study.config, learner)
    beliefs = beliefs[beliefs.arm.isin(present)]
    states = [printable(state.label) for state in study.config.states]
    if beliefs.answers.any():
        strengths(study, beliefs, states)
    else:
        st.markdown("No comparison of these people has been answered yet.")
    plan_changes(study)
    moves = chart_text.moves_findings(studies.transitions(study.config, learner))
    for group, finding in moves.items():
        name = f"transitions-{group}" if group else "transitions"
        show_chart(finding, name, study, moves_chart(finding.data, states))
    if learner.visits.any():  # before the first move it is the prior
        columns_and_season(study, learner)
    show_table(chart_text.decisions_finding(beliefs), "plan", study)


def columns_and_season(study: Study, learner: Learner) -> None:
    """How the next week differs from all weeks, and which columns matter, by how much."""
    last = studies.last_event(store(), study.id)
    matter, sizes, season = _columns_and_season(study.id, last, learner)
    if sentence := sizes_text.season_text(season, study.config):
        st.markdown(plain(sentence))
    if matter:
        show_table(chart_text.columns_finding(matter), "columns", study)
    finding = sizes_text.sizes_finding(sizes, matter, study.config)
    if finding.data.empty:
        return
    with finding_box(finding, "column-sizes", study):
        st.dataframe(sizes_text.in_words(finding.data), hide_index=True)
        noun = plain(studies.plural(study.config.noun))
        st.caption(
            f"How many more {noun} in 100 are better off the next {plain(study.config.epoch_word)} "
            "than on average, with 90 % intervals. Better off means: in a better state, or still "
            "in the best one. High means: one standard deviation above the mean. Help adds: how "
            "much more help does for them than on average."
        )


@st.cache_data(max_entries=16, show_spinner="Calculating ...")
def _columns_and_season(
    study: str, event: int, _learner: Learner
) -> tuple[dict[str, float], list[sizes_text.Size], tuple[float, float] | None]:
    """What the learner says of columns and the season, calculated once after each event."""
    return _learner.which_columns(), _learner.column_sizes(), _learner.season_size()


def strengths(study: Study, beliefs: pd.DataFrame, states: list[str]) -> None:
    """One line per state if people in a state hardly differ, else one line per person."""
    finding = chart_text.strengths_finding(beliefs)
    if chart_text.arms_differ(finding.data):
        chart = strengths_by_person(finding.data, states)
        finding = chart_text.with_limit_note(finding, beliefs.arm.nunique(), MOST_PEOPLE)
    else:
        chart = strengths_by_state(finding.data)
    show_chart(finding, "strengths", study, chart)


def strengths_by_state(data: pd.DataFrame) -> alt.LayerChart:
    """The mean strength of each state with its interval."""
    data = charts.names(chart_text.mean_strengths(data), "state")
    base = alt.Chart(data, height=charts.step(data.state, 36))
    state = charts.named("state", data.state.tolist())
    strong = charts.colours()["strong"]
    intervals = base.mark_rule(aria=False, size=3, color=strong)
    dots = base.mark_point(filled=True, size=80, color=strong, opacity=1)
    low, mean = _strength("low"), _strength("mean")
    return intervals.encode(low, alt.X2("high:Q"), state) + dots.encode(mean, state)


def strengths_by_person(data: pd.DataFrame, states: list[str]) -> alt.LayerChart:
    """The strengths of the people with the most answers, a colour for each state."""
    apart = len(states) <= 4  # a row of its own for each state of a person
    data = charts.names(chart_text.most_compared(data, MOST_PEOPLE), "name")
    height = charts.step(data.name, 9, len(states)) if apart else charts.step(data.name, 16)
    base = alt.Chart(data, height=height)
    scale = alt.Scale(domain=states, range=charts.ramp(len(states), "seen"))
    legend = charts.legend(states)
    colour = alt.Color("state:N", sort=states, scale=scale, title=None, legend=legend)
    person = charts.named("name")
    offset = {"yOffset": alt.YOffset("state:N", sort=states)} if apart else {}
    intervals = base.mark_rule(aria=False, size=1.5)
    dots = base.mark_point(filled=True, size=40, opacity=1)
    low, mean = _strength("low"), _strength("mean")
    return intervals.encode(low, alt.X2("high:Q"), person, colour, **offset) + dots.encode(
        mean, person, colour, **offset
    )


def _strength(column: str) -> alt.X:
    axis = alt.Axis(tickCount=6)
    return alt.X(f"{column}:Q", title="strength with 95 % interval", axis=axis)


def plan_changes(study: Study) -> None:
    """The share of decisions that each plan changed, week by week."""
    plans = studies.plans(store(), study.id)
    finding = chart_text.plan_changes_finding(plans, study.config.horizon)
    percent = alt.Axis(labelExpr=charts.PERCENT)
    changed = alt.Y("changed:Q", title="decisions changed", axis=percent)
    week = charts.weeks(finding.data.week, study.config.epoch_word)
    line = alt.Chart(finding.data).mark_line(point=True)
    show_chart(finding, "changes", study, line.encode(week, changed, tooltip=["week", "answers"]))


def moves_chart(data: pd.DataFrame, states: list[str]) -> alt.Chart:
    """One bar per state and action, divided by the probabilities of the next states."""
    data = chart_text.with_one_line_texts(data)
    data = data.assign(
        row=data.state.map(charts.wrapped) + "\n(" + data.action + ")",
        rank=data.next_state.map(states.index),
    )
    share = alt.X(
        "chance:Q",
        stack="zero",
        title=None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(labelExpr=charts.PERCENT, tickCount=5),
    )
    scale = alt.Scale(domain=states, range=charts.ramp(len(states)))
    legend = charts.legend(states)
    colour = alt.Color("next_state:N", scale=scale, sort=states, title="next state", legend=legend)
    row = charts.named("row", data.row.drop_duplicates().tolist())
    tooltip = ["state", "action", "next_state", alt.Tooltip("chance:Q", format=".0%"), "visits"]
    chart = alt.Chart(data, height=charts.step(data.row, 38)).mark_bar()
    return chart.encode(share, row, colour, alt.Order("rank:Q"), tooltip=tooltip)
