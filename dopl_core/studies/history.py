"""What a study is: everything that happened in it, as values.

archive.py turns a database into a History and back, bundle.py a zip; replay.py plays one again.
"""

from collections import Counter
from dataclasses import dataclass

from dopl_core.learning.bandit import IntArray
from dopl_core.studies.arrays import Arrays
from dopl_core.studies.config import StudyConfig
from dopl_core.studies.vocabulary import ANSWERS, CREDIT, LEARNT

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


@dataclass(frozen=True, eq=False)
class Move:
    """An epoch: states [N], arms helped [B], next states [N] where known.

    columns: what the owner has reported of the arms by its end, arm id -> column -> text
    """

    episode: int
    epoch: int
    states: IntArray
    arms: IntArray
    next_states: IntArray | None
    source: str | None
    columns: dict[str, dict[str, str]] | None = None


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

    @property
    def episode(self) -> int:
        """That of the last plan."""
        return len(self.plans)

    @property
    def epoch(self) -> int:
        """Epochs of the last episode whose moves are known."""
        return sum(m.episode == self.episode and m.next_states is not None for m in self.moves)


def check(history: History) -> None:
    """Refuse what does not fit together; places are named as in a bundle's files."""
    _check_epochs(history)
    _check_impressions(history)
    _check_answers_used(history)
    if not 0 <= history.given <= history.asked:
        raise HistoryError(f"study.json: {history.given} ratings given of {history.asked} asked")


def _check_epochs(history: History) -> None:
    config, episode = history.config, history.episode
    known = [(move.episode, move.epoch) for move in history.moves]
    whole = [(k, h) for k in range(1, episode + 1) for h in range(config.horizon)]
    if known != whole[: len(known)] or (episode, 0) not in known:
        raise HistoryError(
            f"transitions.csv: the epochs are not those of {episode} plans with {config.horizon} "
            "epochs each, in order"
        )
    still_open = [(m.episode, m.epoch) for m in history.moves if m.next_states is None]
    if still_open and (still_open != known[-1:] or config.world == "simulated"):
        raise HistoryError(f"transitions.csv: epoch {still_open[0]} has no next states")


def _check_impressions(history: History) -> None:
    moves = {(move.episode, move.epoch): move for move in history.moves}
    names = {person.name for person in history.annotators}
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
        if shown.purpose != "practice":
            _check_sides(where, shown, moves.get(shown.place[:2]))
        if shown.outcome != "undone":
            if (*key, shown.annotator) in people:
                raise HistoryError(f"{where}: shown to the same person before")
            people.add((*key, shown.annotator))
        if shown.purpose in LEARNT and shown.outcome in ANSWERS:
            ratings[key] += 1
            if ratings[key] > history.config.ratings:
                raise HistoryError(
                    f"{where}: the duel has more than {history.config.ratings} ratings"
                )


def _check_sides(where: str, shown: Impression, move: Move | None) -> None:
    if move is None:
        raise HistoryError(f"{where}: the epoch is not in transitions.csv")
    left_arm, left_state, right_arm, right_state = shown.sides
    for arm, state in ((left_arm, left_state), (right_arm, right_state)):
        if arm not in move.arms or move.states[arm] != state:
            raise HistoryError(
                f"{where}: transitions.csv has no such arm helped in that state then"
            )


def _check_answers_used(history: History) -> None:
    used: Counter[int] = Counter(s.place[0] for s in history.impressions if s.learnt)
    for number, plan in enumerate(history.plans, start=2):
        before = sum(used[k] for k in range(plan.plan))
        if plan.answers != before:
            raise HistoryError(
                f"plans.csv row {number}: made with {plan.answers} answers, duels.csv has "
                f"{before} from before it"
            )
