"""Duels, as several pages need them: a pair of cards, the way to a study's duels, one to try."""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dopl_core.studies import cards, photos, service
from pages._backend import store


def show_pair(
    config: service.StudyConfig,
    left: service.Side,
    right: service.Side,
    episode: int,
    epoch: int,
    key: str = "card",
    study: str = "",
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two cards side by side; the boxes they are in, for buttons below.

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
    boxes = []
    sides = zip(("left", "right"), (left, right), cards.on_one_scale(*seen), strict=True)
    for column, (which, side, shown) in zip(st.columns(2), sides, strict=True):
        bare = "" if side.description else "-bare"
        box = column.container(border=True, key=f"{key}{bare}-{which}", height="stretch")
        with box:
            _show_card(side, shown)
        boxes.append(box)
    return boxes[0], boxes[1]


def open_duels(study: str) -> None:
    """Go to the page where this study's duels are answered."""
    st.switch_page("pages/annotate.py", query_params={"study": study})


def make_trial() -> str:
    """A new study to try: CPAP patients in a simulated world."""
    config = service.from_environment("cpap", title="Try it: CPAP adherence", horizon=5)
    return service.create_study(store(), config)


def _show_card(side: service.Side, seen: cards.Evidence) -> None:
    """One arm of a duel: roster text as plain text, charts from numbers only."""
    st.text(side.label)
    st.text(side.state)
    if side.description:
        st.text(side.description)
    if seen.photo:
        st.image(seen.photo, width=120)
    for fact in seen.facts:
        mark = {True: "✓ ", False: "× ", None: ""}[fact.holds]
        st.text(f"{mark}{fact.label}: {fact.value}")
    for chart in seen.charts:
        st.text(chart.caption)
        st.html(cards.html(chart))
