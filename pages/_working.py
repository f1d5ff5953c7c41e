"""Is it working? Words first: how everybody is, what help does, what the list is worth."""

import altair as alt
import streamlit as st

from dopl_core.learning.dopl import Dopl
from dopl_core.studies import saying, service, verdict
from dopl_core.studies.believed import AHEAD
from dopl_core.studies.csvtext import printable
from dopl_core.studies.findings import charted
from dopl_core.studies.service import Study
from dopl_core.studies.verdict import MOST, Verdict
from pages import _charts
from pages._backend import store
from pages._downloads import csv_button
from pages._words import plain


def show(study: Study, learner: Dopl) -> None:
    """The answer, and what it rests on, the most telling first."""
    found = _read(study.id, service.last_event(store(), study.id), learner)
    said, basis = saying.headline(found)
    with st.container(border=True, key="answer"):
        st.subheader(said, anchor=False)
        st.markdown(plain(basis))
    if found.weeks:
        with block(saying.course(found), "course", study):
            course(found)
        with block(saying.by_state(found), "by-state", study):
            by_state(found)
    with st.container(border=True):
        said, basis = saying.lots(found)
        st.markdown(f"**{plain(said)}**")
        st.markdown(plain(basis))
    if found.worth is not None:
        with block(saying.worth(found), "worth", study):
            worth(found)
    if found.belongs:
        with block(saying.belongs(found), "belongs", study):
            belongs(found)
    elif found.worth is not None:
        st.caption(f"How sure each place of the list is, is worked out for up to {MOST:,} people.")


@st.cache_data(max_entries=16, show_spinner="Working it out ...")
def _read(study: str, event: int, _learner: Dopl) -> Verdict:
    """The verdict, once for each event of the study."""
    return verdict.read(store(), study, _learner)


def block(finding: saying.Finding, name: str, study: Study) -> st.delta_generator.DeltaGenerator:
    """A finding's place on the page: its title and its data; the chart comes between."""
    place = st.container(border=True)
    place.markdown(f"**{plain(finding.title)}**")
    inside = place.container()
    with place:
        csv_button(
            "Data (CSV)", finding.data, f"{study.id}-{name}.csv", key=f"csv-{name}",
            type="tertiary", icon=":material/download:",
        )  # fmt: skip
    return inside


def course(found: Verdict) -> None:
    """How many are in each state, and beside it the better half of those helped and not."""
    data = charted(saying.course(found).data)
    word = printable(found.config.epoch_word)
    states = [printable(state.label) for state in found.config.states]
    shown = list(range(1, found.weeks + 1, -(-found.weeks // 12)))  # evenly, on a phone too
    week = alt.X("week:O", title=word, axis=alt.Axis(labelAngle=0, values=shown))
    legend = _charts.legend(states)
    scale = alt.Scale(domain=states, range=_charts.ramp(len(states)))
    stacked = (
        alt.Chart(data[data.who == "everybody"].assign(rank=data.state.map(states.index)))
        .mark_bar()
        .encode(
            week,
            alt.Y("people:Q", title=printable(found.config.noun) + "s", stack="zero"),
            alt.Color("state:N", scale=scale, sort=states, title=None, legend=legend),
            alt.Order("rank:Q"),
            [alt.Tooltip("week", title=word), "state", "people"],
        )
    )
    parts = data[data.who != "everybody"].drop_duplicates(["week", "who"]).dropna()
    colours = _charts.colours()
    who = alt.Color(
        "who:N",
        scale=alt.Scale(
            domain=["helped", "not helped"], range=[colours["strong"], colours["second"]]
        ),
        title=None,
        legend=alt.Legend(orient="top"),
    )
    lines = (
        alt.Chart(parts)
        .mark_line(point=True)
        .encode(
            week,
            alt.Y(
                "better_half:Q",
                title="in the better half afterwards",
                axis=alt.Axis(labelExpr=_charts.PERCENT),
                scale=alt.Scale(domain=[0, 1]),
            ),
            who,
            [alt.Tooltip("week", title=word), "who", alt.Tooltip("of", title="people")],
        )
    )
    left, right = st.columns(2)
    left.altair_chart(stacked)
    right.altair_chart(lines)
    st.caption(
        "Those whose state was not known are not counted. Those helped are not those not helped: "
        "who is badly off is helped more often. What help does is seen below, where everybody is "
        "compared with themselves."
    )


def by_state(found: Verdict) -> None:
    """With help and without, a line a state, and what is not known."""
    finding = saying.by_state(found)
    known = finding.data.dropna()
    word = plain(found.config.epoch_word)
    if known.empty:
        st.caption(
            "Everybody is compared with themselves: somebody must have been in the same state with "
            "help and without."
        )
        return
    st.markdown(f"Of 100, so many more are better off the next {word} with help than without:")
    words = [
        f"{round(100 * one.with_help)} with help, {round(100 * one.without)} without"
        for one in known.itertuples()
    ]
    data = 100 * known[["gain", "low", "high"]].set_axis(["mean", "low", "high"], axis=1)
    data = data.assign(name=known.state, words=words)
    st.altair_chart(_charts.ranges(data, (-100, 100), zero=True))
    for state in finding.data[finding.data.gain.isna()].state:
        st.markdown(f'"{plain(state)}": nothing can be said yet.')
    st.caption(
        "Everybody is compared with themselves: the same person in the same state, with help and "
        "without. 9 of 10 such ranges hold the truth."
    )


def worth(found: Verdict) -> None:
    """The list, chance and no help, with their intervals."""
    data = saying.worth(found).data
    here = int(found.config.present.sum())
    noun, word = plain(found.config.noun), plain(found.config.epoch_word)
    st.markdown(
        f"So many of {here} {noun}s in the better half, on average of the next {AHEAD} {word}s:"
    )
    words = [f"{x.people:.1f} ({x.low:.1f} to {x.high:.1f})" for x in data.itertuples()]
    data = data.rename(columns={"people": "mean", "who": "name"}).assign(words=words)
    st.altair_chart(_charts.ranges(data, (0, here)))
    st.caption(
        "All three by the same beliefs, and with the same luck. 9 of 10 such ranges hold the truth."
    )


def belongs(found: Verdict) -> None:
    """Everybody on the list, the surest first, and whether to go on asking."""
    data = saying.belongs(found).data
    data = data.assign(chance=(100 * data.chance).round().astype(int))
    columns = ["chance", "name", "state", "by lot", "id"]  # a phone shows the first two
    bar = st.column_config.ProgressColumn(
        "belongs", format="%d %%", min_value=0, max_value=100, width="small"
    )
    st.dataframe(data[columns], hide_index=True, column_config={"chance": bar})
    st.caption(
        "Those belong on the list whom somebody would help now who knew how everybody moves."
    )
    if advice := saying.advice(found):
        st.markdown(advice)
