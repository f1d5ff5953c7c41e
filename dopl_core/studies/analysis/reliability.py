"""Whether the answers of a study are enough, and what more of them would bring."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dopl_core.learning.bradley_terry.reliability import ENOUGH as ENOUGH
from dopl_core.learning.learner import Learner
from dopl_core.studies.analysis import frames
from dopl_core.studies.analysis.assessment import MOST_PEOPLE, places_changed, state_probabilities
from dopl_core.studies.exchange.reliability_csv import MIN_ANSWERS as MIN_ANSWERS
from dopl_core.studies.exchange.reliability_csv import MIN_COMPARISONS as MIN_COMPARISONS
from dopl_core.studies.exchange.reliability_csv import MIN_DUELS as MIN_DUELS
from dopl_core.studies.exchange.reliability_csv import SURE as SURE
from dopl_core.studies.exchange.reliability_csv import Answer, judgements, measure
from dopl_core.studies.exchange.reliability_csv import Judgements as Judgements
from dopl_core.studies.exchange.reliability_csv import Reliability as Reliability
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study
from dopl_core.studies.store.time_limits import slowly

if TYPE_CHECKING:
    import pandas as pd

MORE = (50, 200)  # answers whose effect is forecast


@dataclass(frozen=True)
class Enough:
    """Whether the answers of a study are enough.

    answers: with a winner;  found: None if they are too few
    changed: by number of more answers, how many of the `places` on the list they would change, on
        average; empty if that is not known
    """

    answers: int
    found: Reliability | None
    places: int
    changed: dict[int, float]

    @property
    def is_enough(self) -> bool:
        """Whether asking can stop."""
        return self.found is not None and self.found.is_enough


@slowly()
def measure_enough(
    store: Store,
    study: str,
    learner: Learner | None = None,
    answers: "pd.DataFrame | None" = None,
) -> Enough:
    """Measure how reliable the answers are now, and what more of them would bring.

    learner, answers: the study's present ones (frames.answers), if they are read already
    """
    answers = frames.answers(store, study) if answers is None else answers
    with read_study(store, study) as reader:
        config, row, moves = reader.config, reader.row, reader.epochs
        excluded = learner_from_log.excluded(reader.connection, study)
        learner = learner or learner_from_log.learner_now(reader)
        epoch = reader.present_epoch() if row.episode else None
    judged = judgements(_answers_that_count(answers), excluded)
    changed: dict[int, float] = {}
    places = 0 if epoch is None else len(epoch.listed) - len(epoch.by_lot)
    if epoch is not None and learner.has_posterior and learner.present.sum() <= MOST_PEOPLE:
        likely = state_probabilities(learner, epoch.states, moves).argmax(axis=1)
        states = epoch.states, likely
        rng = np.random.default_rng([config.seed % 2**32, row.seq])
        found = {more: places_changed(learner, states, moves[-1], rng, more) for more in MORE}
        changed = {more: number for more, number in found.items() if number is not None}
    return Enough(len(judged.winners), measure(judged), places, changed)


def _answers_that_count(answers: "pd.DataFrame") -> Iterator[Answer]:
    counted = answers[answers.purpose.isin(LEARNT)]
    left = zip(counted.left_arm, counted.left_state, strict=True)
    right = zip(counted.right_arm, counted.right_state, strict=True)
    return zip(counted.annotator, left, right, counted.outcome, strict=True)
