"""A study as far as its log has been read: its configuration, its learner and its epochs.

Each method is the effect of a kind of event; event_kinds.py says which. Opening a study, importing
a bundle and replaying one all read the log through it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.counts import HABITS
from dopl_core.learning.learner import Moves
from dopl_core.studies.model import past_answers, past_records
from dopl_core.studies.model.config_changes import Change, changed
from dopl_core.studies.model.corrections import corrected
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_bodies import (
    AnswersAdded,
    Corrected,
    Empty,
    Erased,
    FirstRoundDrawn,
    HistoryAdded,
    ListChanged,
    Observed,
    Planned,
)
from dopl_core.studies.model.factories import adapt, learner_of
from dopl_core.studies.model.log_values import Epoch, Event, Shown, moves_in
from dopl_core.studies.model.outcomes import CREDIT, LEARNT
from dopl_core.studies.model.study_config import StudyConfig

FAST_MS = 600  # nobody looks at two cards and decides in less
Answer = tuple[tuple[int, int, int, int], float, int, int]  # sides, credit, times, who


class Watch:
    """Looks at each step and may refuse it. This one takes the record as it is."""

    def planned(self, progress: "Progress", body: Planned) -> None:
        """A plan was made; `progress.config` is its configuration."""

    def first_round(self, progress: "Progress", body: FirstRoundDrawn) -> None:
        """The pairs of the first round were chosen anew."""

    def opened(self, progress: "Progress", epoch: Epoch) -> None:
        """An epoch begins, as it was recorded."""

    def list_changed(self, progress: "Progress", epoch: Epoch, body: ListChanged) -> None:
        """The owner changed the list of the open epoch; epoch: as it is then."""

    def reported(self, progress: "Progress", epoch: Epoch, body: Observed) -> None:
        """The next states of the open epoch are known."""

    def answered(self, progress: "Progress", shown: Shown) -> None:
        """An answer that the learner counts was given or taken back."""


class Progress:
    """The fold of a study log.

    config: with all changes so far;  planned_with: that of the last plan, None before the first
    epochs: all that were opened, as corrected by now; the last may be unreported
    annotators: the number of each annotator, in the order of their first answers
    excluded: annotators whose answers do not count

    recorded: all epochs as they were reported, in order
    shown: by Event.impression, what was shown
    """

    def __init__(
        self,
        config: StudyConfig,
        recorded: Iterable[Epoch],
        shown: Sequence[Shown] | Mapping[int, Shown],
        watch: Watch | None = None,
    ) -> None:
        self.config = config
        self.planned_with: StudyConfig | None = None
        self.learner = learner_of(config)
        self.epochs: list[Epoch] = []
        self.annotators: dict[str, int] = {}
        self.excluded: set[str] = set()
        self._recorded, self._shown = iter(recorded), shown
        self._watch = watch or Watch()
        self._open: Epoch | None = None
        self._past_records: str | None = None
        self._waiting: list[tuple[str, Answer]] = []  # what it counts as: a duel or one of HABITS
        self._forgotten: set[int] = set()  # arms whose answers and moves do not count any more

    def count(self) -> None:
        """Hand the answers read so far to the learner, all at once.

        Answers about arms that the learner does not know yet wait for the next plan: they were
        given after a report that was undone.
        """
        most, S = self.learner.n_arms, self.config.n_states
        waiting, self._waiting = self._waiting, []
        for kind in ("duels", *HABITS):
            known = [one for what, one in waiting if what == kind and max(one[0][::2]) < most]
            if known and kind == "duels":
                self.learner.count_duels(*zip(*known, strict=True))
            elif known:
                duels, credit, times, who = map(np.array, zip(*known, strict=True))
                left, right = (duels[:, ::2] * S + duels[:, 1::2]).T
                self.learner.counts.habits[kind].add_answers(left, right, credit, times, who)
        self._waiting = [one for one in waiting if max(one[1][0][::2]) >= most]
        out = {self.annotators[name] for name in self.excluded if name in self.annotators}
        codes = [arm * S + state for arm in self._forgotten for state in range(S)]
        self.learner.counts.exclude(out, codes)

    def change_config(self, event: Event, body: Empty) -> None:
        self._change((event.kind, body))

    def add_history(self, event: Event, body: HistoryAdded) -> None:
        if self.planned_with is not None:
            raise LogError("past records came after the first plan")
        self._change((event.kind, body))
        self.learner.count_moves(*past_records.moves(body.records, self.config))
        self._past_records = body.records

    def add_answers(self, event: Event, body: AnswersAdded) -> None:
        if self.planned_with is not None:
            raise LogError("past answers came after the first plan")
        for name, sides in past_answers.duels(body.answers, self.config, self._past_records):
            who = self.annotators.setdefault(name, len(self.annotators))
            self._waiting.append(("duels", (sides, 1.0, 1, who)))

    def draw_first_round(self, event: Event, body: FirstRoundDrawn) -> None:
        """The pairs of the first round were chosen anew, with all changes so far."""
        if self.planned_with is not None:
            raise LogError("the first round was drawn after the first plan")
        self._watch.first_round(self, body)

    def _change(self, change: Change) -> None:
        self.config = changed(self.config, [change])
        if self.planned_with is None:  # before the first plan, changes hold at once
            adapt(self.learner, self.config)

    def count_answer(self, event: Event, body: Empty) -> None:
        """An answer counts once, minus once where it was taken back."""
        if event.impression is None or event.annotator is None:
            return
        given = event.kind == "answered"
        if given:
            self.annotators.setdefault(event.annotator, len(self.annotators))
        shown = self._shown[event.impression]
        is_learnt = shown.purpose in LEARNT
        if is_learnt:
            self._watch.answered(self, shown)
        if event.outcome in CREDIT:
            who = self.annotators.get(event.annotator, 0)
            answer = (shown.sides, CREDIT[event.outcome], 1 if given else -1, who)
            if is_learnt:
                self._waiting.append(("duels", answer))
                if shown.response_ms is not None and shown.response_ms < FAST_MS:
                    self._waiting.append(("fast", answer))
            elif shown.purpose == "repeat":
                self._waiting.append(("repeats", answer))

    def exclude(self, event: Event, body: Empty) -> None:
        self.excluded.add(event.annotator or "")

    def include(self, event: Event, body: Empty) -> None:
        self.excluded.discard(event.annotator or "")

    def erase(self, event: Event, body: Erased) -> None:
        """Count no answers about a person and no moves of theirs, if that was asked for."""
        if body.what == "person" and body.answers:
            arm = self.config.arm_number(body.name)
            self._forgotten.add(arm)
            self.learner.forget_moves(arm)

    def begin_episode(self, event: Event, body: Planned) -> None:
        """A plan was made with all changes so far; its first epoch opens."""
        self.count()
        adapt(self.learner, self.config, self.epochs)
        self.count()
        self._watch.planned(self, body)
        self.planned_with = self.config
        self._next_epoch()

    def finish_epoch(self, event: Event, body: Observed) -> None:
        """The open epoch has its next states; the next one of the episode opens."""
        recorded = self._open
        if recorded is None:
            raise LogError("there is a report before the first plan")
        if recorded.next_states is None or self.epochs[-1].next_states is not None:
            raise LogError(f"{recorded}: a report too many")
        open_epoch = self.epochs[-1]  # its states may have been corrected
        known = replace(
            recorded, states=open_epoch.states, arms=open_epoch.arms, by_lot=open_epoch.by_lot
        )
        known = known.with_own(open_epoch.own)
        self._watch.reported(self, known, body)
        self.epochs[-1] = known
        self.learner.count_moves(*self._moves(known))
        if recorded.epoch + 1 < self.config.horizon:
            self._next_epoch()

    def _next_epoch(self) -> None:
        self._open = next(self._recorded, None)
        if self._open is None:
            raise LogError("transitions.csv: the log has more epochs")
        self._watch.opened(self, self._open)
        self.epochs.append(replace(self._open, next_states=None, source=None, helped=None))

    def change_list(self, event: Event, body: ListChanged) -> None:
        """The owner changed the list of the open epoch."""
        if body.week != len(self.epochs) or self.epochs[-1].next_states is not None:
            raise LogError(f"the list of week {body.week} was changed when it was not open")
        changed_epochs = corrected(self.epochs, [body], self.config)
        self._watch.list_changed(self, changed_epochs[-1], body)
        self.epochs = changed_epochs

    def correct(self, event: Event, body: Corrected) -> None:
        fixed = corrected(self.epochs, [body], self.config)
        last = sum(epoch.next_states is not None for epoch in self.epochs) - 1
        for number, (before, after) in enumerate(zip(self.epochs, fixed, strict=True)):
            if before is not after:
                wrong, right = self._moves(before), self._moves(after)
                self.learner.revise_moves(last - number, wrong, right)
        self.epochs = fixed

    def _moves(self, epoch: Epoch) -> Moves:
        """The moves of an epoch, without those of people whose moves are forgotten."""
        states, helped, next_states = moves_in([epoch], self.learner.n_arms)
        states[:, [arm for arm in self._forgotten if arm < self.learner.n_arms]] = UNKNOWN
        return states, helped, next_states
