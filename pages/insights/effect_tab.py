"""Is it working? The answer in words first, then the evidence: states, effect, forecast, list."""

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import (
    Learner,
    Study,
    assessment,
    assessment_text,
    chart_text,
    forecast,
    printable,
)
from pages.insights import sharing_box, trial_box
from pages.insights.finding_box import finding_box
from pages.shared import charts
from pages.shared.guards import store
from pages.shared.markdown import plain


def show(study: Study, learner: Learner) -> None:
    """The answer and one chart; the evidence is folded. In a trial, its analysis is the answer."""
    trial = trial_box.show(study)
    found = _assess(study.id, studies.last_event(store(), study.id), learner)
    answer, basis = assessment_text.headline(found)
    if trial is None:
        with st.container(border=True, key="answer"):
            st.subheader(answer, anchor=False)
            st.markdown(plain(basis))
    else:
        with st.expander("All reports: not part of the trial"):
            st.markdown(f"**{plain(answer)}**")
            st.markdown(plain(basis))
            st.caption(
                "This comparison also uses people who were not drawn at random, and is read every "
                f"{plain(found.config.epoch_word)}. So it can say something else than the trial."
            )
    if found.weeks:
        states_over_time(found, study)
        helped_and_not(found, study)
    effect_by_state(found, study)
    if trial is None:
        with st.expander("Places chosen at random"):
            title, basis = assessment_text.by_lot_text(found)
            st.markdown(f"**{plain(title)}**")
            st.markdown(plain(basis))
            st.caption(
                "To publish an effect, make a study with a protocol: it is fixed before the first "
                "list and says how and when the effect is computed."
            )
    sharing_box.show(study, learner, seen=found.forecast is not None)
    if found.forecast is not None:
        forecasts(found, study)
    if found.places:
        places(found, study)
    elif found.forecast is not None:
        most = f"{assessment.MOST_PEOPLE:,}"
        st.caption(f"Per-person probabilities are shown for up to {most} people.")


@st.cache_data(max_entries=16, show_spinner="Calculating ...")
def _assess(study: str, event: int, _learner: Learner) -> assessment.Assessment:
    """The assessment, calculated once after each event of the study."""
    return assessment.assess(store(), study, _learner)


def states_over_time(found: assessment.Assessment, study: Study) -> None:
    """People in each state by week, and why the trend may differ from the answer."""
    finding = assessment_text.states_finding(found)
    data = chart_text.with_one_line_texts(finding.data)
    with finding_box(finding, "states", study):
        if trend := assessment_text.trend_text(found):
            st.markdown(plain(trend))
        st.altair_chart(_states_chart(found, data[data.group == "everybody"]))
        st.caption("People with an unknown state are not counted.")


def helped_and_not(found: assessment.Assessment, study: Study) -> None:
    """The better half of people helped and not helped, by week."""
    data = assessment_text.states_finding(found).data
    data = data[data.group != "everybody"].drop_duplicates(["week", "group"]).dropna()
    with st.expander("People helped and not helped"):
        st.altair_chart(_better_half_chart(found, data))
        st.caption(
            "Do not compare the two lines: the two groups differed to begin with. *What help does "
            "in each state* allows for that."
        )


def _states_chart(found: assessment.Assessment, data: pd.DataFrame) -> alt.Chart:
    states = [printable(state.label) for state in found.config.states]
    scale = alt.Scale(domain=states, range=charts.ramp(len(states)))
    legend = charts.legend(states)
    noun, whole = printable(studies.plural(found.config.noun)), alt.Axis(tickMinStep=1)
    people = alt.Y("people:Q", title=noun, stack="zero", axis=whole)
    colour = alt.Color("state:N", scale=scale, sort=states, title=None, legend=legend)
    week = alt.Tooltip("week", title=printable(found.config.epoch_word))
    chart = alt.Chart(data.assign(rank=data.state.map(states.index))).mark_bar()
    return chart.encode(
        charts.weeks(data.week, found.config.epoch_word),
        people,
        colour,
        alt.Order("rank:Q"),
        [week, "state", "people"],
    )


def _better_half_chart(found: assessment.Assessment, data: pd.DataFrame) -> alt.Chart:
    word = printable(found.config.epoch_word)
    share = alt.Y(
        "better_half:Q",
        title=f"in the better half at the end of the {word}",
        axis=alt.Axis(labelExpr=charts.PERCENT),
        scale=alt.Scale(domain=[0, 1]),
    )
    colours = [charts.colours()[name] for name in ("strong", "second")]
    scale = alt.Scale(domain=["helped", "not helped"], range=colours)
    legend = alt.Legend(orient="top")
    group = alt.Color("group:N", scale=scale, title=None, legend=legend)
    tooltip = [alt.Tooltip("week", title=word), "group", alt.Tooltip("of", title="people")]
    week = charts.weeks(data.week, word)
    return alt.Chart(data).mark_line(point=True).encode(week, share, group, tooltip)


def effect_by_state(found: assessment.Assessment, study: Study) -> None:
    """What was observed in each state, and the estimated effect of help with its interval."""
    finding = assessment_text.effect_by_state_finding(found)
    known = finding.data.dropna(subset="difference")
    with finding_box(finding, "by-state", study, "What help does in each state"):
        for state in finding.data.itertuples():
            st.markdown(plain(state.observed))
        if known.empty:
            return
        word = plain(found.config.epoch_word)
        st.markdown(
            f"Estimate: how many more in 100 are better off the next {word} with help than without:"
        )
        estimates = 100 * known[["difference", "low", "high"]]
        numbers = estimates.set_axis(["mean", "low", "high"], axis=1)
        words = [
            f"{100 * row.difference:+.0f} (90 % interval {100 * row.low:+.0f} to "
            f"{100 * row.high:+.0f}); same people: {_difference(row.within)}"
            for row in known.itertuples()
        ]
        data = numbers.assign(name=known.state, words=words)
        st.altair_chart(charts.ranges(data, (-100, 100), zero=True))
        st.caption(
            "Lines are 90 % intervals. The estimate uses all moves and allows in part for "
            "differences between people, so it can differ from the shares above. Same people: only "
            "people seen in the state both with help and without since the study began, compared "
            f"with themselves, allowing for good and bad {word}s (least squares)."
        )
        for sentence in assessment_text.earlier_help_text(found):
            st.markdown(plain(sentence))


def _difference(share: float) -> str:
    return "too few" if pd.isna(share) else f"{100 * share:+.0f}"


def forecasts(found: assessment.Assessment, study: Study) -> None:
    """The coming weeks by the list, worst first, with help at random and without help."""
    finding = assessment_text.forecast_finding(found)
    present = int(found.config.present.sum())
    nouns, word = plain(studies.plural(found.config.noun)), plain(found.config.epoch_word)
    with finding_box(finding, "forecast", study, f"The next {forecast.WEEKS_AHEAD} {word}s"):
        st.markdown(
            f"How many of {present} {nouns} are in the better half, on average of the next "
            f"{forecast.WEEKS_AHEAD} {word}s:"
        )
        words = [
            f"{row.people:.1f} (90 % interval {row.low:.1f} to {row.high:.1f})"
            for row in finding.data.itertuples()
        ]
        data = finding.data.rename(columns={"people": "mean", "help": "name"})
        st.altair_chart(charts.ranges(data.assign(words=words), (0, present)))
        st.caption(
            "All four use the same estimates and the same random numbers. Worst off first: a list "
            "sorted by state, with ties broken at random. "
            f"{assessment_text.rules_text(found.config)}"
        )


def places(found: assessment.Assessment, study: Study) -> None:
    """The people on the list, the surest first, and whether to go on answering."""
    finding = assessment_text.places_finding(found)
    data = finding.data
    data = data.assign(probability=(100 * data.probability).round().astype(int))
    columns = ["probability", "name", "state", "random", "to_find_out", "id"]  # a phone shows two
    config = {
        "probability": st.column_config.ProgressColumn(
            "belongs", format="%d %%", min_value=0, max_value=100, width="small"
        ),
        "random": "chosen at random",
        "to_find_out": "to find out",
    }
    with finding_box(finding, "places", study, "How sure each place on the list is"):
        st.dataframe(data[columns], hide_index=True, column_config=config)
        st.caption("Belongs: would be listed if everyone's response to help were known.")
        for sentence in assessment_text.advice(found):
            st.markdown(sentence)
