"""A history looked at and played again: it fits together, and all of it comes out the same."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from dopl_core.environments import brief
from dopl_core.learning.bandit import IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import records
from dopl_core.studies.arrays import digest
from dopl_core.studies.changes import changed
from dopl_core.studies.config import StudyConfig, adapt, learner_of
from dopl_core.studies.episode import (
    Epoch,
    begin,
    open_epoch,
    plan_arrays,
    sitting_duels,
)
from dopl_core.studies.history import (
    Event,
    History,
    HistoryError,
    Impression,
    Move,
    Place,
    Sides,
    as_counted,
    corrected,
    moves_counted,
)
from dopl_core.studies.vocabulary import ANSWERS, CHANGES, CREDIT, EVENTS, LEARNT, SAID, TRUST
from dopl_core.studies.whereabouts import coming_states


class ReplayError(ValueError):
    """What was recorded is not what comes out: says where they part."""


def replay(history: History) -> Dopl:
    """The learner, from the configuration, the answers and what the owner reported.

    Compares with what was recorded, to the bit: the plans' arrays, whom they helped, what was
    asked, and how a simulated world moved.
    """
    player = _Player(history)
    for number, event in as_counted(history.events):
        try:
            player.take(event)
        except ReplayError:
            raise
        except ValueError as error:  # a learner, or a configuration, that refuses what it is told
            raise ReplayError(f"events.csv row {number + 1}: {error}") from None
    player.check_all_came()
    return player.learner


def with_arrays(history: History) -> History:
    """The history with what its learner held after the last plan, computed where it is missing."""
    if history.arrays is not None or not history.plans:
        return history
    return replace(history, arrays=plan_arrays(replay(history)))


class _Player:
    """A study as far as it has been played.

    moves: of all epochs so far, as corrected by then; the last may be open
    people: the numbers of those who answered, in the order of their first answers
    said: what each of them has answered, and taken back: sides, credit, times
    out: those who are excluded by now
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.config: StudyConfig = history.config  # with all changes so far
        self.planned_with: StudyConfig | None = None
        self.learner = learner_of(history.config)
        self.moves: list[Move] = []
        self.people: dict[str | None, int] = {}
        self.said: defaultdict[str | None, list[tuple[Sides, float, int]]] = defaultdict(list)
        self.out: set[str | None] = set()
        self.recorded = iter(history.moves)
        self.plans = iter(history.plans)
        self.asked: dict[tuple[int, int], IntArray] = {}
        if history.config.sitting:
            self.asked[0, 0] = sitting_duels(history.config)

    def take(self, event: Event) -> None:
        if event.kind in CHANGES:
            self._change(event)
        elif event.kind in SAID:
            self._count(event)
        elif event.kind in TRUST:
            self._trust(event)
        elif event.kind == "planned":
            self._plan()
        elif event.kind == "observed" and self.config.world == "observed":
            self._move()
        elif event.kind == "corrected":
            self._correct(event)

    def _change(self, event: Event) -> None:
        self.config = changed(self.config, [(event.kind, event.content)])
        if self.planned_with is None:  # before the first plan, changes hold at once
            adapt(self.learner, self.config)
        if event.kind == "history_added":
            self.learner.count_moves(*records.moves(event.content["records"], self.config))

    def _count(self, event: Event) -> None:
        if event.impression is None:
            return
        if event.kind == "answered":
            self.people.setdefault(event.annotator, len(self.people))
        shown = self.history.impressions[event.impression]
        if shown.purpose not in LEARNT:
            return
        self._check_asked(shown)
        if event.outcome in CREDIT:
            times = 1 if event.kind == "answered" else -1
            self.said[event.annotator].append((shown.sides, CREDIT[event.outcome], times))
            if event.annotator not in self.out:
                self._count_said(event.annotator, self.said[event.annotator][-1:])

    def _trust(self, event: Event) -> None:
        """Somebody is excluded, or included again, with all that they have answered so far."""
        name, out = event.annotator, event.kind == "person_excluded"
        if out != (name in self.out):
            self._count_said(name, self.said[name], -1 if out else 1)
        self.out = self.out | {name} if out else self.out - {name}

    def _count_said(
        self, name: str | None, said: list[tuple[Sides, float, int]], sign: int = 1
    ) -> None:
        if said:
            sides, credit, times = zip(*said, strict=True)
            who = self.people.get(name, 0)
            self.learner.count_duels(sides, credit, sign * np.array(times), who)

    def _check_asked(self, shown: Impression) -> None:
        episode, epoch, number = shown.place
        asked = self.asked.get((episode, epoch), np.empty((0, 4)))
        if asked[number : number + 1].tolist() != [list(shown.sides)]:
            raise ReplayError(f"episode, epoch, duel {shown.place}: something else would be asked")

    def check_all_came(self) -> None:
        """Everything that was recorded has come out, and was asked."""
        said, played = self.history.moves, self.moves
        reported = [sum(m.next_states is not None for m in moves) for moves in (said, played)]
        if len(said) != len(played) or reported[0] != reported[1]:
            raise ReplayError(
                f"transitions.csv has {len(said)} epochs, {reported[0]} of them reported; by the "
                f"log there are {len(played)}, {reported[1]} of them reported"
            )
        for shown in self.history.impressions:
            if shown.purpose in LEARNT:
                self._check_asked(shown)
        for episode, epoch, number in self.history.closed:
            last = episode == self.history.episode
            if not last or number >= len(self.asked.get((episode, epoch), ())):
                raise ReplayError(f"study.json: closed duel {episode, epoch, number} is not asked")

    def _plan(self) -> None:
        made = next(self.plans, None)
        if made is None:
            raise ReplayError("plans.csv: the log has more plans")
        states = coming_states(self.config, self.moves, self.planned_with)
        epochs = begin(self.config, self.learner, states, self.moves).epochs
        self.planned_with = self.config
        if made.digest not in (None, digest(plan_arrays(self.learner))):
            raise ReplayError(
                f"plan {made.plan} comes out differently: its arrays are not those recorded"
            )
        for epoch in epochs:
            self._open(epoch)

    def _open(self, epoch: Epoch) -> None:
        move = next(self.recorded, None)
        if move is None:
            raise ReplayError("transitions.csv: by the log there are more epochs")
        self.opened = move
        _compare(epoch, move)
        self.asked[move.episode, move.epoch] = epoch.duels
        if self.config.world == "observed":
            move = replace(move, next_states=None, helped=None)
        self.moves.append(move)

    def _move(self) -> None:
        """The owner has reported the epoch that is open."""
        if not self.moves:
            raise ReplayError("there is a report before the first plan")
        said, move = self.opened, self.moves[-1]
        if said.next_states is None or move.next_states is not None:
            raise ReplayError(f"episode {said.episode} epoch {said.epoch}: a report too many")
        self.moves[-1] = replace(move, next_states=said.next_states, helped=said.helped)
        self._count_moves(self.moves[-1:])
        if move.epoch + 1 < self.config.horizon:
            self._open(open_epoch(self.learner, said.next_states, move.epoch + 1, self.moves))

    def _correct(self, event: Event) -> None:
        fixed = corrected(self.moves, [event.content], self.config)
        for before, after in zip(self.moves, fixed, strict=True):
            if before is not after:
                self._count_moves([before], -1)
                self._count_moves([after])
        self.moves = fixed

    def _count_moves(self, moves: list[Move], times: int = 1) -> None:
        self.learner.count_moves(*moves_counted(moves, self.learner.n_arms), times)


def _compare(epoch: Epoch, move: Move) -> None:
    where = f"episode {move.episode} epoch {move.epoch}"
    if not np.array_equal(epoch.states, move.states):
        raise ReplayError(f"{where}: the states are not those recorded")
    if not np.array_equal(epoch.arms, move.arms):
        raise ReplayError(f"{where}: the plan helps other arms than those recorded")
    if not np.array_equal(epoch.by_lot, move.by_lot):
        raise ReplayError(f"{where}: lots fall on other arms than those recorded")
    if epoch.next_states is not None and epoch.next_states.tolist() != _listed(move.next_states):
        raise ReplayError(f"{where}: the simulated world moves otherwise than recorded")


def _listed(states: IntArray | None) -> list[int]:
    return [] if states is None else states.tolist()


# --- what must fit together before it is played


def check(history: History) -> None:
    """Refuse what does not fit together; places are named as in a bundle's files."""
    _check_log(history)
    _check_trust(history)
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
        if event.kind == "flagged" and not all(
            isinstance(event.content.get(what), str) for what in ("comment", "arm")
        ):
            raise HistoryError(f"{where}: a flag without the comment and the arm it is about")
        if event.kind == "history_added" and (planned or past):
            raise HistoryError(f"{where}: past records, which come once and before the first plan")
        planned, past = planned or event.kind == "planned", past or event.kind == "history_added"
        known += known < len(needed) and needed[known] == seq


def _check_trust(history: History) -> None:
    """People who are here are excluded, and those who are excluded included again."""
    names = {person.name for person in history.annotators}
    out: set[str] = set()
    for seq, event in enumerate(history.events, start=1):
        if event.kind in TRUST:
            name = event.annotator or ""
            if name not in names or (name in out) == (event.kind == "person_excluded"):
                raise HistoryError(
                    f'events.csv row {seq + 1}: {event.kind}: "{name[:80]}" cannot be'
                )
            out ^= {name}


# Kinds of events that are about an impression, and the outcomes that events have.
_OF_IMPRESSIONS = ("shown", "answered", "refused", "expired", "undone", "flagged")
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
            if event.annotator != history.impressions[event.impression].annotator:
                raise HistoryError(f"events.csv row {seq + 1}: an impression of another person's")
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
    said: Counter[str | None] = Counter()
    out: set[str | None] = set()
    plans = iter(enumerate(history.plans, start=2))
    for _, event in as_counted(history.events):
        if event.kind == "planned":
            number, plan = next(plans)
            count = sum(answers for name, answers in said.items() if name not in out)
            if plan.answers != count:
                raise HistoryError(
                    f"plans.csv row {number}: made with {plan.answers} answers, duels.csv has "
                    f"{count} from before it"
                )
        elif event.kind in SAID and event.outcome in CREDIT and event.impression is not None:
            learnt = history.impressions[event.impression].purpose in LEARNT
            said[event.annotator] += learnt * (1 if event.kind == "answered" else -1)
        elif event.kind in TRUST:
            out ^= {event.annotator}
