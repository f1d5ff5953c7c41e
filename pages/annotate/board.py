"""The board: the comparison on the page, practice with its feedback, and what each click does."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dopl_core import studies
from dopl_core.studies import Ask, Consent, Finished, RoundEnd, StudyConfig, Waiting, cards
from dopl_core.wording import _, format_number, gettext_noop, ngettext, numbered_week
from pages.annotate.reason import show_reason
from pages.shared.backend import planner
from pages.shared.duel_cards import name_on_card, show_pair
from pages.shared.errors import safely
from pages.shared.guards import Seat
from pages.shared.markdown import plain

# Sends the browser's measurements. A value that is set during a click reaches the server in the
# same message as the click, if both belong to the same fragment.
CLOCK = "clock"
clock = st.components.v2.component(
    "dopl_clock",
    js="export default ({setStateValue}) => { window.doplSay = (it) => setStateValue('said', it) }",
)
# Buttons get new keys with each comparison, so a second click on an old button does nothing. The
# numbers in the keys repeat, because Streamlit keeps every key while the tab is open.
BUTTON_SETS = 16
ANY_TIME = ("practice", "repeat")  # purposes of comparisons that may be about an earlier week
MORE = {
    "own": gettext_noop("My answers"),
    "flag": gettext_noop("Flag a card"),
    "paused": gettext_noop("Pause"),
}
FEWEST_TOLD = 10  # answers in a round from which the annotator is told about its end


@dataclass
class Memory:
    """What the page remembers between clicks.

    refresh: seconds until the board draws itself again, or None
    note: the line under the cards
    reply: what the board shows
    shown, shown_at: the impression on the page, and the time at which it was drawn
    button_set: the number in the keys of its buttons
    notice: text above the cards, such as that a week has passed
    undone: the last impression (or round) at which Undo was clicked
    view: shown in place of the comparison: paused, own, flag, declined, withdraw or nothing
    looked_at: the impression opened in "own", or 0
    lesson: a practice comparison that was answered, and the answer
    reason: the last comparison and its answer, if a reason is wanted and not given yet
    place: episode and epoch of the last comparison
    checked: the last episode for which a round's end was looked up
    round_end: the end of a round, while it is shown
    """

    began: bool = False
    refresh: float | None = None
    note: str = ""
    reply: Ask | Waiting | Finished | Consent | None = None
    shown: int = 0
    shown_at: float = 0.0
    button_set: int = 0
    notice: str = ""
    undone: int = 0
    view: str = ""
    looked_at: int = 0
    lesson: tuple[Ask, str] | None = None
    reason: tuple[Ask, str] | None = None
    place: tuple[int, int] | None = None
    checked: int | None = None
    round_end: RoundEnd | None = None


@dataclass(frozen=True)
class Session:
    """One annotator in one study, and what the page remembers between their clicks."""

    seat: Seat
    study: str
    annotator: str
    config: StudyConfig
    memory: Memory

    def button(
        self, label: str, key: str, do: Callable[..., None], *args: object, **options: Any
    ) -> None:
        """A button that calls do(session, *args); clicks from revoked links are ignored."""
        act = safely(do, allowed=self.seat.is_valid)
        st.button(label, key=key, on_click=act, args=(self, *args), **options)


# --- what a click does


def choose(session: Session, ask: Ask, outcome: str) -> None:
    """Save an answer; it is on disk before anything is drawn."""
    memory = session.memory
    server_ms = int(1000 * (time.monotonic() - memory.shown_at))
    measured: Any = None
    try:
        measured = st.session_state.get(CLOCK)
    finally:  # Streamlit may interrupt the run at this access: the answer is saved all the same
        times = studies.browser_times((measured or {}).get("said"), ask.impression, server_ms)
        receipt = studies.answer(session.seat.store, ask.impression, outcome, **vars(times))
    memory.note = _(studies.RECEIPTS[receipt.status])
    if receipt.saved and ask.purpose == "practice" and outcome in ("left", "right"):
        memory.lesson = (ask, outcome)
    if receipt.saved:
        memory.reason = (ask, outcome) if receipt.asks_reason else None
    if receipt.plan_due:
        planner().ask(session.study)


def undo(session: Session, impression: int) -> None:
    memory = session.memory
    if memory.undone != impression:  # a double click undoes one answer
        again = studies.undo(session.seat.store, session.study, session.annotator)
        memory.undone, memory.reason = impression, None
        memory.note = (
            _("Undone. Please answer again.") if again else _("It is too late to undo this.")
        )


def skip_practice(session: Session) -> None:
    session.memory.note, session.memory.lesson = "", None
    studies.skip_practice(session.seat.store, session.study, session.annotator)


def go_on(session: Session) -> None:
    """Return to the comparison."""
    memory = session.memory
    memory.note, memory.view, memory.looked_at, memory.shown = "", "", 0, 0
    memory.lesson = memory.round_end = None


def open_view(session: Session, view: str) -> None:
    """Show something else in place of the comparison; a flag needs a comparison on the page."""
    memory = session.memory
    memory.note = ""
    if view != "flag" or (isinstance(memory.reply, Ask) and memory.round_end is None):
        memory.view = view


# --- what is drawn


def show_duel(session: Session, ask: Ask) -> None:
    """Two cards, and a bar with everything that can be done about them."""
    memory, practice = session.memory, ask.purpose == "practice"
    if memory.shown != ask.impression:
        memory.shown, memory.shown_at = ask.impression, time.monotonic()
        memory.button_set = (memory.button_set + 1) % BUTTON_SETS
        memory.notice = ""
        if ask.purpose not in ANY_TIME:
            memory.notice = _time_passed(session, ask)
            memory.place = (ask.episode, ask.epoch)
    with st.container():  # a fixed place: otherwise everything below it would be drawn from scratch
        if practice:
            st.text(_("Practice: these answers do not count."))
        elif memory.notice:
            st.info(plain(memory.notice), icon=":material/update:")
    show_pair(
        session.config,
        ask.left,
        ask.right,
        ask.episode,
        ask.epoch,
        photos_of=(session.seat.store, session.study, session.annotator),
    )
    number = memory.button_set
    with st.container(key="bar"):
        with st.container(horizontal=True, key=f"choices-{ask.impression}"):
            for which, side in (("left", ask.left), ("right", ask.right)):
                label = plain(name_on_card(session.config, side))
                look = {"shortcut": which.capitalize(), "type": "primary", "width": "stretch"}
                session.button(label, f"{which}-{number}", choose, ask, which, **look)
        with st.container(horizontal=True, horizontal_alignment="center", key="others"):
            session.button(_("Can't tell"), f"skip-{number}", choose, ask, "skip", shortcut="S")
            if session.config.ties_allowed:
                session.button(_("Equal"), f"tie-{number}", choose, ask, "tie", shortcut="T")
            if ask.can_undo:
                session.button(_("Undo"), f"undo-{number}", undo, ask.impression, shortcut="U")
            if practice:
                session.button(_("Skip practice"), "skip-practice", skip_practice)
        with st.container(key="note"):
            st.text(memory.note or " ")
            if memory.reason:
                show_reason(session)
        if not practice:
            _show_progress(session.config, ask)
        clock(key=CLOCK)


def show_more(session: Session) -> None:
    """What is seldom done, outside of the board: it is not drawn again with each comparison."""
    with st.container(horizontal=True, horizontal_alignment="center", key="more"):
        for view, label in MORE.items():
            session.button(_(label), f"to-{view}", open_view, view, type="tertiary")


def _show_progress(config: StudyConfig, ask: Ask) -> None:
    if config.quota:
        words = _("Yours so far: {own} of {quota}.")
        words = words.format(own=format_number(ask.own), quota=format_number(config.quota))
        st.progress(min(1.0, ask.own / config.quota), text=words)
    else:
        words = _("This round: {done} of {total} answers. Yours so far: {own}.")
        counts = {"done": ask.done, "total": ask.total, "own": ask.own}
        words = words.format(**{name: format_number(count) for name, count in counts.items()})
        st.progress(ask.done / max(1, ask.total), text=words)


def _time_passed(session: Session, ask: Ask) -> str:
    """What happened between the last comparison and this one, if time has passed."""
    before, config = session.memory.place, session.config
    if before is None or before == (ask.episode, ask.epoch) or not ask.episode:
        return ""
    week = (ask.episode - 1) * config.horizon + ask.epoch + 1
    told = _("{week}. The cards show how everybody is doing now.")
    if before[0] == 0 and week == 1:
        told = _("The first list is ready. The cards show how everybody is doing now.")
    if config.world == "simulated" and before[0]:
        helped = ngettext(
            "{count} person was helped each time.",
            "{count} people were helped each time.",
            config.budget,
        )
        told = f"{told} {helped}"
    count = format_number(config.budget)
    return told.format(week=numbered_week(config.epoch_word, week), count=count)


def show_lesson(session: Session) -> None:
    """A practice comparison that was answered: the pair stays, with the right answer and why."""
    assert session.memory.lesson is not None  # noqa: S101
    (ask, outcome), config = session.memory.lesson, session.config
    sides = (ask.left, ask.right)
    better, worse = sides if ask.expected == "left" else sides[::-1]
    seen = [cards.evidence(config, side, ask.episode, ask.epoch) for side in (better, worse)]
    why = cards.why_better(better, worse, seen, not config.hide_state)
    verdict = _("Not quite: {name} was doing better. {why}")
    if outcome == ask.expected:
        verdict = _("Yes: {name} was doing better. {why}")
    st.text(_("Practice: these answers do not count."))
    show_pair(
        config,
        *sides,
        ask.episode,
        ask.epoch,
        key="lesson-card",
        photos_of=(session.seat.store, session.study, session.annotator),
    )
    with st.container(key="bar"):
        with st.container(key="note"):
            st.text(verdict.format(name=name_on_card(config, better), why=why))
        with st.container(horizontal=True, horizontal_alignment="center", key="others"):
            look = {"type": "primary", "shortcut": "Enter"}
            session.button(_("Next"), f"next-{ask.impression}", go_on, **look)
            session.button(_("Skip practice"), "skip-practice", skip_practice)


def is_round_end(session: Session, ask: Ask) -> bool:
    """Whether a round has ended for this person since their last answer, and is worth telling."""
    memory = session.memory
    if memory.place is None and ask.purpose not in ANY_TIME:  # they come back later
        last = studies.own_answers(session.seat.store, session.study, session.annotator, last=1)
        memory.place = next(((one.episode, one.epoch) for one in last), (ask.episode, ask.epoch))
    if memory.checked != ask.episode and memory.place and ask.episode > memory.place[0]:
        memory.checked = ask.episode
        end = studies.round_end(session.seat.store, session.study, session.annotator)
        if end.own >= FEWEST_TOLD:
            memory.round_end = end
    return memory.round_end is not None
