"""Duels, as several pages need them: a pair of cards, the way to a study's duels, one to try."""

from dataclasses import replace

import streamlit as st

from dopl_core.studies import cards, photos, service
from pages._backend import store
from pages._words import plain

TRIAL = "Try it: CPAP adherence"
LONG = 140  # characters of a fact that are always shown

_MARKS = {True: "✓ ", False: "× ", None: ""}


def show_pair(
    config: service.StudyConfig,
    left: service.Side,
    right: service.Side,
    episode: int,
    epoch: int,
    key: str = "card",
    study: str = "",
) -> None:
    """Two cards side by side, what they show in rows that face each other.

    study: whose photos there may be
    """
    seen = [cards.evidence(config, side, episode, epoch) for side in (left, right)]
    if study and config.world == "observed":
        try:
            found = photos.addresses(store(), study, [left.arm, right.arm])
        except service.StoreError:  # the page says so
            found = {}
        seen = [
            replace(one, photo=found.get(side.arm, one.photo))
            for one, side in zip(seen, (left, right), strict=True)
        ]
    shown = [not config.hide_state, not config.hide_state and not config.hide_description]
    shown[1] = shown[1] and bool(left.description or right.description)
    kinds = "".join(kind for kind, on in zip(("-state", "-words"), shown, strict=True) if on)
    any_photo = any(one.photo for one in seen)
    sides = zip(("left", "right"), (left, right), cards.facing(*seen), strict=True)
    with st.container(key=f"pair-{key}"):
        for which, side, evidence in sides:
            with st.container(border=True, key=f"{key}-{which}{kinds}"):
                _show_head(config, side, *shown)
                if any_photo:
                    _show_photo(evidence)
                _show_evidence(evidence)


def open_duels(study: str) -> None:
    """Go to the page where this study's duels are answered."""
    st.switch_page("pages/annotate.py", query_params={"study": study})


def trial() -> str:
    """The study to try, CPAP patients in a simulated world; a new one if there is none."""
    for study in service.list_studies(store()):
        if is_trial(study.config) and study.status == "running":
            return study.id
    rules = {"title": TRIAL, "horizon": 3, "hide_state": True, "tell_results": True}
    return service.create_study(store(), service.from_environment("cpap", **rules))


def is_trial(config: service.StudyConfig) -> bool:
    return config.world == "simulated" and config.title == TRIAL


def name_on_card(config: service.StudyConfig, side: service.Side) -> str:
    """What a card calls an arm; with its id where the owner wants to see it, or must."""
    named = f"{side.label} ({side.arm})"
    return named if config.show_id and not side.label.endswith(f"({side.arm})") else side.label


def _show_head(config: service.StudyConfig, side: service.Side, state: bool, words: bool) -> None:
    st.text(name_on_card(config, side))
    if state:
        st.text(side.state)
    if words:
        st.text(side.description or " ")


def _show_photo(evidence: cards.Evidence) -> None:
    if evidence.photo:
        st.image(evidence.photo, width=120)
    else:
        st.text("No photo")


def _show_evidence(evidence: cards.Evidence) -> None:
    """Roster text as plain text, charts from numbers only."""
    for fact in evidence.facts:
        text = f"{_MARKS[fact.holds]}{fact.label}: {fact.value}"
        if len(text) <= LONG:
            st.text(text)
        else:
            with st.container():
                st.text(f"{text[:LONG].rstrip()} …")
                with st.expander(f"All of {plain(fact.label)}"):
                    st.text(fact.value)
    for chart in evidence.charts:
        st.text(chart.caption)
        if chart.words:
            st.text(chart.words)
        else:
            st.html(cards.html(chart))
