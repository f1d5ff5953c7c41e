"""One person's sitting: the duel on the page, practice with its lesson, and every click on them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dopl_core.studies import cards, service, timing
from dopl_core.studies.service import Ask, StudyConfig
from pages._backend import planner, store
from pages._duels import name_on_card, show_pair
from pages._trouble import safely
from pages._who import Seat
from pages._words import plain

# Hands over what the browser measured. A value that is set in the moment of a click goes to the
# server with it, in one message, if it is of the same fragment.
CLOCK = "clock"
clock = st.components.v2.component(
    "dopl_clock",
    js="export default ({setStateValue}) => { window.doplSay = (it) => setStateValue('said', it) }",
)
# A turn's number is in its buttons' keys: a second click on a button that is gone hits nothing.
# They come again, for Streamlit keeps every key, with all it leads to, as long as the tab is open.
TURNS = 16


@dataclass(frozen=True)
class Sitting:
    """Who sits at which study, and what the page remembers of it between clicks.

    mine: poll, seconds until the board looks again by itself, or None;  note, the line under the
        cards;  reply, what the board shows;  shown, the impression on the page, and since when;
        turn, a number that is another for each impression shown;
        taken_back, the last impression (or round) at which undo was clicked;  view, what is shown
        in place of the duel;  lesson, a practice duel that was answered;  place, the episode and
        epoch of the last duel;  passed, what is said of time that passed before an impression
    """

    seat: Seat
    name: str
    config: StudyConfig
    mine: dict[str, Any]

    @property
    def study(self) -> str:
        return self.seat.study


def clicked(sitting: Sitting, do: Callable[..., None]) -> Callable[..., None]:
    """A callback: what was said of the click before is gone, and who lost the seat does nothing."""

    def act(*args: object) -> None:
        sitting.mine["note"] = ""
        if sitting.seat.is_valid():
            do(sitting, *args)

    return safely(act, allowed=lambda: True)


def choose(sitting: Sitting, ask: Ask, outcome: str) -> None:
    """One click: on disk before anything is drawn."""
    mine = sitting.mine
    took = int(1000 * (time.monotonic() - mine["shown"][1]))
    said: Any = None
    try:
        said = st.session_state.get(CLOCK)
    finally:  # a run may be cut short wherever it looks there: the answer is kept nevertheless
        heard = timing.heard((said or {}).get("said"), ask.impression, took)
        receipt = service.answer(store(), ask.impression, outcome, **vars(heard))
    mine["note"] = receipt.message
    if receipt.saved and ask.purpose == "practice" and outcome in ("left", "right"):
        mine["lesson"] = (ask, outcome)
    if receipt.plan_due:
        planner().ask(sitting.study)


def take_back(sitting: Sitting, impression: int) -> None:
    mine = sitting.mine
    if mine.get("taken_back") != impression:  # a double click takes back one answer
        again = service.undo(store(), sitting.study, sitting.name)
        mine["taken_back"] = impression
        mine["note"] = "Taken back. Here it is again." if again else "Too late to take it back."


def skip_practice(sitting: Sitting) -> None:
    sitting.mine.pop("lesson", None)
    service.skip_practice(store(), sitting.study, sitting.name)


def go_on(sitting: Sitting) -> None:
    """Leave what stood in place of the duel."""
    for name in ("lesson", "view", "look", "end"):
        sitting.mine.pop(name, None)
    sitting.mine["shown"] = (0, 0.0)


def open_view(sitting: Sitting, view: str) -> None:
    """Show something else in place of the duel; a card can be flagged where there is one."""
    duel = isinstance(sitting.mine.get("reply"), Ask) and "end" not in sitting.mine
    if view != "flag" or duel:
        sitting.mine["view"] = view


def show_duel(sitting: Sitting, ask: Ask) -> None:
    """Two cards, and a bar with everything that can be done about them."""
    mine, practice = sitting.mine, ask.purpose == "practice"
    if mine.get("shown", (0, 0.0))[0] != ask.impression:
        mine["shown"] = (ask.impression, time.monotonic())
        mine["turn"] = (mine.get("turn", 0) + 1) % TURNS
        if not practice and ask.purpose != "repeat":
            mine["passed"] = (ask.impression, _time_passed(sitting, ask))
            mine["place"] = (ask.episode, ask.epoch)
    with st.container():  # what comes and goes has a place: else all below it is drawn from nothing
        if practice:
            st.text("Practice: these answers do not count.")
        elif mine.get("passed", (0, ""))[0] == ask.impression and mine["passed"][1]:
            st.info(plain(mine["passed"][1]), icon=":material/update:")
    show_pair(sitting.config, ask.left, ask.right, ask.episode, ask.epoch, study=sitting.study)
    with st.container(key="bar"):
        with st.container(horizontal=True, key=f"choices-{ask.impression}"):
            for which, side in (("left", ask.left), ("right", ask.right)):
                st.button(
                    plain(name_on_card(sitting.config, side)),
                    key=f"{which}-{mine['turn']}",
                    shortcut=which.capitalize(),
                    type="primary",
                    width="stretch",
                    on_click=clicked(sitting, choose),
                    args=(ask, which),
                )
        with st.container(horizontal=True, horizontal_alignment="center", key="others"):
            _show_others(sitting, ask)
        with st.container(key="note"):
            st.text(mine["note"] or " ")
        if not practice:
            _show_progress(sitting.config, ask)
        clock(key=CLOCK)


def _show_others(sitting: Sitting, ask: Ask) -> None:
    """All that can be done with a duel but choosing a side."""
    turn = sitting.mine["turn"]
    by_key(sitting, "Can't tell", f"skip-{turn}", "S", choose, ask, "skip")
    if sitting.config.ties_allowed:
        by_key(sitting, "Equal", f"tie-{turn}", "T", choose, ask, "tie")
    if ask.can_undo:
        by_key(sitting, "Undo", f"undo-{turn}", "U", take_back, ask.impression)
    if ask.purpose == "practice":
        st.button("Skip practice", key="skip-practice", on_click=clicked(sitting, skip_practice))


def show_more(sitting: Sitting) -> None:
    """What is seldom done: beside the board, so that it is not drawn again with each duel."""
    with st.container(horizontal=True, horizontal_alignment="center", key="more"):
        for label, view in (("My answers", "own"), ("Flag a card", "flag"), ("Pause", "paused")):
            act = {"on_click": clicked(sitting, open_view), "args": (view,)}
            st.button(label, key=f"to-{view}", type="tertiary", **act)


def by_key(
    sitting: Sitting, label: str, key: str, shortcut: str, do: Callable[..., None], *args: object
) -> None:
    st.button(label, key=key, shortcut=shortcut, on_click=clicked(sitting, do), args=args)


def _show_progress(config: StudyConfig, ask: Ask) -> None:
    if config.quota:
        words = f"Yours so far: {ask.own} of {config.quota}."
        st.progress(min(1.0, ask.own / config.quota), text=words)
    else:
        words = f"This round: {ask.done} of {ask.total} answers. Yours so far: {ask.own}."
        st.progress(ask.done / max(1, ask.total), text=words)


def _time_passed(sitting: Sitting, ask: Ask) -> str:
    """What has happened between the last duel and this one, if time has."""
    before, config = sitting.mine.get("place"), sitting.config
    if before is None or before == (ask.episode, ask.epoch) or not ask.episode:
        return ""
    word = config.epoch_word
    if before[0] == 0:
        return f"The first list is made: this is how they are in the first {word}."
    passed = (ask.episode - before[0]) * config.horizon + ask.epoch - before[1]
    times = f"A {word} has" if passed == 1 else f"{passed} {word}s have"
    helped = f"; {config.budget} were helped" if config.world == "simulated" else ""
    return f"{times} passed{helped}; this is how they are now."


def show_lesson(sitting: Sitting) -> None:
    """A practice duel that was answered: the pair stays, with what is right and why."""
    ask, outcome = sitting.mine["lesson"]
    sides = (ask.left, ask.right)
    better, worse = sides if ask.expected == "left" else sides[::-1]
    seen = [
        cards.evidence(sitting.config, side, ask.episode, ask.epoch) for side in (better, worse)
    ]
    why = cards.why_better(better, worse, seen, not sitting.config.hide_state)
    verdict = "Yes" if outcome == ask.expected else "Not quite"
    st.text("Practice: these answers do not count.")
    show_pair(
        sitting.config, *sides, ask.episode, ask.epoch, key="lesson-card", study=sitting.study
    )
    with st.container(key="bar"):
        with st.container(key="note"):
            name = name_on_card(sitting.config, better)
            st.text(f"{verdict}: {name} was doing better. {why}")
        with st.container(horizontal=True, horizontal_alignment="center", key="others"):
            st.button(
                "Next",
                key=f"next-{ask.impression}",
                type="primary",
                shortcut="Enter",
                on_click=clicked(sitting, go_on),
            )
            st.button(
                "Skip practice", key="skip-practice", on_click=clicked(sitting, skip_practice)
            )
