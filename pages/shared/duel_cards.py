"""Comparisons for several pages: a pair of cards, the trial study, and the way to annotate."""

from dataclasses import replace

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Store, cards
from dopl_core.wording import _
from pages.shared.guards import store
from pages.shared.markdown import plain

TRIAL = "Try it: CPAP adherence"
LONG = 140  # characters of a text that are shown before it is expanded

_MARKS = {True: "✓ ", False: "× ", None: ""}


def show_pair(
    config: studies.StudyConfig,
    left: studies.Side,
    right: studies.Side,
    episode: int,
    epoch: int,
    key: str = "card",
    photos_of: tuple[Store, str, str] | None = None,
) -> None:
    """Two cards side by side, with equal rows at equal height.

    photos_of: the database, for this person, the study whose photos are shown if it has any, and
        the annotator who looks at them, "" for those who run the study
    """
    seen = [cards.evidence(config, side, episode, epoch) for side in (left, right)]
    if photos_of and config.world == "observed":
        try:
            found = studies.photo_addresses(*photos_of, [left.arm, right.arm])
        except studies.StoreError:  # the page shows the error
            found = {}
        seen = [
            replace(one, photo=found.get(side.arm, one.photo))
            for one, side in zip(seen, (left, right), strict=True)
        ]
    shown = [not config.hide_state, not config.hide_state and not config.hide_description]
    shown[1] = shown[1] and bool(left.description or right.description)
    kinds = "".join(kind for kind, on in zip(("-state", "-words"), shown, strict=True) if on)
    any_photo = any(one.photo for one in seen)
    sides = zip(("left", "right"), (left, right), cards.aligned(*seen), strict=True)
    with st.container(key=f"pair-{key}"):
        for which, side, evidence in sides:
            with st.container(border=True, key=f"{key}-{which}{kinds}"):
                st.text(name_on_card(config, side))
                if shown[0]:
                    st.text(side.state)
                if shown[1]:
                    st.text(side.description or " ")
                if any_photo:
                    _show_photo(evidence)
                _show_evidence(evidence, f"{which}-{key}")


def open_duels(study: str) -> None:
    """Go to the page where this study's comparisons are answered."""
    st.switch_page("pages/annotate/page.py", query_params={"study": study})


def trial() -> str:
    """The trial study of simulated CPAP patients; created if there is none."""
    for study in studies.list_studies(store()):
        if is_trial(study.config) and study.status == "running":
            return study.id
    rules = {"title": TRIAL, "horizon": 3, "hide_state": True, "tell_results": True}
    return studies.create_study(store(), studies.from_environment("cpap", **rules))


def is_trial(config: studies.StudyConfig) -> bool:
    return config.world == "simulated" and config.title == TRIAL


def name_on_card(config: studies.StudyConfig, side: studies.Side) -> str:
    """The name on a card, with the id if the owner wants it or if names repeat."""
    named = f"{side.label} ({side.arm})"
    return named if config.show_id and not side.label.endswith(f"({side.arm})") else side.label


def _show_photo(evidence: cards.Evidence) -> None:
    if evidence.photo:
        st.image(evidence.photo, width=120)
    else:
        st.text(_("No photo"))


def _show_evidence(evidence: cards.Evidence, key: str) -> None:
    """Text from the roster as plain text; charts from numbers only."""
    if evidence.facts:
        with st.container(key=f"facts-{key}"):  # labels and values by turns
            for fact in evidence.facts:
                text = f"{_MARKS[fact.holds]}{fact.value}"
                st.text(fact.label)
                if len(text) <= LONG:
                    st.text(text)
                else:
                    with st.container():
                        st.text(f"{cut_at_word(text)} …")
                        with st.expander(_("Whole text: {label}").format(label=plain(fact.label))):
                            st.text(text)
    for chart in evidence.charts:
        st.text(chart.caption)
        if chart.words:
            st.text(chart.words)
        else:
            st.html(cards.chart_html(chart))


def cut_at_word(text: str) -> str:
    """The start of a long text, up to the end of a word where it has words."""
    start = text[: LONG + 1]
    return (start.rsplit(maxsplit=1)[0] if " " in start.strip() else text[:LONG]).rstrip(" ,;:")
