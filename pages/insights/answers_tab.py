"""How people answer: when, how fast, on which side, and how far they agree."""

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import (
    Learner,
    Study,
    chart_text,
    printable,
    reasons_text,
    reliability,
    reliability_text,
)
from pages.insights.finding_box import finding_box, show_chart, show_table
from pages.shared import charts
from pages.shared.clicks import clicked
from pages.shared.downloads import csv_button
from pages.shared.errors import show_errors
from pages.shared.flash import flash, show_flash
from pages.shared.guards import store
from pages.shared.markdown import plain
from pages.studies import judges

MOST_PEOPLE = 40  # in one chart; its CSV file has all
_WHOLE_NUMBERS = alt.Axis(tickMinStep=1)


def show(study: Study, learner: Learner) -> None:
    """Charts of all answers, agreement, a table of the annotators, and exclusion."""
    show_consents(study)
    judges.show_warnings(study, studies.judging(store(), study.id))
    answers = studies.answers(store(), study.id)
    learnt = chart_text.learnt_answers(answers)
    excluded = studies.excluded_annotators(store(), study.id)
    past = studies.past_annotators(store(), study.id)
    if learnt.empty:
        st.markdown("Nobody has answered yet.")
        if past:
            exclusion_form(study, list(dict.fromkeys([*past, *excluded])), excluded)
        return
    if note := chart_text.excluded_note(learnt, excluded):
        st.caption(plain(note))
    counted = learnt[~learnt.annotator.isin(excluded)]
    if len(counted):
        reliability_chart(study, learner, answers)
        time_charts(study, counted)
        sides_chart(study, counted)
        agreement(study, answers[~answers.annotator.isin(excluded)])
        reasons(study, counted)
    labels = [state.label for state in study.config.states]
    annotators = studies.annotators(answers, labels, excluded)
    weights = studies.sureness(store(), study.id, learner)
    for warning in chart_text.warnings(annotators[~annotators.annotator.isin(excluded)], weights):
        st.caption(plain(warning))
    show_table(chart_text.annotators_finding(annotators, weights, excluded), "people", study)
    exclusion_form(study, list(dict.fromkeys([*annotators.annotator, *past])), excluded)


def reliability_chart(study: Study, learner: Learner, answers: pd.DataFrame) -> None:
    """Whether people can stop answering: reliability now and with more answers."""
    enough = _measure_enough(study.id, studies.last_event(store(), study.id), learner, answers)
    finding = reliability_text.finding(enough)
    strong, ink = charts.colours()["strong"], charts.colours()["ink"]
    base = alt.Chart(finding.data, height=240)
    points = alt.Axis(values=finding.data.answers.tolist(), format="d")
    number = alt.X("answers:Q", axis=points, scale=alt.Scale(zero=False, nice=False, padding=20))
    scale = alt.Scale(domain=[0, 1], clamp=True)
    line = base.mark_line(color=strong, point={"size": 90, "filled": True}).encode(
        number, alt.Y("reliability:Q", scale=scale)
    )
    interval = base.mark_rule(aria=False, size=3, color=strong).encode(
        number, alt.Y("low:Q", scale=scale, title="reliability"), alt.Y2("high:Q")
    )
    bar = base.mark_rule(aria=False, strokeDash=[4, 4], color=ink, opacity=0.5).encode(
        y=alt.datum(reliability.ENOUGH)
    )
    show_chart(finding, "reliability", study, bar + interval + line)
    if enough.found is not None:
        with st.expander("All measures of reliability"):
            st.dataframe(reliability_text.measures(enough.found), hide_index=True, placeholder="")
            st.caption(
                "Intervals are 95 % intervals. Infit says how well somebody's answers fit those of "
                "all. 1 is expected; well above 1, they disagree with the others."
            )


@st.cache_data(max_entries=16, show_spinner="Calculating ...")
def _measure_enough(
    study: str, event: int, _learner: Learner, _answers: pd.DataFrame
) -> reliability.Enough:
    """Measured once after each event of the study."""
    return reliability.measure_enough(store(), study, _learner, _answers)


def show_consents(study: Study) -> None:
    """Who agreed to which version of the consent text, and when."""
    agreed = studies.consents(store(), study.id)
    if len(agreed):
        with st.expander("Who agreed to the consent text"):
            st.dataframe(agreed, hide_index=True)
            csv_button("Consents (CSV)", agreed, f"{study.id}-consents.csv")


def time_charts(study: Study, answers: pd.DataFrame) -> None:
    """Answers over time and, if they were measured, response times."""
    timed = answers.response_ms.notna().any()
    left, right = st.columns(2) if timed else (st.container(), None)
    with left:
        finding = chart_text.answers_over_time_finding(answers)
        line = alt.Chart(finding.data).mark_line(interpolate="step-after")
        time = charts.moments(finding.data.time, "time")
        so_far = alt.Y("answers:Q", title="answers so far", axis=_WHOLE_NUMBERS)
        show_chart(finding, "over-time", study, line.encode(time, so_far))
    if right:
        with right:
            finding = chart_text.response_times_finding(answers)
            bars = alt.Chart(finding.data).mark_bar()
            axis = alt.Axis(tickCount=6)
            seconds = alt.X("from:Q", title="response time (s)", bin="binned", axis=axis)
            number = alt.Y("answers:Q", title="answers", axis=_WHOLE_NUMBERS)
            chart = bars.encode(seconds, alt.X2("to:Q"), number)
            show_chart(finding, "response-times", study, chart)


def sides_chart(study: Study, answers: pd.DataFrame) -> None:
    """How often each person chose left, against a line at one half."""
    finding = chart_text.sides_finding(answers)
    strong, ink = charts.colours()["strong"], charts.colours()["ink"]
    axis, person = "share of left, 95 % interval", charts.named("person")
    data = charts.names(chart_text.most_answers(finding.data, MOST_PEOPLE), "person")
    base = alt.Chart(data, height=charts.step(data.person, 26))
    half = base.mark_rule(aria=False, strokeDash=[4, 4], color=ink, opacity=0.5).encode(
        x=alt.datum(0.5)
    )
    intervals = base.mark_rule(aria=False, size=3, color=strong).encode(
        charts.percent("low:Q", axis), alt.X2("high:Q"), person
    )
    dots = base.mark_point(filled=True, size=70, color=strong, opacity=1).encode(
        charts.percent("left_share:Q", axis), person
    )
    finding = chart_text.with_limit_note(finding, len(finding.data), MOST_PEOPLE)
    show_chart(finding, "left-share", study, half + intervals + dots)


def agreement(study: Study, answers: pd.DataFrame) -> None:
    """Agreement in words; its measures are in the CSV file."""
    finding = chart_text.agreement_finding(studies.measure_agreement(answers))
    if finding.note:
        with finding_box(finding, "agreement", study):
            pass
    else:
        st.caption(finding.title)


def reasons(study: Study, answers: pd.DataFrame) -> None:
    """Why people answered as they did, where the owner asked."""
    names = {arm.id: studies.name_of(study.config, arm) for arm in study.config.arms}
    if finding := reasons_text.tags_finding(answers):
        show_table(finding, "reasons", study)
    if finding := reasons_text.words_finding(answers, names):
        show_table(finding, "reasons-in-words", study)


def exclusion_form(study: Study, names: list[str], excluded: list[str]) -> None:
    """Exclude people's answers, or include them again."""
    with st.expander("Exclude somebody's answers"):
        st.markdown(
            "Answers of the people chosen here do not count from the next plan on. These people "
            "can go on answering and are not told. Remove a name to count all their answers again."
        )
        show_flash("trust")
        chosen = st.multiselect("Excluded people", names, excluded, format_func=printable)
        changed = [name for name in names if (name in chosen) != (name in excluded)]
        if clicked("Save", key="trust", disabled=not changed):
            with show_errors():
                for name in changed:
                    change = studies.exclude if name in chosen else studies.include
                    change(store(), study.id, name)
                flash("Saved. It takes effect with the next plan.", "trust")
                st.rerun()
