"""The form that makes a study, with a duel as its annotators will see it."""

from pathlib import Path
from typing import Any, get_args

import streamlit as st

from dopl_core import environments
from dopl_core.learning.dopl import Confidence
from dopl_core.learning.pair_designs import DESIGNS
from dopl_core.places import ROOT
from dopl_core.studies import roster, service
from dopl_core.studies.config import REPEAT_EVERY
from dopl_core.studies.replies import side_of
from pages import _asked, _roster
from pages._backend import store
from pages._duels import show_pair
from pages._trouble import said_plainly
from pages._words import plain

EXAMPLE = ROOT / "data" / "rosters" / "clinic.csv"


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
        found = (simulated(), None) if world == "A simulated world" else observed()
        if found is None:
            return
        config, past = found
        st.markdown("**A duel as annotators see it**")
        preview(config)
        if st.button("Create the study", type="primary", key="create"):
            with st.spinner(f"{config.n_arms:,} are taken in", show_time=True):
                study = service.create_study(store(), config, past)
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
    return service.from_environment(name, **given, **rules(name, bandit.n_arms, bandit.budget))


def observed() -> tuple[service.StudyConfig, service.Records | None] | None:
    """A study of the owner's own cases, and their past records; None while something is missing."""
    upload = st.file_uploader(
        "Roster (CSV)",
        type=["csv", "txt", "tsv"],
        key="roster",
        help="One row a case: an id, a state, and if you like a name, a group and anything worth "
        "seeing on a card. You choose which column is what.",
    )
    if upload is None:
        st.download_button(
            "An example roster", EXAMPLE.read_bytes(), "clinic.csv", "text/csv", key="example"
        )
        return None
    key = upload.file_id
    sheet = roster.open_sheet(upload.getvalue(), upload.name)
    columns = _roster.choose_columns(sheet, key)
    if columns is None:
        return None
    found = roster.count_states(sheet, columns=columns)
    service.read_roster(sheet, list(found), columns=columns)  # ids are wrong before states are
    if len(sheet.rows) < 2:
        raise ValueError(f"{upload.name} has one row: there must be two at least, to compare")
    spelt = _roster.settle_spelling(found, f"{key} {columns.state}")
    if spelt is None:
        return None
    right = list(dict.fromkeys(spelt.get(state, state) for state in found))
    states = _roster.order_states(right, f"{key} {columns.state} {len(right)}")
    if states is None:
        return None
    arms = service.read_roster(sheet, states, columns=columns, spelt=spelt)
    if unknown := sum(not arm.state for arm in arms):
        have = "1 has" if unknown == 1 else f"{unknown:,} have"
        st.caption(f"{have} no state: it is unknown, and nobody is asked about them.")
    given = questions(
        "roster", Path(upload.name).stem, "Which of these two is doing better?", "case"
    )
    given |= weekly()
    config = service.from_roster(
        arms,
        states,
        **given,
        **rules("roster", len(arms), max(2, len(arms) // 4), any(arm.columns for arm in arms)),
    )
    return config, past_records(config)


def weekly() -> dict[str, Any]:
    """What a study of real people has: a word for an epoch, a first sitting, answers a week."""
    word = st.text_input(
        "A list is made every",
        "week",
        key="word",
        help="week, month, day, visit: what you call the time from one list to the next",
    )
    left, right = st.columns(2)
    sitting = left.number_input(
        "Answers before the first list (0: make it at once)",
        *(0, 10_000, 100),
        key="sitting",
        help="A first sitting: annotators compare all of them as they are now, so that the first "
        "list is no guess. You can end it whenever you like.",
    )
    answers = right.number_input(
        f"Answers wanted each {plain(word)}",
        *(0, 10_000, 30),
        key="answers",
        help="As many as your annotators have time for: an answer takes some seconds.",
    )
    return {"epoch_word": word.strip(), "sitting": sitting, "answers": answers}


def past_records(config: service.StudyConfig) -> service.Records | None:
    """What is known from before the study, and how much it says."""
    with st.expander("Past records: where they were before, and who was helped"):
        st.markdown(
            "A CSV with the columns id, when (a date or a number), state and helped (1 or 0). "
            "The first list is better with them, also with records of people who are not in the "
            "roster."
        )
        upload = st.file_uploader("Past records (CSV)", type=["csv", "txt"], key="history")
        if upload is None:
            example = EXAMPLE.with_name("clinic_history.csv")
            st.download_button(
                "Example records", example.read_bytes(), example.name, "text/csv", key="records"
            )
            return None
        content = roster.decode(upload.getvalue(), upload.name).encode()
        past = service.read_history(content, config, upload.name)
        gaps = f", {past.gaps} gaps are not counted" if past.gaps else ", no gaps"
        st.markdown(f"**{past.moves} moves of {past.arms} {plain(config.noun)}s found**{gaps}.")
        return past


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
        "why": _asked.why(key),
    }


def rules(key: str, arms: int, budget: int, hide: bool = False) -> dict[str, Any]:
    """How the study is played; the defaults are for human beings.  hide: states, at first"""
    left, right = st.columns(2)
    chosen: dict[str, Any] = {
        "budget": left.number_input(
            "How many can be helped at a time", 2, arms, budget, key=f"budget {key}"
        ),
        "ratings": right.number_input("People who answer each duel", 1, 20, 1, key=f"rat {key}"),
    }
    if key == "roster":
        chosen["by_lot"] = lots(left, chosen["budget"], 0, f"lots {key}")
    with st.expander("What annotators see"):
        chosen |= _asked.on_cards(key, hide=hide)
    with st.expander("More choices"):
        return chosen | more_rules(key)


def lots(place: Any, budget: int, now: int, key: str) -> int:
    """How many places are drawn by lot; also in the settings."""
    return int(
        place.number_input(
            "Of these, drawn by lot (0: none)",
            *(0, budget - 1, min(now, budget - 1)),
            key=key,
            help="Some places can go to anybody who is not on the list, drawn by lot: since only "
            "chance tells them from those not drawn, comparing the two shows without bias what "
            f"help does. One place in eight is enough: here {max(1, round(budget / 8))}.",
        )
    )


# What nothing is learnt from, to see how people answer: its label, and what it is for.
CHECKS = {
    "repeat_every": (
        "Ask everybody one of their own again every so many answers (0: never)",
        "With its sides swapped, once several people answer. Nothing is learnt from it: Insights "
        "then say how often each of them gives the same answer again.",
    ),
    "gold_every": (
        "Ask everybody about a plain pair every so many answers (0: never)",
        "Two whose states lie far apart. Nothing is learnt from it: Insights then say how often "
        "each of them takes the better one, and so whether they look.",
    ),
}


def check_every(place: Any, check: str, now: int, key: str) -> int:
    """After how many answers people are asked one of the CHECKS; also in the settings."""
    label, purpose = CHECKS[check]
    return int(place.number_input(label, *(0, max(1000, now), now), key=key, help=purpose))


def more_rules(key: str) -> dict[str, Any]:
    """What few owners need to change."""
    left, right = st.columns(2)
    chosen: dict[str, Any] = {
        "ties_allowed": left.checkbox('Allow "equal" as an answer', key=f"ties {key}"),
        "practice": right.checkbox("Begin with three practice duels", True, key=f"prac {key}"),
    }
    if key != "roster":  # real people have a list at a time, until their owner ends it
        chosen |= {
            "horizon": left.number_input("Epochs between plans", 1, 1000, 5, key=f"hor {key}"),
            "episodes": right.number_input(
                "Plans in all (0: until you close it)", 0, 10_000, 0, key=f"epi {key}"
            ),
        }
    return chosen | {
        "repeat_every": check_every(left, "repeat_every", REPEAT_EVERY, f"rep {key}"),
        "gold_every": check_every(right, "gold_every", 0, f"gold {key}"),
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
        known = [
            (n, config.state_number(arm.state)) for n, arm in enumerate(config.arms) if arm.state
        ]
        if len(known) < 2:
            return
        other = next((one for one in known if one[1] != known[0][1]), known[1])
        pair = [known[0], other]
    else:
        pair = [(0, 0), (1, config.n_states - 1)]
    with st.container(border=True):
        st.markdown(f"**{plain(config.question)}**")
        left, right = (side_of(config, arm, state, {}) for arm, state in pair)
        show_pair(config, left, right, 1, 0, key="preview-card")
