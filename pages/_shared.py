"""What every page needs: the store, the planner, who is here, and words that stay words."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.pages_manager import PagesManager

from dopl_core.studies import access, cards, csvtext, findings, service
from dopl_core.studies.plan_process import Planner

HERE = Path(__file__).parent

LOCAL = ("localhost", "127.0.0.1", "::1")
OWNER = "Owner"  # as the owner's own answers are signed


@st.cache_resource(show_spinner=False)
def store() -> service.Store:
    return service.open_store()


@st.cache_resource(show_spinner=False)
def planner() -> Planner:
    return Planner()


def navigation() -> st.Page:
    """The pages of the app; an annotator's link has one."""
    st.set_page_config(page_title="DOPL", page_icon=str(HERE / "icon.svg"), layout="wide")
    st.html(HERE / "style.css")
    with said_plainly(stop=True):  # a database that is locked, or newer than this program
        store()
    planner()
    home = st.Page(HERE / "home.py", title="Home", icon=":material/home:", default=True)
    annotate = st.Page(HERE / "annotate.py", title="Annotate", icon=":material/balance:")
    if "invite" in st.query_params or not is_owner():
        return st.navigation([home, annotate], position="hidden")
    studies = st.Page(HERE / "studies.py", title="Studies", icon=":material/groups:")
    insights = st.Page(HERE / "insights.py", title="Insights", icon=":material/insights:")
    simulate = st.Page(HERE / "simulate.py", title="Simulate", icon=":material/play_circle:")
    return st.navigation([home, annotate, studies, insights, simulate], position="top")


def owner_only() -> None:
    """A page's guard: only the owner goes on."""
    _routed()
    if not is_owner():
        _turn_away(
            "Annotators come in by the link they were sent. The owner's link was printed where "
            "the app was started; `dopl key` makes a new one."
        )


def seat() -> tuple[str, str] | None:
    """A page's guard: the study that this link is for and the person's name, or None for an owner.

    The link is all there is, so that a reload or another device shows the same duel.
    """
    _routed()
    token = st.query_params.get("invite")
    if token is None:
        owner_only()
        study = st.query_params.get("study")
        return (study, OWNER) if study else None
    invite = access.who(store(), token)
    if invite is None:
        _turn_away("This link opens nothing any more. Ask whoever sent it for a new one.")
    return invite.study, invite.annotator


def still_invited() -> bool:
    """Whether the link that opened this page has not been revoked since."""
    token = st.query_params.get("invite")
    return token is None or access.who(store(), token) is not None


def is_owner() -> bool:
    """Everybody on this computer is; from elsewhere, whoever has shown the owner's key.

    The key is kept in a cookie, for a reload begins a new session.
    """
    headers = st.context.headers
    if st.get_option("server.address") in LOCAL and "X-Forwarded-For" not in headers:
        return True
    if "owner" not in st.session_state:
        given = st.query_params.get("key")
        key = given or st.context.cookies.get("dopl_owner", "")
        st.session_state.owner = bool(key) and access.is_owner(store(), key)
        if given and st.session_state.owner:
            st.session_state.cookie = key
    if key := st.session_state.pop("cookie", None):
        del st.query_params["key"]
        cookie = f"dopl_owner={key}; path=/; max-age=31536000; SameSite=Strict"
        secure = "(location.protocol === 'https:' ? '; Secure' : '')"
        script = f"<script>document.cookie = '{cookie}' + {secure}</script>"
        st.html(script, unsafe_allow_javascript=True)
    return bool(st.session_state.owner)


def _turn_away(words: str) -> NoReturn:
    st.title("You need a link", anchor=False)
    st.markdown(words)
    st.stop()


def _routed() -> None:
    """A first request to /name on a fresh server runs pages/name.py without the router: go back."""
    if PagesManager.uses_pages_directory and "routed" not in st.session_state:
        st.session_state.routed = True
        navigation()
        st.rerun()


@contextmanager
def said_plainly(stop: bool = False) -> Iterator[None]:
    """What is wrong with what a person gave is shown in words; the page goes on, or stops."""
    try:
        yield
    except ValueError as error:
        st.error(plain(str(error)), icon=":material/error:")
        if stop:
            st.stop()


def plain(text: str) -> str:
    """Text for a place that reads Markdown, escaped so that it shows as it is."""
    one_line = " ".join(text.split())
    # Addresses become links and -> an arrow even where they are escaped: an invisible joiner parts
    # them.
    parted = re.sub(
        r"(?<=[<>=~-])(?=[<>=~-])|(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", "\u2060", one_line
    )
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", parted)


def show_pair(
    config: service.StudyConfig,
    left: service.Side,
    right: service.Side,
    episode: int,
    epoch: int,
    key: str = "card",
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two cards side by side; the boxes they are in, for buttons below."""
    seen = [_evidence(config, side, episode, epoch) for side in (left, right)]
    boxes = []
    sides = zip(("left", "right"), (left, right), cards.on_one_scale(*seen), strict=True)
    for column, (which, side, shown) in zip(st.columns(2), sides, strict=True):
        bare = "" if side.description else "-bare"
        box = column.container(border=True, key=f"{key}{bare}-{which}", height="stretch")
        with box:
            _show_card(side, shown)
        boxes.append(box)
    return boxes[0], boxes[1]


def _evidence(
    config: service.StudyConfig, side: service.Side, episode: int, epoch: int
) -> cards.Evidence:
    if config.world == "observed":
        return cards.read(side.columns)
    return cards.draw(
        config.environment_name, side.state_number, config.seed, side.number, episode, epoch
    )


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


def make_trial() -> str:
    """A study to try: CPAP patients in a simulated world."""
    config = service.from_environment("cpap", title="Try it: CPAP adherence", horizon=5)
    return service.create_study(store(), config)


def open_duels(study: str) -> None:
    st.switch_page("pages/annotate.py", query_params={"study": study})


def address() -> str:
    """Where the app is, as its visitors know it."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}" + parts.path.rpartition("/")[0]


def run_beside(*command: object) -> None:
    """Run a dopl command in a process of its own."""
    words = [sys.executable, "-m", "dopl_core.cli", *map(str, command)]
    subprocess.Popen(words, cwd=HERE.parent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def own_numbers(study: str, person: str) -> None:
    """A person's own answers: how many, how fast, and all of them as CSV."""
    own = service.answers(store(), study, person)
    given = findings.given(own)
    if given.empty:
        return
    with st.container(horizontal=True, key="numbers"):
        st.metric("Your answers", len(given), width="content")
        st.metric("Median time", f"{given.response_ms.median() / 1000:.1f} s", width="content")
        st.metric("Could not tell", f"{(given.outcome == 'skip').mean():.0%}", width="content")
    st.download_button("My answers (CSV)", csv(own), "my-answers.csv", "text/csv")


def csv(frame: pd.DataFrame) -> str:
    """A table as CSV that no spreadsheet runs."""
    cells = frame.astype(object).where(frame.notna(), None)
    return csvtext.write(list(frame.columns), cells.itertuples(index=False))
