"""How reliable the answers of a study are: reliability.csv.

Items are people in the state in which they were compared; those compared less than three times are
left out. Ties and skips have no winner and do not count here; neither do the answers of excluded
annotators, nor those of before the study.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.bradley_terry import reliability
from dopl_core.learning.bradley_terry.reliability import Measure
from dopl_core.studies.model.event_kinds import EXCLUSIONS
from dopl_core.studies.model.log_values import Impression
from dopl_core.studies.model.study_log import StudyLog

MIN_ANSWERS = 30  # with fewer, no figure is given
MIN_DUELS = 3  # of an item: with fewer, there is often no fit
MIN_COMPARISONS = 10  # of each person, on average: with fewer, reliability is often overstated
# What measures must reach for the advice to stop, so that ENOUGH is reached in nine of ten studies:
# chosen by simulation (tests/benchmarks/RESULTS.md).
SURE = 0.84

COLUMNS = ("measure", "annotator", "value", "low", "high")


@dataclass(frozen=True)
class Reliability:
    """How reliable answers are; with fewer than MIN_ANSWERS there is none.

    answers, people, items: answers with a winner, the people compared in them, and how many items
        these make
    separation: scale separation reliability (SSR);  halves: the split-half correlation
    infit: of each annotator
    """

    answers: int
    people: int
    items: int
    separation: Measure
    halves: Measure
    infit: dict[str, Measure]

    @property
    def comparisons(self) -> float:
        """Of each person, on average."""
        return 2 * self.answers / self.people

    @property
    def is_enough(self) -> bool:
        """Whether asking can stop: the answers are reliable, surely so, and annotators agree."""
        enough = self.comparisons >= MIN_COMPARISONS
        return self.separation.low >= SURE and self.together >= SURE and enough

    @property
    def together(self) -> float:
        """The reliability that split halves show for all annotators; NaN with one annotator."""
        return reliability.spearman_brown(self.halves.value, 2)

    def with_more(self, more: int) -> float:
        """The SSR that more answers would bring.

        Where people move between states, part of them goes to new items: in simulated studies,
        items and the answers about each grow with the square root of all answers.
        """
        times = (self.answers + more) / self.answers
        each = times if self.items == self.people else times**0.5
        return reliability.spearman_brown(self.separation.value, each)


Item = tuple[str | int, str | int]  # an arm and its state
Answer = tuple[str, Item, Item, str | None]  # annotator, left, right, outcome


class Judgements(NamedTuple):
    """Answers with a winner: winners, losers and annotators [D], as numbers from 0.

    names: of the annotators;  people: how many are compared
    """

    winners: IntArray
    losers: IntArray
    annotators: IntArray
    names: list[str]
    people: int


def judgements(answers: Iterable[Answer], excluded: Collection[str] = ()) -> Judgements:
    """The answers with a winner of all annotators but those excluded."""
    items, names = dict[Item, int](), dict[str, int]()
    rows = []
    for annotator, left, right, outcome in answers:
        if outcome in ("left", "right") and annotator not in excluded:
            pair = [items.setdefault(one, len(items)) for one in (left, right)]
            pair = pair if outcome == "left" else pair[::-1]
            rows.append((*pair, names.setdefault(annotator, len(names))))
    winners, losers, annotators = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Judgements(winners, losers, annotators, list(names), len({arm for arm, _ in items}))


def of_impressions(impressions: Iterable[Impression]) -> Iterator[Answer]:
    """The answers that the learner counts."""
    for shown in impressions:
        if shown.learnt:
            yield shown.annotator, shown.sides[:2], shown.sides[2:], shown.outcome


def measure(judged: Judgements) -> Reliability | None:
    """The reliability of judgements; None if it cannot be told. The same every time."""
    winners, losers, annotators, names, people = judged
    kept = reliability.often_compared(winners, losers, MIN_DUELS)
    if kept.sum() < MIN_ANSWERS:
        return None
    rng = np.random.default_rng(len(winners))
    items = int(max(winners.max(), losers.max())) + 1
    found = reliability.separation_interval(winners[kept], losers[kept], items, rng)
    if np.isnan(found.value):
        return None
    fits = reliability.infit(winners, losers, annotators, rng)
    winners, losers, annotators = winners[kept], losers[kept], annotators[kept]
    return Reliability(
        answers=len(judged.winners),
        people=people,
        items=len(np.unique([judged.winners, judged.losers])),
        separation=found,
        halves=reliability.split_halves(winners, losers, annotators, rng, reliability.RESAMPLES),
        infit=dict(zip(names, fits, strict=True)),
    )


def rows(log: StudyLog) -> list[tuple[str, str, float, float, float]]:
    """The rows of reliability.csv; none where answers are too few."""
    last = {event.annotator: event.kind for event in log.events if event.kind in EXCLUSIONS}
    excluded = [name for name, kind in last.items() if name and kind == "person_excluded"]
    found = measure(judgements(of_impressions(log.impressions), excluded))
    if found is None:
        return []
    measures = [("scale_separation", "", found.separation), ("split_half", "", found.halves)]
    measures += [("infit", name, one) for name, one in found.infit.items()]
    return [
        (what, name, round(one.value, 4), round(one.low, 4), round(one.high, 4))
        for what, name, one in measures
    ]
