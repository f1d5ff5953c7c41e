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

from dopl_core.environments import brief
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


def check(history: History) -> None:
    """Refuse what does not fit together; places are named as in a bundle's files."""
    _check_log(history)
    _check_epochs(history)
    _check_impressions(history)
    _check_outcomes(history)
    _check_answers_used(history)
    if not 0 <= history.given <= history.asked:
        raise HistoryError(f"study.json: {history.given} ratings given of {history.asked} asked")


def _check_log(history: History) -> None:
    """Each event has what its kind has, and a plan was made with all that it should have known."""
    late = SAID if history.config.world == "observed" else ()
    needed = [n for n, e in enumerate(history.events, 1) if EVENTS[e.kind] and e.kind not in late]
    known = 0  # of `needed`, those before this event
    planned = past = False
    for seq, event in enumerate(history.events, start=1):
        where = f"events.csv row {seq + 1}"
        if (event.impression is not None) != (event.kind in _OF_IMPRESSIONS):
            raise HistoryError(f"{where}: {event.kind} is about an impression, or should not be")
        if event.impression is not None and not 0 <= event.impression < len(history.impressions):
            raise HistoryError(f"{where}: impression {event.impression + 1} is not in duels.csv")
        outcomes = _OUTCOMES.get(event.kind, (None,))
        if event.outcome not in outcomes:
            raise HistoryError(f'{where}: {event.kind} with the outcome "{event.outcome or ""}"')
        if event.kind == "planned":
            heard = event.content.get("heard", seq - 1)
            if not isinstance(heard, int) or not 0 <= heard < seq:
                raise HistoryError(
                    f"{where}: heard is {brief(heard)}: the number of an event needed"
                )
            if known and heard < needed[known - 1]:
                raise HistoryError(f"{where}: the plan does not know of event {needed[known - 1]}")
        if event.kind == "history_added" and (planned or past):
            raise HistoryError(f"{where}: past records, which come once and before the first plan")
        planned, past = planned or event.kind == "planned", past or event.kind == "history_added"
        known += known < len(needed) and needed[known] == seq


# Kinds of events that are about an impression, and the outcomes that events have.
_OF_IMPRESSIONS = ("shown", "answered", "refused", "expired", "undone")
_OUTCOMES = {"answered": ANSWERS, "refused": ANSWERS, "undone": (*ANSWERS, None)}


def _check_epochs(history: History) -> None:
    config, episode, moves = history.config, history.episode, history.moves
    most = episode * config.horizon
    least = most if config.world == "simulated" else max(most - config.horizon + 1, 0)
    places = (divmod(number, config.horizon) for number in range(len(moves)))
    ordered = all((m.episode - 1, m.epoch) == place for m, place in zip(moves, places, strict=True))
    if not ordered or not least <= len(moves) <= most:
        raise HistoryError(
            f"transitions.csv: the epochs are not those of {episode} plans with {config.horizon} "
            "epochs each, in order"
        )
    source = "simulated" if config.world == "simulated" else "owner"
    for number, move in enumerate(moves, start=1):
        where = f"transitions.csv: epoch ({move.episode}, {move.epoch})"
        if move.next_states is None and (number < len(moves) or source == "simulated"):
            raise HistoryError(f"{where} has no next states")
        if move.next_states is not None and move.source != source:
            raise HistoryError(f'{where} has the source "{move.source}", not "{source}"')
        if move.helped is not None and source == "simulated":
            raise HistoryError(f"{where}: others are helped than those on the list")
        for arm in move.columns or ():
            history.coming.arm_number(arm)
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
            raise HistoryError(f'{where}: annotator "{shown.annotator[:80]}" is not in study.json')
        if sides.setdefault(key, shown.sides) != shown.sides:
            raise HistoryError(f"{where}: the duel has other sides than before")
        _check_purpose(where, shown, history)
        if shown.place[0]:
            _check_sides(where, shown, moves.get(shown.place[:2]), history)
        if shown.outcome != "undone":
            if (*key, shown.annotator) in people:
                raise HistoryError(f"{where}: shown to the same person before")
            people.add((*key, shown.annotator))
        if shown.purpose in LEARNT and shown.outcome in ANSWERS:
            ratings[key] += 1
            wanted = most
            if shown.place[0] == history.episode:
                wanted = history.closed.get(shown.place, history.now.ratings)
            if ratings[key] > wanted:
                raise HistoryError(f"{where}: the duel has more than {wanted} ratings")


def _check_purpose(where: str, shown: Impression, history: History) -> None:
    """What comes before the first plan is about those of the beginning."""
    first = shown.purpose in ("practice", "sitting")
    if (first and shown.place[0]) or (shown.purpose == "policy" and not shown.place[0]):
        raise HistoryError(f"{where}: a duel of episode {shown.place[0]} for {shown.purpose}")
    if not shown.place[0] and max(shown.sides[0], shown.sides[2]) >= history.config.n_arms:
        raise HistoryError(f"{where}: an arm that was not there yet")


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
    for seq, event in enumerate(history.events, start=1):
        if event.impression is not None and event.kind in _OUTCOME:
            before = said.get(event.impression)
            twice = event.kind == "answered" and before in ANSWERS
            if twice or (event.kind == "undone" and event.outcome not in (None, before)):
                raise HistoryError(
                    f'events.csv row {seq + 1}: {event.kind} "{event.outcome}", when the answer '
                    f'was "{before or ""}"'
                )
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
    for _, event in as_counted(history.events):
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
