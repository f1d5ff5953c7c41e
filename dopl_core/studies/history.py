"""What a study is: everything that happened in it, as values.

archive.py turns a database into a History and back, bundle.py a zip; replay.py plays one again.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dopl_core.environments import brief
from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies.arrays import Arrays
from dopl_core.studies.changes import Change, changed
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.vocabulary import CHANGES, CREDIT, EVENTS, LEARNT

Place = tuple[int, int, int]  # episode, epoch, number of the duel
Sides = tuple[int, int, int, int]  # left arm and state, right arm and state, by number


class HistoryError(ValueError):
    """A history that cannot have happened: says where, and why."""


@dataclass(frozen=True)
class Person:
    """An annotator; repeats: how many of their own duels they were shown again."""

    name: str
    joined_at: int
    practised: bool
    repeats: int


@dataclass(frozen=True)
class Impression:
    """A duel shown to a person, and what came of it (None while it is open).

    response_ms: from when the cards were painted to the click;  trip_ms: from the click before
        until they were;  narrow: 1 where the left card stood above the right one
    participant: the id that a panel gave in the link
    """

    annotator: str
    session: int
    place: Place
    purpose: str
    sides: Sides
    outcome: str | None
    shown_at: int
    answered_at: int | None
    response_ms: int | None
    trip_ms: int | None = None
    narrow: int | None = None
    participant: str | None = None

    @property
    def learnt(self) -> bool:
        """Whether the learner counts it."""
        return self.purpose in LEARNT and self.outcome in CREDIT


@dataclass(frozen=True)
class Event:
    """Something that happened, in the order of the log.

    impression: its place in History.impressions;  body: JSON text
    """

    at: int
    kind: str
    annotator: str | None = None
    impression: int | None = None
    outcome: str | None = None
    body: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """What the body says."""
        content: dict[str, Any] = json.loads(self.body or "{}")
        return content


@dataclass(frozen=True, eq=False)
class Move:
    """An epoch: states [N], the list [B], next states [N] where they are reported.

    N are the arms there were then; a state is UNKNOWN where it is, or where the arm was not there.
    helped: [.] the arms really helped; None while it is not reported, or where it was the list
    by_lot: [.] those on the list whose places were drawn by lot
    columns: what the owner has reported of the arms by its end, arm id -> column -> text
    """

    episode: int
    epoch: int
    states: IntArray
    arms: IntArray
    next_states: IntArray | None
    source: str | None
    columns: dict[str, dict[str, str]] | None = None
    helped: IntArray | None = None
    by_lot: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def acted(self) -> IntArray:
        """The arms really helped, as far as is known."""
        return self.arms if self.helped is None else self.helped


@dataclass(frozen=True)
class PlanMade:
    """A plan, as it was recorded; digest: of its arrays, None where it was not kept."""

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


@dataclass(frozen=True, eq=False)
class History:
    """Everything that happened in a study.

    asked, given: ratings that the present round asks for, and has
    config: as the study was made; events of kind CHANGES have changed it since
    events: the whole log, in order; all else says what they are about
    arrays: what the learner held after the last plan beside its counts; None where it is to be
            computed again (replay.with_arrays)
    closed: duels of the present episode that the owner waits for no longer, with their ratings
    """

    study: str
    status: str
    made_at: int
    config: StudyConfig
    asked: int
    given: int
    annotators: list[Person]
    impressions: list[Impression]
    moves: list[Move]
    plans: list[PlanMade]
    arrays: Arrays | None
    closed: dict[Place, int]
    events: list[Event]

    @property
    def episode(self) -> int:
        """That of the last plan, 0 before there is one."""
        return len(self.plans)

    @property
    def seq(self) -> int:
        """How many events there are."""
        return len(self.events)

    @property
    def heard(self) -> int:
        """The last event that the next plan depends on."""
        return max((n for n, e in enumerate(self.events, 1) if EVENTS[e.kind]), default=0)

    @cached_property
    def all_changes(self) -> list[Change]:
        """Of the configuration, in order."""
        return [(e.kind, e.content) for e in self.events if e.kind in CHANGES]

    @property
    def changes(self) -> int:
        return len(self.all_changes)

    @property
    def in_force(self) -> int:
        """Changes that the last plan was made with."""
        last = max((n for n, e in enumerate(self.events) if e.kind == "planned"), default=0)
        return sum(event.kind in CHANGES for event in self.events[:last])

    @cached_property
    def configs(self) -> dict[int, StudyConfig]:
        """The configuration that each plan was made with."""
        return configs_of_plans(self.config, self.events)

    @property
    def records(self) -> str | None:
        """Past records, as CSV, where there are some."""
        added = (e.content["records"] for e in self.events if e.kind == "history_added")
        return next(added, None)

    @property
    def corrections(self) -> list[tuple[int, dict[str, Any]]]:
        """When, and what: in order."""
        return [(e.at, e.content) for e in self.events if e.kind == "corrected"]

    @cached_property
    def now(self) -> StudyConfig:
        """The configuration in force."""
        holds = self.in_force if self.episode else self.changes
        return changed(self.config, self.all_changes[:holds])

    @cached_property
    def coming(self) -> StudyConfig:
        """The configuration with all changes."""
        return changed(self.config, self.all_changes)

    @property
    def epoch(self) -> int:
        """Epochs of the last episode whose moves are known."""
        return sum(m.episode == self.episode and m.next_states is not None for m in self.moves)


def configs_of_plans(config: StudyConfig, events: Iterable[Event]) -> dict[int, StudyConfig]:
    """The configuration that each plan was made with, by the plan's number."""
    configs: dict[int, StudyConfig] = {}
    for event in events:
        if event.kind in CHANGES:
            config = changed(config, [(event.kind, event.content)])
        elif event.kind == "planned":
            configs[len(configs) + 1] = config
    return configs


def log_digest(events: Iterable[Event]) -> str:
    """The same for equal logs and only for them."""
    sha = hashlib.sha256()
    for event in events:
        said = [event.at, event.kind, event.annotator, event.impression, event.outcome, event.body]
        sha.update(json.dumps(said).encode())
    return sha.hexdigest()


def as_counted(events: Sequence[Event]) -> list[tuple[int, Event]]:
    """Events, with their numbers, each plan right after the last event that it knew of.

    Answers that came while a list was being made stand before it in the log, and count after it.
    """
    order: list[tuple[int, Event]] = []
    for seq, event in enumerate(events, start=1):
        late: list[tuple[int, Event]] = []
        if event.kind == "planned":
            heard = event.content.get("heard", seq)
            while order and order[-1][0] > heard:
                late.append(order.pop())
        order.append((seq, event))
        order += reversed(late)
    return order


def week_of(config: StudyConfig, episode: int, epoch: int) -> int:
    """Epochs counted from 1 over all episodes, as owners count them."""
    return (episode - 1) * config.horizon + epoch + 1


def corrected(
    moves: Sequence[Move], corrections: Iterable[dict[str, Any]], config: StudyConfig
) -> list[Move]:
    """Moves as they are known to have been: with corrections, bodies of events, applied in order.

    A correction of week w is of what was reported at its end: where arms were then (at the end of
    week w, and at the beginning of the next), and who was helped. Week 0 is the roster.
    config: with all arms that corrections name
    """
    fixed = list(moves)
    for body in corrections:
        week, states, helped = _correction(body, fixed, config)
        for arm, state in states.items():
            if week > 0:
                fixed[week - 1] = _with_next_state(fixed[week - 1], arm, state)
            if week < len(fixed) and arm < len(fixed[week].states):
                fixed[week] = _with_state(fixed[week], arm, state)
        for arm, mark in helped.items():
            fixed[week - 1] = _with_help(fixed[week - 1], arm, mark)
    return fixed


def _correction(
    body: dict[str, Any], moves: Sequence[Move], config: StudyConfig
) -> tuple[int, dict[int, int], dict[int, bool]]:
    """What a correction says: the week, arms' states, and who was helped; all by number."""
    week = body.get("week")
    if not isinstance(week, int) or not 0 <= week <= len(moves):
        raise HistoryError(f"a correction of week {brief(week)}, of which there is no report")
    new: list[dict[int, Any]] = []
    for what, kind in (("states", str | None), ("helped", int)):
        said = body.get(what)
        if not isinstance(said, dict):
            raise HistoryError(f"a correction: {what} is {brief(said)}: an object needed")
        if said and not week and what == "helped":
            raise HistoryError("a correction of who was helped before the first list")
        for name, pair in said.items():
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], kind)):
                raise HistoryError(
                    f'a correction of "{name[:80]}": {brief(pair)} is no old and new'
                )
            if week and config.arm_number(name) >= len(moves[week - 1].states):
                raise HistoryError(
                    f'a correction of "{name[:80]}", who was not there in week {week}'
                )
        new.append({config.arm_number(name): pair[1] for name, pair in said.items()})
    states = {arm: state_number(config, label) for arm, label in new[0].items()}
    return week, states, {arm: bool(mark) for arm, mark in new[1].items()}


def state_number(config: StudyConfig, label: str | None) -> int:
    """The number of a state, UNKNOWN where there is no label."""
    return config.state_number(label) if label else UNKNOWN


def state_label(config: StudyConfig, state: int) -> str | None:
    """What `state_number` was given."""
    return None if state == UNKNOWN else config.states[state].label


def _with_state(move: Move, arm: int, state: int) -> Move:
    states = move.states.copy()
    states[arm] = state
    return replace(move, states=states)


def _with_next_state(move: Move, arm: int, state: int) -> Move:
    if move.next_states is None:
        return move
    states = move.next_states.copy()
    states[arm] = state
    return replace(move, next_states=states)


def _with_help(move: Move, arm: int, helped: bool) -> Move:
    acted = set(move.acted.tolist()) - {arm} | ({arm} if helped else set())
    return replace(move, helped=np.array(sorted(acted), dtype=np.int64))


def moves_counted(moves: Sequence[Move], n_arms: int) -> tuple[IntArray, IntArray, IntArray]:
    """States, 1 where helped, next states [E, N] of the epochs that are reported."""
    known = [move for move in moves if move.next_states is not None]
    states, next_states = (np.full((len(known), n_arms), UNKNOWN) for _ in range(2))
    helped = np.zeros((len(known), n_arms), dtype=np.int64)
    for row, move in enumerate(known):
        assert move.next_states is not None  # noqa: S101
        states[row, : len(move.states)] = move.states
        next_states[row, : len(move.next_states)] = move.next_states
        helped[row, move.acted] = 1
    return states, helped, next_states
