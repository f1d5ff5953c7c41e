"""The log of a study and all that it points to, as values.

store/log_reader.py reads one from a database, exchange/bundle.py from a zip; replay/replay.py plays
one again.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dopl_core.learning.bandit import Arrays
from dopl_core.studies.model.config_changes import CHANGES, Change, changed
from dopl_core.studies.model.corrections import corrected
from dopl_core.studies.model.event_bodies import Corrected, Erased, ProtocolFixed
from dopl_core.studies.model.event_kinds import (
    EFFECTIVE,
    REVISIONS,
    Numbered,
    body_of,
    standing,
)
from dopl_core.studies.model.log_values import (
    Epoch,
    Event,
    Impression,
    Person,
    Place,
    PlanMade,
    QueuedDuel,
    week_of,
)
from dopl_core.studies.model.past_answers import annotators_in
from dopl_core.studies.model.study_config import StudyConfig


@dataclass(frozen=True, eq=False)
class StudyLog:
    """Everything that happened in a study.

    config: as the study was made; events of the kinds in CHANGES have changed it since
    config_text: the same as JSON, as it was written then, whose digest the log has
    asked, given: answers that the present round asks for, and has
    epochs: as they were reported, before any correction
    arrays: what the learner held after the last plan beside its counts; None where they are lost
    queue: the practice duels and those of the present round; None in bundles of version 3, which
        did not have it
    events: the whole log, in order; all else says what it is about
    """

    study: str
    status: str
    made_at: int
    config: StudyConfig
    config_text: str
    asked: int
    given: int
    annotators: list[Person]
    impressions: list[Impression]
    epochs: list[Epoch]
    plans: list[PlanMade]
    arrays: Arrays | None
    queue: list[QueuedDuel] | None
    events: list[Event]

    @property
    def episode(self) -> int:
        """The number of the last plan, 0 before the first."""
        return len(self.plans)

    @property
    def epoch(self) -> int:
        """How many epochs of the last episode are reported."""
        return sum(e.episode == self.episode and e.next_states is not None for e in self.epochs)

    @property
    def seq(self) -> int:
        """How many events there are."""
        return len(self.events)

    @property
    def heard(self) -> int:
        """The number of the last event that the next plan depends on."""
        return max((n for n, e in enumerate(self.events, 1) if e.kind in EFFECTIVE), default=0)

    @cached_property
    def standing(self) -> list[Numbered]:
        """The events that count, with their numbers: without what undone reports had led to."""
        return standing(enumerate(self.events, start=1))

    @cached_property
    def first_duels(self) -> dict[int, int]:
        """By week, the number of the first duel that its list asks.

        Duels with smaller numbers were asked after a report that was undone.
        """
        counts = {seq for seq, _ in self.standing}
        listed = ((n, body_of(e)) for n, e in enumerate(self.events, 1) if e.kind == "listed")
        return {body.week: body.first_duel if n in counts else sys.maxsize for n, body in listed}

    def was_undone(self, duel: Place) -> bool:
        """Whether a duel was asked after a report that was undone."""
        return duel[2] < self.first_duels.get(week_of(self.config, *duel[:2]), 0)

    @cached_property
    def all_changes(self) -> list[Change]:
        """The changes of the configuration, in order."""
        return changes_in(self.events)

    @property
    def changes(self) -> int:
        return len(self.all_changes)

    @property
    def in_force(self) -> int:
        """How many changes the last plan was made with."""
        last = max((seq for seq, e in self.standing if e.kind == "planned"), default=1)
        return sum(event.kind in CHANGES for event in self.events[: last - 1])

    @cached_property
    def configs(self) -> dict[int, StudyConfig]:
        """The configuration that each plan was made with."""
        return configs_of_plans(self.config, (event for _, event in self.standing))

    @cached_property
    def now(self) -> StudyConfig:
        """The configuration in force."""
        holds = self.in_force if self.episode else self.changes
        return changed(self.config, self.all_changes[:holds])

    @cached_property
    def coming(self) -> StudyConfig:
        """The configuration with all changes, which the next plan has."""
        return changed(self.config, self.all_changes)

    @cached_property
    def past_annotators(self) -> Counter[str]:
        """The number of past answers of each annotator, in the order of their first ones."""
        added = (body_of(e).answers for e in self.events if e.kind == "answers_added")
        return Counter(name for text in added for name in annotators_in(text))

    @cached_property
    def protocol(self) -> tuple[int, ProtocolFixed] | None:
        """When the protocol of a trial was fixed, and what it says; None if there is none."""
        fixed = ((e.at, body_of(e)) for e in self.events if e.kind == "protocol_fixed")
        return next(fixed, None)

    @cached_property
    def corrections(self) -> list[tuple[int, Corrected]]:
        """When, and what was corrected, in order."""
        return [(e.at, body_of(e)) for _, e in self.standing if e.kind == "corrected"]

    @cached_property
    def erasures(self) -> list[tuple[int, int, Erased]]:
        """What was erased, in order: the number of the event, when, and what it says."""
        found = enumerate(self.events, start=1)
        return [(seq, e.at, body_of(e)) for seq, e in found if e.kind == "erased"]

    @property
    def people_erased(self) -> int:
        """The number of the last event that erased people: plans before it used their columns."""
        return max((seq for seq, _, one in self.erasures if one.what != "annotator"), default=0)

    @property
    def annotators_erased(self) -> int:
        """The number of the last event that erased an annotator, whom limits name no more."""
        return max((seq for seq, _, one in self.erasures if one.what == "annotator"), default=0)

    @cached_property
    def known_epochs(self) -> list[Epoch]:
        """The epochs as corrected by now, with the lists as owners changed them."""
        bodies = (body_of(event) for _, event in self.standing if event.kind in REVISIONS)
        return corrected(self.epochs, bodies, self.coming)


def changes_in(events: Iterable[Event]) -> list[Change]:
    """The changes of the configuration among events."""
    return [(event.kind, body_of(event)) for event in events if event.kind in CHANGES]


def configs_of_plans(config: StudyConfig, events: Iterable[Event]) -> dict[int, StudyConfig]:
    """The configuration that each plan was made with, by the number of the plan."""
    configs: dict[int, StudyConfig] = {}
    since: list[Change] = []
    for event in events:
        if event.kind in CHANGES:
            since.append((event.kind, body_of(event)))
        elif event.kind == "planned":
            config, since = changed(config, since), []
            configs[len(configs) + 1] = config
    return configs


def log_digest(events: Iterable[Event]) -> str:
    """The same for equal logs and only for them; salts are not part of it."""
    sha = hashlib.sha256()
    for event in events:
        said = [event.at, event.kind, event.annotator, event.impression, event.outcome, event.body]
        sha.update(json.dumps(said).encode())
    return sha.hexdigest()
