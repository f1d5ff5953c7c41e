"""Simulate: run learners in simulated worlds, watch their curves, compare them."""

from typing import get_args

import altair as alt
import pandas as pd
import streamlit as st

from dopl_core import environments
from dopl_core.experiments import background as simulations
from dopl_core.experiments import learners as kinds
from dopl_core.experiments import trials
from dopl_core.experiments.background import Settings, Simulation
from dopl_core.learning.dopl import Confidence
from pages.shared import charts
from pages.shared.clicks import clicked
from pages.shared.downloads import csv_button, file_button
from pages.shared.errors import safely, show_errors, show_last_error
from pages.shared.guards import guard_fragment, is_owner, owner_only
from pages.shared.help_link import help_link
from pages.shared.markdown import plain

owner_only()

MEASURES = {
    "reward": "reward per epoch",
    "cumulative_regret": "cumulative regret",
    "index_error": "error of the index order (Kendall's tau)",
}


def start_form() -> None:
    """The settings of a new simulation."""
    with st.form("start"):
        left, middle, right = st.columns(3)
        names = environments.names()
        environment = left.selectbox(
            "World",
            names,
            index=names.index("cpap"),
            format_func=lambda name: environments.load(name).title,
        )
        confidence = middle.selectbox("Confidence intervals of DOPL", get_args(Confidence))
        seeds = right.number_input(
            "Seeds", 1, 50, 3, help="Number of repetitions, each with its own random numbers."
        )
        own = st.file_uploader(
            "Or your own world (TOML)", "toml", help="The guide *Do research* says what it holds."
        )
        learners = st.multiselect(
            "Learners",
            kinds.names(),
            ["dopl", "random"],
            format_func=kinds.label,
            accept_new_options=True,
            help="Choose from the list, or type `package.module:Class` of an installed package.",
        )
        left, right = st.columns(2)
        episodes = left.number_input("Episodes (plans)", 1, 100_000, 60)
        horizon = right.number_input("Epochs per episode", 1, 10_000, 5)
        if clicked(
            "Start",
            "start-simulation",
            st.form_submit_button,
            type="primary",
            icon=":material/play_arrow:",
        ):
            with show_errors():
                if own is not None:
                    environment = simulations.keep_environment(own.name, own.getvalue())
                given = Settings(environment, tuple(learners), confidence, episodes, horizon, seeds)
                st.session_state.compared = [simulations.start(given)]


def progress(number: int, simulation: Simulation) -> None:
    """Progress of a simulation, its errors, and its buttons."""
    with st.container(border=True):
        st.markdown(f"**{number}: {plain(simulation.title)}**")
        if simulation.settings is not None:
            words = f"{simulation.status}: {simulation.done} of {simulation.total} episodes"
            if simulation.seconds_left is not None:
                words += f", about {duration(simulation.seconds_left)} left"
            st.progress(min(1.0, simulation.done / simulation.total), text=words)
        if simulation.trouble:
            st.error(plain(simulation.trouble))
        with st.container(horizontal=True):
            buttons(simulation)


def buttons(simulation: Simulation) -> None:
    key, args = simulation.id, (simulation,)
    if simulation.status == "running":
        st.button("Stop", key=f"stop-{key}", on_click=safely(simulations.stop, is_owner), args=args)
    elif simulation.status in ("stopped", "failed"):
        st.button(
            "Continue", key=f"on-{key}", on_click=safely(simulations.go_on, is_owner), args=args
        )
    csv_button("Rows (CSV)", simulation.rows, f"{key}-episodes.csv", key=f"rows-{key}")
    if simulation.done and simulation.settings is not None:
        file_button(
            "Picture (PNG)", lambda: simulations.picture(simulation), f"{key}.png",
            "image/png", key=f"png-{key}",
        )  # fmt: skip
    if simulation.status != "running":
        with st.popover("Delete", type="tertiary"):
            st.text("This deletes the simulation and all its rows for good.")
            delete = safely(simulations.delete, is_owner)
            st.button("Delete for good", key=f"del-{key}", on_click=delete, args=args)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def curves_chart(data: pd.DataFrame, title: str) -> alt.LayerChart:
    """Lines with bands, one colour for each curve."""
    base = alt.Chart(data, height=340)
    epochs = alt.X("epochs:Q", title="epochs played")
    names = sorted(set(data.curve))
    legend = charts.legend(names)
    legend.symbolOpacity = 1
    colour = alt.Color("curve:N", title=None, sort=names, legend=legend)
    scale = alt.Scale(zero=False)
    band = base.mark_area(opacity=0.2, aria=False).encode(
        epochs, alt.Y("low:Q", scale=scale), alt.Y2("high:Q"), colour
    )
    return band + base.mark_line().encode(epochs, alt.Y("value:Q", title=title), colour)


def trial_form() -> None:
    """The records of a real trial, and what the file does not say."""
    with st.form("trial"):
        left, right = st.columns(2)
        history = left.file_uploader(
            "Records: id, when, state, helped (CSV)", "csv", key="trial-history"
        )
        roster = right.file_uploader(
            "Columns known at the start, by id (CSV)", "csv", key="trial-roster"
        )
        order = st.text_input(
            "States from worst to best, with commas",
            placeholder="Low, Moderate, High",
            help="States that are numbers need no order: more is better.",
        )
        drawn = st.checkbox("Help was drawn at random")
        if clicked("Compare predictions", "compare-predictions", st.form_submit_button):
            st.session_state.pop("trial_report", None)
            with show_errors(), st.spinner("Predicting each step…", show_time=True):
                if history is None:
                    raise ValueError("choose a file of records first")
                known = None if roster is None else roster.getvalue()
                states = [word.strip() for word in order.split(",") if word.strip()]
                st.session_state.trial_report = trials.report(
                    history.getvalue(), known, states=states, randomised=drawn
                )


def trial_results(report: trials.Report) -> None:
    """Both tables of a trial."""
    st.markdown(f"**{plain(report.finding)}**")
    st.dataframe(report.losses.round(3), hide_index=True, height="content")
    st.caption(
        "*loss* is the mean of −ln p(next state), one step ahead; less is better. *difference* is"
        " the learner's loss less that of the model: below 0, the learner predicts better. Standard"
        " errors (*se*) and the 95 % interval (*low* to *high*) are by person. *early* is the first"
        " half of the moves."
    )
    csv_button("Losses (CSV)", report.losses, "losses.csv")
    if report.values is not None:
        st.markdown("**What lists for a quarter of the people would have been worth**")
        st.dataframe(report.values.round(3), hide_index=True)
        st.caption(
            "*value* is the mean state after a step, from 0, the worst, to 1, the best. *gain* is"
            " over no help, *difference* is the learner less the policy. *places* are those on all"
            " lists; moves that agree with the policy (*agreeing*) have a weight."
        )
        csv_button("Values (CSV)", report.values, "values.csv")
    for note in report.notes:
        st.caption(plain(note))


def real_trials() -> None:
    """How well the learner predicts the people of a real trial."""
    st.header("Real trials", anchor=False)
    st.markdown(
        "How well does the learner predict real people? Upload the records of a trial. The files"
        " are not kept."
    )
    help_link("researcher", "What the files need, and how predictions are compared")
    trial_form()
    if "trial_report" in st.session_state:
        trial_results(st.session_state.trial_report)


st.title("Simulate", anchor=False)
help_link("researcher", "How to simulate, and how to add a learner")
start_form()
everything = {found.id: found for found in simulations.find_all()}
compared: list[str] = []
if everything:
    picked = [name for name in st.session_state.get("compared", []) if name in everything]
    st.session_state.compared = picked or list(everything)[:1]
    compared = st.multiselect(
        "Show and compare", list(everything), key="compared",
        format_func=lambda name: everything[name].label,
    )  # fmt: skip
else:
    show_last_error()
    st.markdown("There are no simulations yet. Choose learners above and click *Start*.")
running = any(everything[name].status == "running" for name in compared)


@st.fragment(run_every=1.0 if running else None)
def results() -> None:
    guard_fragment(is_owner)
    show_last_error()
    try:
        shown = [simulations.find(name) for name in compared]
    except ValueError:  # one of them was just deleted
        st.rerun()
    if running != any(simulation.status == "running" for simulation in shown):
        st.rerun()  # to change how often this part is drawn
    for number, simulation in enumerate(shown, 1):
        progress(number, simulation)
    measure = st.segmented_control(
        "Curve", list(MEASURES), default="reward", format_func=MEASURES.get, required=True
    )
    with show_errors(stop=True):
        data = simulations.curves(shown, measure)
    if data.empty:
        st.markdown(
            "The first results will appear in a moment." if running else "There are no results yet."
        )
        return
    if measure == "reward":
        st.markdown(f"**{simulations.finding(data)}**")
    data["curve"] = data.learner.map(kinds.label)
    if len(shown) > 1:
        data["curve"] = data.run + ": " + data.curve
    st.altair_chart(curves_chart(data, MEASURES[measure]))
    if any(one.settings is not None and one.settings.seeds > 1 for one in shown):
        st.caption("Lines are means over seeds, bands one standard deviation.")
    csv_button("Curves (CSV)", data, "curves.csv")
    st.markdown("**Mean per epoch, with standard errors over seeds**")
    st.dataframe(simulations.comparison(shown).round(3), hide_index=True)
    st.caption(
        "*gain* is over random help, *difference* is to the first learner, paired by seed. Each"
        " has its standard error (*se*) beside it."
    )


if everything:
    results()
real_trials()
