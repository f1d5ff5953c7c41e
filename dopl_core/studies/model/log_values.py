"""The values that a study log is made of: events, impressions, epochs, plans, people."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.learning.places.reported_weeks import ReportedWeeks
from dopl_core.studies.model.outcomes import CREDIT, LEARNT
from dopl_core.studies.model.study_config import StudyConfig

Place = tuple[int, int, int]  # episode, epoch, number of the duel
Sides = tuple[int, int, int, int]  # left arm and state, right arm and state, by number


@dataclass(frozen=True)
class Person:
    """An annotator; repeats: how many of their own duels they were shown again.

    link, participant, code: see event_bodies.Joined
    consented: the version of the consent text that they agreed to last
    """

    name: str
    joined_at: int
    practised: bool
    repeats: int
    link: str = ""
    participant: str = ""
    code: str = ""
    consented: str = ""


@dataclass(frozen=True)
class Shown:
    """What an event about an impression needs to know: the duel and why it was asked.

    response_ms: from painting the cards to the click
    """

    place: Place
    purpose: str
    sides: Sides
    response_ms: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Reason:
    """Why somebody answered as they did; empty if they were asked and did not say."""

    tags: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Impression(Shown):
    """A duel shown to a person, and its outcome (None while it is open).

    trip_ms: from the previous click to painting the cards
    narrow: 1 where the left card stood above the right one
    participant: the id that their panel gave them
    reason: None if nobody asked for one; see model/reasons.py
    """

    annotator: str
    session: int
    outcome: str | None
    shown_at: int
    answered_at: int | None
    trip_ms: int | None = None
    narrow: int | None = None
    participant: str | None = None
    reason: Reason | None = None

    @property
    def learnt(self) -> bool:
        """Whether the learner counts it."""
        return self.purpose in LEARNT and self.outcome in CREDIT


@dataclass(frozen=True)
class QueuedDuel(Shown):
    """A duel of the present round, shown or not; ratings: how many answers it asks for."""

    ratings: int


@dataclass(frozen=True)
class Event:
    """Something that happened; event_kinds.py defines every kind.

    impression: in a StudyLog its position in `impressions`, from the database its id
    body: JSON text
    salt: random, part of the digest of annotator and body that the chain covers; None in events
        from before schema 13, and where annotator or body was erased
    sealed: of an erased event, that digest
    """

    at: int
    kind: str
    annotator: str | None = None
    impression: int | None = None
    outcome: str | None = None
    body: str | None = None
    salt: str | None = None
    sealed: str | None = None


@dataclass(frozen=True, eq=False)
class OwnList:
    """A list as the owner changed it: arms; of these put on; and taken off, which are not on it."""

    arms: IntArray
    on: IntArray
    off: IntArray


@dataclass(frozen=True, eq=False)
class Epoch:
    """One decision: states [N], the plan's list [B], and next states [N] once they are reported.

    N counts the arms of that time. A state is UNKNOWN where nobody reported it, or where the arm
    was absent.
    by_lot: [.] arms drawn at random: those on the list for a place, the others to wait; nobody was
        drawn to wait in lists of older versions
    helped: [.] the arms really helped; None while unreported, or where it was exactly `arms`
    own: the list as the owner changed it; None if unchanged
    columns: what the owner has reported of the arms so far, arm id -> column -> text
    to_find_out: [.] arms of the plan's list that are there to find out what help does
    duels: [D, 4] what is asked in it
    Both are known when the epoch opens and not kept with it: list entries and duels are.
    """

    episode: int
    epoch: int
    states: IntArray
    arms: IntArray
    next_states: IntArray | None = None
    source: str | None = None
    columns: dict[str, dict[str, str]] | None = None
    helped: IntArray | None = None
    by_lot: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    to_find_out: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    duels: IntArray | None = None
    own: OwnList | None = None

    @property
    def listed(self) -> IntArray:
        """The arms on the list, as the owner changed it."""
        return self.arms if self.own is None else self.own.arms

    @property
    def acted(self) -> IntArray:
        """The arms really helped, as far as is known."""
        return self.listed if self.helped is None else self.helped

    @property
    def drawn(self) -> IntArray:
        """The arms on the plan's list whose places were drawn at random."""
        return np.intersect1d(self.by_lot, self.arms)

    @property
    def left_out(self) -> IntArray:
        """The arms that the plan would have listed, drawn at random to wait."""
        return np.setdiff1d(self.by_lot, self.arms)

    def with_own(self, own: OwnList | None) -> "Epoch":
        """The epoch with a changed list; who was helped stays as it was reported."""
        helped = self.helped if self.next_states is None else self.acted
        return self if own is None else replace(self, own=own, helped=helped)

    def __str__(self) -> str:
        return f"episode {self.episode} epoch {self.epoch}"


@dataclass(frozen=True)
class PlanMade:
    """A plan as it was recorded; digest: of its arrays, None where they were not kept."""

    plan: int
    made_at: int
    engine: str
    value: float
    random_value: float
    multiplier: float
    changed: float
    answers: int
    seconds: float
    digest: str | None


def week_of(config: StudyConfig, episode: int, epoch: int) -> int:
    """The number of an epoch counted from 1 over all episodes, as owners count."""
    return (episode - 1) * config.horizon + epoch + 1


def state_number(config: StudyConfig, label: str | None) -> int:
    """The number of a state, UNKNOWN where there is no label."""
    return config.state_number(label) if label else UNKNOWN


def state_label(config: StudyConfig, state: int) -> str | None:
    """The label of a state, None where it is UNKNOWN."""
    return None if state == UNKNOWN else config.states[state].label


def moves_in(epochs: list[Epoch], n_arms: int) -> tuple[IntArray, IntArray, IntArray]:
    """States, 1 where helped, next states [E, N] of the epochs that are reported."""
    states, next_states = (np.full((len(epochs), n_arms), UNKNOWN) for _ in range(2))
    helped = np.zeros((len(epochs), n_arms), dtype=np.int64)
    known = 0
    for epoch in epochs:
        if epoch.next_states is not None:
            states[known, : len(epoch.states)] = epoch.states
            next_states[known, : len(epoch.next_states)] = epoch.next_states
            helped[known, epoch.acted] = 1
            known += 1
    return states[:known], helped[:known], next_states[:known]


def reported_weeks(moves: Sequence[Epoch], n_arms: int) -> ReportedWeeks:
    """The reported weeks of `moves`; arms that were absent have state UNKNOWN."""
    states, helped, next_states = moves_in(list(moves), n_arms)
    listed, by_lot = np.zeros_like(states), np.zeros_like(states)
    reported = [move for move in moves if move.next_states is not None]
    for week, move in enumerate(reported):
        listed[week, move.arms], by_lot[week, move.by_lot] = 1, 1
    return ReportedWeeks(states, helped, next_states, listed, by_lot)
