"""Insights: whether it works, how people answer, and what the learner believes by now."""

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core.studies import findings, service
from dopl_core.studies.csvtext import printable
from dopl_core.studies.findings import Finding, charted
from pages import _charts, _working
from pages._backend import store
from pages._done import say_done, show_done
from pages._downloads import csv_button
from pages._trouble import said_plainly
from pages._who import owner_only
from pages._words import plain

owner_only()

st.title("Insights", anchor=False)
show_done()
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

MOST = 40  # arms in one picture; its data have them all
COLUMNS = {
    **{
        name: st.column_config.NumberColumn(format="%d %%")
        for name in ("weight", "left", "consistency", "right on plain pairs", "agrees with others")
    },
    "last answer": st.column_config.DatetimeColumn(
        format="D MMM YYYY, HH:mm", timezone=st.context.timezone
    ),
}


def show(finding: Finding, name: str, chart: alt.Chart | alt.LayerChart | None) -> None:
    """A finding: its title, its words, its chart (or its table, without words), its data."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{plain(finding.title)}**")
        if finding.words:
            st.caption(plain(finding.words))
        if chart is None and len(finding.data) and not finding.words:
            widths = whole_names(finding.data)
            st.dataframe(finding.data, hide_index=True, column_config=widths | COLUMNS)
        elif chart is not None and len(finding.data):
            st.altair_chart(chart)
        if len(finding.data):
            csv_button(
                "Data (CSV)", finding.data, f"{study.id}-{name}.csv", key=f"csv-{name}",
                type="tertiary", icon=":material/download:",
            )  # fmt: skip


def whole_names(table: pd.DataFrame) -> dict[str, object]:
    """Columns as wide as their longest text: a name that is cut off may be another's."""
    texts = table.select_dtypes(["object", "string"])
    longest = {name: max(len(name), texts[name].astype(str).str.len().max()) for name in texts}
    return {
        name: st.column_config.Column(width=int(min(600, 30 + 7 * most)))
        for name, most in longest.items()
        if most > 14
    }


def people() -> None:
    everything = service.answers(store(), study.id)
    given, out = findings.given(everything), service.excluded(store(), study.id)
    if given.empty:
        st.markdown("Nobody has answered yet.")
        return
    if without := findings.left_out(given, out):
        st.caption(plain(without))
    counted = given[~given.annotator.isin(out)]
    if len(counted):
        how_they_answer(counted)
        found = findings.agreement(service.agreement(everything[~everything.annotator.isin(out)]))
        if len(found.data) or found.words:
            show(found, "agreement", None)
        else:
            st.caption(found.title)
    labels = [state.label for state in study.config.states]
    everybody = service.annotators(everything, labels, out)
    weights = service.sureness(store(), study.id, now)
    for line in findings.warnings(everybody[~everybody.annotator.isin(out)], weights):
        st.caption(plain(line))
    show(findings.people(everybody, weights, out), "people", None)
    whom_to_trust(everybody.annotator.tolist(), out)


def how_they_answer(answers: pd.DataFrame) -> None:
    """When, how fast, and on which side."""
    timed = answers.response_ms.notna().any()
    left, right = st.columns(2) if timed else (st.container(), None)
    whole = alt.Axis(tickMinStep=1)
    with left:
        found = findings.over_time(answers)
        line = alt.Chart(found.data).mark_line(interpolate="step-after")
        time = _charts.moments(found.data.time, "time")
        so_far = alt.Y("answers:Q", title="answers so far", axis=whole)
        show(found, "over-time", line.encode(time, so_far))
    if right:
        found = findings.response_times(answers)
        bars = alt.Chart(found.data).mark_bar()
        axis = alt.Axis(tickCount=6)
        seconds = alt.X("from:Q", title="response time (s)", bin="binned", axis=axis)
        number = alt.Y("answers:Q", title="answers", axis=whole)
        with right:
            show(found, "response-times", bars.encode(seconds, alt.X2("to:Q"), number))
    show(*side_habits(answers))


def whom_to_trust(names: list[str], out: list[str]) -> None:
    """Leave somebody's answers out, or count them again; they are not told."""
    with st.expander("Leave out somebody's answers"):
        st.markdown(
            "From the next plan on, the answers of those named here do not count, and they are "
            "asked as before without being told. Take a name away, and all their answers count."
        )
        chosen = st.multiselect("Whose answers do not count", names, out, format_func=printable)
        changed = [name for name in names if (name in chosen) != (name in out)]
        if st.button("Save", key="trust", disabled=not changed):
            with said_plainly():
                for name in changed:
                    (service.exclude if name in chosen else service.include)(
                        store(), study.id, name
                    )
                say_done("Saved: it holds from the next plan on.")
                st.rerun()


def side_habits(answers: pd.DataFrame) -> tuple[Finding, str, alt.LayerChart]:
    """How often everybody chose left."""
    found = findings.sides(answers)
    strong, ink = _charts.colours()["strong"], _charts.colours()["ink"]
    axis, person = "share of left, 95 % range", _charts.named("person")
    data = _charts.names(findings.most_answers(found.data, MOST), "person")
    base = alt.Chart(data, height=_charts.step(data.person, 26))
    half = base.mark_rule(aria=False, strokeDash=[4, 4], color=ink, opacity=0.5).encode(
        x=alt.datum(0.5)
    )
    reach = base.mark_rule(aria=False, size=3, color=strong).encode(
        _charts.percent("low:Q", axis), alt.X2("high:Q"), person
    )
    dots = base.mark_point(filled=True, size=70, color=strong, opacity=1).encode(
        _charts.percent("left_share:Q", axis), person
    )
    found = findings.drawn_in_part(found, len(found.data), MOST)
    return found, "left-share", half + reach + dots


def learner() -> None:
    if now.plan is None:
        st.markdown("The first list is yet to be made.")
        return
    here = [arm.id for arm in study.config.arms if arm.present]
    beliefs = service.beliefs(study.config, now)
    beliefs = beliefs[beliefs.arm.isin(here)]
    plans = service.plans(store(), study.id)
    found = findings.strengths(beliefs)
    if findings.arms_differ(found.data):
        found = findings.drawn_in_part(found, len(here), MOST)
    show(found, "strengths", dots(found))
    found = findings.changes(plans)
    line = alt.Chart(found.data).mark_line(point=True)
    whole = alt.Axis(tickMinStep=1, tickCount=6)
    made = alt.X("answers:Q", title="answers that the plan was made with", axis=whole)
    axis = alt.Axis(labelExpr=_charts.PERCENT)
    changed = alt.Y("changed:Q", title="decisions changed", axis=axis)
    show(found, "changes", line.encode(made, changed))
    found = findings.moves(service.transitions(study.config, now))
    for group, data in findings.by_group(found.data):
        name = f"transitions-{group}" if group else "transitions"
        title = f"{found.title}: {group}" if group else found.title
        show(Finding(title, data), name, bars(data))
    show(findings.decisions(beliefs), "plan", None)


def dots(found: Finding) -> alt.LayerChart:
    """A line a state where arms hardly differ; else an arm a line, the most compared ones."""
    axis = "strength, with its 95 % range"
    few = alt.Axis(tickCount=6)
    reach, mean = alt.X("low:Q", title=axis, axis=few), alt.X("mean:Q", title=axis, axis=few)
    if not findings.arms_differ(found.data):
        data = _charts.names(findings.by_state(found.data), "state")
        base = alt.Chart(data, height=_charts.step(data.state, 36))
        place = _charts.named("state", data.state.tolist())
        strong = _charts.colours()["strong"]
        return base.mark_rule(aria=False, size=3, color=strong).encode(
            reach, alt.X2("high:Q"), place
        ) + base.mark_point(filled=True, size=80, color=strong, opacity=1).encode(mean, place)
    apart = len(states) <= 4
    data = _charts.names(findings.most_compared(found.data, MOST), "name")
    each = _charts.step(data.name, 9, len(states)) if apart else _charts.step(data.name, 16)
    base = alt.Chart(data, height=each)
    scale = alt.Scale(domain=states, range=_charts.ramp(len(states), "seen"))
    legend = _charts.legend(states)
    colour = alt.Color("state:N", sort=states, scale=scale, title=None, legend=legend)
    arm = _charts.named("name")
    offset = {"yOffset": alt.YOffset("state:N", sort=states)} if apart else {}
    return base.mark_rule(aria=False, size=1.5).encode(
        reach, alt.X2("high:Q"), arm, colour, **offset
    ) + base.mark_point(filled=True, size=40, opacity=1).encode(mean, arm, colour, **offset)


def bars(data: pd.DataFrame) -> alt.Chart:
    """Where arms go next from each state, left alone and helped: a bar each, parted by chances."""
    data = charted(data)
    data = data.assign(
        row=data.state.map(_charts.wrapped) + "\n(" + data.action + ")",
        rank=data.next_state.map(states.index),
    )
    share = alt.X(
        "chance:Q",
        stack="zero",
        title=None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(labelExpr=_charts.PERCENT, tickCount=5),
    )
    scale = alt.Scale(domain=states, range=_charts.ramp(len(states)))
    legend = _charts.legend(states)
    colour = alt.Color("next_state:N", scale=scale, sort=states, title="next state", legend=legend)
    row = _charts.named("row", data.row.drop_duplicates().tolist())
    told = ["state", "action", "next_state", alt.Tooltip("chance:Q", format=".0%"), "visits"]
    chart = alt.Chart(data, height=_charts.step(data.row, 38)).mark_bar()
    return chart.encode(share, row, colour, alt.Order("rank:Q"), tooltip=told)


now = service.load_learner(store(), study.id)
TABS = {
    "Is it working?": lambda: _working.show(study, now),
    "How people answer": people,
    "What the learner believes": learner,
}
for tab, draw in zip(
    st.tabs(list(TABS), key="look", bind="query-params"), TABS.values(), strict=True
):
    if tab.open:
        with tab:
            draw()
