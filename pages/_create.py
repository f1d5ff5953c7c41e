"""The form that makes a study, with a duel as its annotators will see it."""

from pathlib import Path
from typing import Any, get_args

import streamlit as st

from dopl_core import environments
from dopl_core.learning.bandit import State
from dopl_core.learning.dopl import Confidence
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.studies import service
from dopl_core.studies.replies import side_of
from pages._backend import store
from pages._duels import show_pair
from pages._trouble import said_plainly
from pages._words import plain

EXAMPLE = Path(__file__).parent.parent / "data" / "rosters" / "clinic.csv"


def form() -> None:
    """Choose a world, say what to ask, look at a duel, create."""
    world = st.segmented_control(
        "Where do the cases come from?",
        ["A simulated world", "My own roster"],
        default="A simulated world",
        required=True,
        key="world",
    )
    with said_plainly():
        config = simulated() if world == "A simulated world" else observed()
        if config is None:
            return
        st.markdown("**A duel as annotators see it**")
        preview(config)
        if st.button("Create the study", type="primary", key="create"):
            study = service.create_study(store(), config)
            st.query_params["study"] = study
            st.rerun()


def simulated() -> service.StudyConfig:
    """A study of one of the environments."""
    titles = {environments.load(name).title: name for name in environments.names()}
    title = st.selectbox("World", list(titles), index=list(titles.values()).index("cpap"))
    name = titles[title]
    bandit = environments.load(name)
    st.caption(
        f"{bandit.n_arms} simulated {plain(bandit.noun)}s who move between {bandit.n_states} "
        "states by themselves: for trying things out and for teaching."
    )
    given = questions(name, bandit.title, bandit.question, bandit.noun)
    return service.from_environment(
        name, **given, **rules(name, bandit.n_arms, bandit.budget, list(bandit.states))
    )


def observed() -> service.StudyConfig | None:
    """A study of the owner's own cases."""
    upload = st.file_uploader(
        "Roster (CSV)",
        type="csv",
        key="roster",
        help="One row a case: id, state, and if you like label, group and anything worth seeing on "
        "a card. Columns hours_1, hours_2, ... are drawn as a chart.",
    )
    if upload is None:
        st.download_button(
            "An example roster", EXAMPLE.read_bytes(), "clinic.csv", "text/csv", key="example"
        )
        return None
    content = upload.getvalue()
    found = service.states_in(content, upload.name)
    lines = st.text_area(
        "States, from worst to best, one a line; what they mean after a colon",
        "\n".join(found),
        key=f"states {upload.file_id}",
        help="Put them in order: annotators read them, and practice duels rely on it.",
    )
    states = []
    for line in filter(str.strip, lines.splitlines()):
        label, _, meaning = line.partition(":")
        states.append(State(label.strip(), meaning.strip()))
    arms = service.read_roster(content, states, upload.name)
    given = questions(
        "roster", Path(upload.name).stem, "Which of these two is doing better?", "case"
    )
    return service.from_roster(
        arms, states, **given, **rules("roster", len(arms), max(2, len(arms) // 4), states)
    )


def questions(key: str, title: str, question: str, noun: str) -> dict[str, Any]:
    """What annotators read."""
    left, right = st.columns(2)
    return {
        "title": left.text_input("Title", title, key=f"title {key}"),
        "noun": right.text_input("One of them is called a", noun, key=f"noun {key}"),
        "question": st.text_input("Question", question, key=f"question {key}"),
        "instructions": st.text_area(
            "How to judge (shown to annotators)", key=f"instructions {key}", height=80
        ),
    }


def rules(key: str, arms: int, budget: int, states: list[State]) -> dict[str, Any]:
    """How the study is played; the defaults are for human beings."""
    left, right = st.columns(2)
    chosen: dict[str, Any] = {
        "budget": left.number_input(
            "How many can be helped at a time", 2, arms, budget, key=f"budget {key}"
        ),
        "ratings": right.number_input("People who answer each duel", 1, 20, 1, key=f"rat {key}"),
    }
    with st.expander("More choices"):
        return chosen | more_rules(key)


def more_rules(key: str) -> dict[str, Any]:
    """What few owners need to change."""
    left, right = st.columns(2)
    return {
        "ties_allowed": left.checkbox('Allow "equal" as an answer', key=f"ties {key}"),
        "practice": right.checkbox("Begin with three practice duels", True, key=f"prac {key}"),
        "horizon": left.number_input(
            "Epochs between plans", 1, 1000, 5 if key != "roster" else 1, key=f"hor {key}"
        ),
        "episodes": right.number_input(
            "Plans in all (0: until you close it)", 0, 10_000, 0, key=f"epi {key}"
        ),
        "repeat_every": left.number_input(
            "Ask everybody one of their own again every so many answers (0: never)",
            *(0, 1000, 0),
            key=f"rep {key}",
        ),
        "lease_seconds": float(
            right.number_input(
                "Seconds until an unanswered duel goes to others", 10, 86_400, 120, key=f"l {key}"
            )
        ),
        "confidence": left.selectbox(
            "Confidence",
            get_args(Confidence),
            key=f"conf {key}",
            help="calibrated learns from hundreds of answers, the paper's from ten thousands",
        ),
        "design": right.selectbox(
            "Which pairs to ask",
            list(DESIGNS),
            format_func=lambda name: DESIGNS[name].label,
            key=f"des {key}",
        ),
        "seed": left.number_input("Seed", 0, 2**31, 0, key=f"seed {key}"),
    }


def preview(config: service.StudyConfig) -> None:
    """Two cases side by side, in different states where there are some."""
    if config.world == "observed":
        states = [config.state_number(arm.state) for arm in config.arms]
        other = next((n for n, state in enumerate(states) if state != states[0]), 1)
        pair = [(0, states[0]), (other, states[other])]
    else:
        pair = [(0, 0), (1, config.n_states - 1)]
    with st.container(border=True):
        st.markdown(f"**{plain(config.question)}**")
        left, right = (side_of(config, arm, state, {}) for arm, state in pair)
        show_pair(config, left, right, 1, 0, key="card-preview")
