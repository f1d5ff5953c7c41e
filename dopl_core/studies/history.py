"""What a study is: everything that happened in it, as values.

archive.py turns a database into a History and back, bundle.py a zip; replay.py plays one again.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dopl_core.learning.bandit import UNKNOWN, IntArray
from dopl_core.studies.arrays import Arrays
from dopl_core.studies.changes import Change, changed
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.vocabulary import ANSWERS, CHANGES, CREDIT, EVENTS, LEARNT, SAID

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
    """A duel shown to a person, and what came of it (None while it is open)."""

    annotator: str
    session: int
    place: Place
    purpose: str
    sides: Sides
    outcome: str | None
    shown_at: int
    answered_at: int | None
    response_ms: int | None

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
    changes: list[Change] = []
    for event in events:
        if event.kind in CHANGES:
            changes.append((event.kind, event.content))
        elif event.kind == "planned":
            configs[len(configs) + 1] = changed(config, changes) if changes else config
    return configs


def log_digest(events: Iterable[Event]) -> str:
    """The same for equal logs and only for them."""
    sha = hashlib.sha256()
    for event in events:
        said = [event.at, event.kind, event.annotator, event.impression, event.outcome, event.body]
        sha.update(json.dumps(said).encode())
    return sha.hexdigest()


def as_counted(events: Sequence[Event]) -> list[Event]:
    """Events with each plan right after the last event that it knew of.

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
    return [event for _, event in order]


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
        week = int(body["week"])
        for name, (_, label) in body["states"].items():
            arm, state = config.arm_number(name), state_number(config, label)
            if week > 0:
                fixed[week - 1] = _with_next_state(fixed[week - 1], arm, state)
            if week < len(fixed) and arm < len(fixed[week].states):
                fixed[week] = _with_state(fixed[week], arm, state)
        for name, (_, helped) in body["helped"].items():
            fixed[week - 1] = _with_help(fixed[week - 1], config.arm_number(name), bool(helped))
    return fixed


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


def check(history: History) -> None:
    """Refuse what does not fit together; places are named as in a bundle's files."""
    _check_epochs(history)
    _check_impressions(history)
    _check_outcomes(history)
    _check_answers_used(history)
    if not 0 <= history.given <= history.asked:
        raise HistoryError(f"study.json: {history.given} ratings given of {history.asked} asked")


def _check_epochs(history: History) -> None:
    config, episode = history.config, history.episode
    known = [(move.episode, move.epoch) for move in history.moves]
    whole = [(k, h) for k in range(1, episode + 1) for h in range(config.horizon)]
    if known != whole[: len(known)] or (episode and (episode, 0) not in known):
        raise HistoryError(
            f"transitions.csv: the epochs are not those of {episode} plans with {config.horizon} "
            "epochs each, in order"
        )
    still_open = [(m.episode, m.epoch) for m in history.moves if m.next_states is None]
    if still_open and (still_open != known[-1:] or config.world == "simulated"):
        raise HistoryError(f"transitions.csv: epoch {still_open[0]} has no next states")
    if len(history.configs) != episode:
        raise HistoryError(
            f"events.csv: {len(history.configs)} plans were made, plans.csv has {episode}"
        )


def _check_impressions(history: History) -> None:
    moves = {(move.episode, move.epoch): move for move in history.moves}
    names = {person.name for person in history.annotators}
    most = max(c.ratings for c in (history.config, history.now, *history.configs.values()))
    sides: dict[tuple[Place, str], Sides] = {}
    ratings: Counter[tuple[Place, str]] = Counter()
    people: set[tuple[Place, str, str]] = set()
    for number, shown in enumerate(history.impressions, start=2):
        where = f"duels.csv row {number}"
        key = (shown.place, shown.purpose)
        if shown.annotator not in names:
            raise HistoryError(f'{where}: annotator "{shown.annotator}" is not in study.json')
        if sides.setdefault(key, shown.sides) != shown.sides:
            raise HistoryError(f"{where}: the duel has other sides than before")
        if shown.place[0]:
            _check_sides(where, shown, moves.get(shown.place[:2]), history)
        if shown.outcome != "undone":
            if (*key, shown.annotator) in people:
                raise HistoryError(f"{where}: shown to the same person before")
            people.add((*key, shown.annotator))
        if shown.purpose in LEARNT and shown.outcome in ANSWERS:
            ratings[key] += 1
            if ratings[key] > most:
                raise HistoryError(f"{where}: the duel has more than {most} ratings")


def _check_sides(where: str, shown: Impression, move: Move | None, history: History) -> None:
    if move is None:
        raise HistoryError(f"{where}: the epoch is not in transitions.csv")
    only_listed = history.configs[move.episode].answers < history.configs[move.episode].budget
    left_arm, left_state, right_arm, right_state = shown.sides
    for arm, state in ((left_arm, left_state), (right_arm, right_state)):
        there = arm < len(move.states) and move.states[arm] == state
        if not there or (only_listed and arm not in move.arms):
            raise HistoryError(
                f"{where}: transitions.csv has no such arm helped in that state then"
            )


def _check_outcomes(history: History) -> None:
    """The log and the impressions say the same of every answer."""
    said: dict[int, str | None] = {}
    for event in history.events:
        if event.impression is not None and event.kind in _OUTCOME:
            kind = _OUTCOME[event.kind]
            said[event.impression] = event.outcome if event.kind == "answered" else kind
    for place, shown in enumerate(history.impressions):
        if shown.purpose != "practice" and said.get(place) != shown.outcome:
            raise HistoryError(
                f'duels.csv row {place + 2}: outcome is "{shown.outcome or ""}", the log has '
                f'"{said.get(place) or ""}"'
            )


# What an impression's outcome is after an event; an answer's is its own.
_OUTCOME = {"shown": None, "answered": None, "expired": "expired", "undone": "undone"}


def _check_answers_used(history: History) -> None:
    """As many answers as each plan says had come before it."""
    count, plans = 0, iter(enumerate(history.plans, start=2))
    for event in as_counted(history.events):
        if event.kind == "planned":
            number, plan = next(plans)
            if plan.answers != count:
                raise HistoryError(
                    f"plans.csv row {number}: made with {plan.answers} answers, duels.csv has "
                    f"{count} from before it"
                )
        elif event.kind in SAID and event.outcome in CREDIT and event.impression is not None:
            learnt = history.impressions[event.impression].purpose in LEARNT
            count += learnt * (1 if event.kind == "answered" else -1)
