"""Simulate: let learners play simulated worlds, watch the curves grow, compare."""

import altair as alt
import streamlit as st

from dopl_core import environments
from dopl_core.experiments import background as simulations
from dopl_core.experiments.background import Settings, Simulation
from dopl_core.experiments.runs import LEARNERS
from pages import _shared as ui

ui.owner_only()

NAMES = {
    "dopl": "DOPL",
    "oracle": "Oracle (knows everything)",
    "random": "Random help",
    "mle_lp": "MLE + LP",
    "mle_wibql": "MLE + WIBQL",
    "mle_qwic": "MLE + QWIC",
}
MEASURES = {
    "reward": "reward an epoch",
    "cumulative_regret": "cumulative regret",
    "index_error": "order of the index (Kendall's tau)",
}


def start_form() -> None:
    """What to play."""
    with st.form("start"):
        left, middle, right = st.columns(3)
        names = environments.names()
        environment = left.selectbox(
            "World",
            names,
            index=names.index("cpap"),
            format_func=lambda name: environments.load(name).title,
        )
        confidence = middle.selectbox("Confidence of DOPL", ["calibrated", "paper"])
        seeds = right.number_input("Seeds", 1, 50, 3, help="How often, each time with other luck")
        learners = st.multiselect(
            "Learners", LEARNERS, ["dopl", "random"], format_func=lambda name: NAMES[name]
        )
        left, right = st.columns(2)
        episodes = left.number_input("Episodes (plans)", 1, 100_000, 60)
        horizon = right.number_input("Epochs an episode", 1, 10_000, 5)
        if st.form_submit_button("Start", type="primary", icon=":material/play_arrow:"):
            with ui.said_plainly():
                given = Settings(environment, tuple(learners), confidence, episodes, horizon, seeds)
                st.session_state.compared = [simulations.start(given)]


def progress(number: int, simulation: Simulation) -> None:
    """How far it is, and what can be done with it."""
    with st.container(border=True):
        st.markdown(f"**{number}: {ui.plain(simulation.title)}**")
        words = f"{simulation.status}: {simulation.done} of {simulation.total} episodes"
        if simulation.seconds_left is not None:
            words += f", about {duration(simulation.seconds_left)} left"
        st.progress(min(1.0, simulation.done / simulation.total), text=words)
        if simulation.trouble:
            st.error(ui.plain(simulation.trouble))
        with st.container(horizontal=True):
            key = simulation.id
            if simulation.status == "running":
                st.button("Stop", key=f"stop-{key}", on_click=simulations.stop, args=(simulation,))
            elif simulation.status != "finished":
                st.button("Go on", key=f"on-{key}", on_click=simulations.go_on, args=(simulation,))
            st.download_button(
                "Rows (CSV)", lambda: ui.csv(simulation.rows()), f"{key}-episodes.csv", "text/csv",
                key=f"rows-{key}",
            )  # fmt: skip
            if simulation.done:
                st.download_button(
                    "Picture (PNG)", lambda: simulations.picture(simulation), f"{key}.png",
                    "image/png", key=f"png-{key}",
                )  # fmt: skip
            if simulation.status != "running":
                st.button(
                    "Delete", key=f"del-{key}", on_click=simulations.delete, args=(simulation,),
                    type="tertiary",
                )  # fmt: skip


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


st.title("Simulate", anchor=False)
start_form()
everything = {found.id: found for found in simulations.find_all()}
if not everything:
    st.markdown("Nothing was simulated yet.")
    st.stop()
picked = [name for name in st.session_state.get("compared", []) if name in everything]
st.session_state.compared = picked or list(everything)[:1]
compared = st.multiselect(
    "Show and compare", list(everything), key="compared",
    format_func=lambda name: f"{everything[name].title} ({name})",
)  # fmt: skip
running = any(everything[name].status == "running" for name in compared)


@st.fragment(run_every=1.0 if running else None)
def results() -> None:
    shown = [simulations.find(name) for name in compared]
    if running != any(simulation.status == "running" for simulation in shown):
        st.rerun()  # to look every second, or no more
    for number, simulation in enumerate(shown, 1):
        progress(number, simulation)
    measure = st.segmented_control(
        "Curve", list(MEASURES), default="reward", format_func=MEASURES.get, required=True
    )
    data = simulations.curves(shown, measure)
    if data.empty:
        st.markdown("The first rows come in a moment.")
        return
    if measure == "reward":
        st.markdown(f"**{simulations.finding(data)}**")
    data["curve"] = data.learner.map(NAMES)
    if len(shown) > 1:
        data["curve"] = data.run + ": " + data.curve
    st.altair_chart(
        alt.Chart(data, height=340)
        .mark_line()
        .encode(
            alt.X("epochs:Q", title="epochs played"),
            alt.Y("value:Q", title=MEASURES[measure], scale=alt.Scale(zero=False)),
            alt.Color("curve:N", title=None, sort=None, legend=alt.Legend(orient="top", columns=3)),
        )
    )
    st.download_button("Curves (CSV)", ui.csv(data), "curves.csv", "text/csv")


results()
