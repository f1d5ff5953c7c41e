"""Insights: how people answer, and what the learner believes by now."""

import altair as alt
import streamlit as st

from dopl_core.studies import findings, service
from dopl_core.studies.csvtext import printable
from dopl_core.studies.findings import Finding, charted
from pages._backend import store
from pages._downloads import csv_button
from pages._who import owner_only
from pages._words import plain

owner_only()

st.title("Insights", anchor=False)
studies = {study.id: study for study in service.list_studies(store())}
if not studies:
    st.markdown("There is no study yet. Make one, or try one, and come back after some answers.")
    if st.button("Make a study", type="primary"):
        st.switch_page("pages/studies.py")
    st.stop()

asked_for = st.query_params.get("study")
chosen = st.selectbox(
    "Study",
    list(studies),
    index=list(studies).index(asked_for) if asked_for in studies else 0,
    format_func=lambda study: f"{studies[study].title} ({study})",
)
st.query_params["study"] = chosen
study = studies[chosen]
states = [printable(state.label) for state in study.config.states]

MOST, MOST_GROUPS = 40, 8  # arms and groups in one picture; their data have them all


def show(finding: Finding, name: str, chart: alt.Chart | alt.LayerChart | None) -> None:
    """A finding: its title, its chart or table, its data."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{plain(finding.title)}**")
        if chart is None:
            st.dataframe(finding.data, hide_index=True)
        elif len(finding.data):
            st.altair_chart(chart)
        if len(finding.data):
            csv_button(
                "Data (CSV)", finding.data, f"{study.id}-{name}.csv", key=f"csv-{name}",
                type="tertiary", icon=":material/download:",
            )  # fmt: skip


def shares(name: str, title: str) -> alt.X:
    return alt.X(name, title=title, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))


def people() -> None:
    everything = service.answers(store(), study.id)
    answers = findings.given(everything)
    if answers.empty:
        st.markdown("Nobody has answered yet.")
        return
    left, right = st.columns(2)
    with left:
        found = findings.over_time(answers)
        line = alt.Chart(found.data).mark_line(interpolate="step-after")
        time = alt.X("time:T", title="time (UTC)")
        show(found, "over-time", line.encode(time, alt.Y("answers:Q", title="answers so far")))
    with right:
        found = findings.response_times(answers)
        bars = alt.Chart(found.data).mark_bar()
        seconds = alt.X("from:Q", title="response time (s)", bin="binned")
        number = alt.Y("answers:Q", title="answers")
        show(found, "response-times", bars.encode(seconds, alt.X2("to:Q"), number))
    left, right = st.columns(2)
    with left:
        found = findings.sides(answers)
        axis = "share of left, 95 % interval"
        person = alt.Y("person:N", title=None, sort=None)
        base = alt.Chart(charted(found.data))
        half = base.mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(0.5))
        reach = base.mark_rule(size=2).encode(shares("low:Q", axis), alt.X2("high:Q"), person)
        dots = base.mark_point(filled=True, size=70).encode(shares("left_share:Q", axis), person)
        show(found, "left-share", half + reach + dots)
    with right:
        found = findings.agreement(service.agreement(everything))
        bars = alt.Chart(found.data).mark_bar(size=14)
        said = shares("agreement:Q", "share of pairs of people who say the same")
        show(found, "agreement", bars.encode(said, alt.Y("duels:Q", title="duels")))
    show(findings.people(service.annotators(everything)), "people", None)


def learner() -> None:
    now = service.load_learner(store(), study.id)
    beliefs = service.beliefs(study.config, now)
    plans = service.plans(store(), study.id)
    found = findings.strengths(beliefs)
    show(found, "strengths", dots(found))
    left, right = st.columns(2)
    with left:
        found = findings.changes(plans)
        line = alt.Chart(found.data).mark_line(point=True)
        made = alt.X("answers:Q", title="answers that the plan was made with")
        changed = alt.Y("changed:Q", title="decisions changed", axis=alt.Axis(format="%"))
        show(found, "changes", line.encode(made, changed))
    with right:
        found = findings.worth(plans)
        line = alt.Chart(found.data).mark_line(point=True)
        number = alt.X("plan:Q", title="plan", axis=alt.Axis(tickMinStep=1, format="d"))
        worth = alt.Y("worth:Q", title="believed worth an epoch", scale=alt.Scale(zero=False))
        who = alt.Color("who:N", title=None, legend=alt.Legend(orient="top"))
        show(found, "worth", line.encode(number, worth, who))
    found = findings.moves(service.transitions(study.config, now))
    show(found, "transitions", grid(found))
    show(findings.decisions(beliefs), "plan", None)


def dots(found: Finding) -> alt.LayerChart:
    """An arm a line (the most compared ones), its states side by side on it where there are few."""
    few = len(states) <= 4
    data = charted(findings.most_compared(found.data, MOST))
    base = alt.Chart(data, height=alt.Step(9 if few else 16))
    colour = alt.Color(
        "state:N", sort=states, title=None, legend=alt.Legend(orient="top", columns=4)
    )
    arm = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelOverlap=False, grid=True))
    offset = {"yOffset": alt.YOffset("state:N", sort=states)} if few else {}
    axis = "strength over the reference (log odds of winning), 95 % interval"
    reach = alt.X("low:Q", title=axis)
    return base.mark_rule(size=1.5).encode(
        reach, alt.X2("high:Q"), arm, colour, **offset
    ) + base.mark_point(filled=True, size=40).encode(
        alt.X("mean:Q", title=axis), arm, colour, **offset
    )


def grid(found: Finding) -> alt.FacetChart:
    """From a state to the next: a square a chance, for each group, left alone and helped."""
    cell = alt.Chart(
        width=max(280, 22 * len(states)), height=alt.Step(30 if len(states) < 7 else 18)
    )
    cell = cell.encode(
        alt.X(
            "next_state:N",
            sort=states,
            title="next state",
            axis=alt.Axis(labelLimit=110, labelAngle=0 if len(states) < 4 else -60),
        ),
        alt.Y("state:N", sort=states, title="state"),
    )
    ramp = alt.Scale(domain=[0, 1], range=["#eef4f1", "#0a5c55"])
    squares = cell.mark_rect().encode(alt.Color("chance:Q", scale=ramp, legend=None))
    if len(states) < 7:
        ink = alt.condition("datum.chance > 0.5", alt.value("white"), alt.value("black"))
        squares += cell.mark_text().encode(alt.Text("chance:Q", format=".0%"), color=ink)
    data = charted(found.data)
    groups = data.group.drop_duplicates()[:MOST_GROUPS]
    return squares.facet(
        data=data[data.group.isin(groups)],
        row=alt.Row("group:N", title=None, sort=None),
        column=alt.Column("action:N", title=None, sort=["left alone", "helped"]),
    )


of_people, of_learner = st.tabs(["How people answer", "What the learner believes"])
with of_people:
    people()
with of_learner:
    learner()
