"""A study played again from its log: every plan, duel and move must come out the same."""

from dataclasses import replace

import numpy as np

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import records
from dopl_core.studies.arrays import digest
from dopl_core.studies.changes import changed
from dopl_core.studies.config import StudyConfig, learner_of
from dopl_core.studies.episode import (
    Epoch,
    adapt,
    begin,
    open_epoch,
    plan_arrays,
    sitting_duels,
)
from dopl_core.studies.history import (
    Event,
    History,
    Impression,
    Move,
    as_counted,
    corrected,
    moves_counted,
)
from dopl_core.studies.vocabulary import CHANGES, CREDIT, LEARNT, SAID
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
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.config: StudyConfig = history.config  # with all changes so far
        self.planned_with: StudyConfig | None = None
        self.learner = learner_of(history.config)
        self.moves: list[Move] = []
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
        shown = self.history.impressions[event.impression]
        if shown.purpose not in LEARNT:
            return
        self._check_asked(shown)
        if event.outcome in CREDIT:
            times = 1 if event.kind == "answered" else -1
            self.learner.count_duels([shown.sides], [CREDIT[event.outcome]], times)

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
    if epoch.next_states is not None and epoch.next_states.tolist() != _listed(move.next_states):
        raise ReplayError(f"{where}: the simulated world moves otherwise than recorded")


def _listed(states: IntArray | None) -> list[int]:
    return [] if states is None else states.tolist()
