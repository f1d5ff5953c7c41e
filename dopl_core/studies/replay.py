"""A history played again: all of it comes out the same.

To the bit, where it was made with the arithmetic that there is here. Another processor, or another
NumPy, rounds differently: what was made there comes out the same but for rounding, and where that
has decided between equals (whom to help, what to ask), what was recorded is followed.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dopl_core.learning.arithmetic import fingerprint
from dopl_core.learning.bandit import IntArray
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import records
from dopl_core.studies.arrays import agree, digest, tolerance
from dopl_core.studies.changes import changed
from dopl_core.studies.config import StudyConfig, adapt, learner_of
from dopl_core.studies.episode import (
    Epoch,
    first_epochs,
    open_epoch,
    plan_arrays,
    sitting_duels,
)
from dopl_core.studies.history import (
    Event,
    History,
    Impression,
    Move,
    PlanMade,
    Sides,
    as_counted,
    corrected,
    moves_counted,
)
from dopl_core.studies.vocabulary import CHANGES, CREDIT, LEARNT, SAID, TRUST
from dopl_core.studies.whereabouts import coming_states


class ReplayError(ValueError):
    """What was recorded is not what comes out: says where they part."""


def replay(history: History, tell: Callable[[str], None] = lambda how: None) -> Dopl:
    """The learner, from the configuration, the answers and what the owner reported.

    Compares with what was recorded: the plans' arrays, whom they helped, what was asked, and how a
    simulated world moved.
    tell: is told how it came out, TO_THE_BIT or otherwise
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
    how = AS_RECORDED if player.parted else TO_THE_BIT
    if player.parted and history.arrays is not None:
        how += f": the last plan agrees within {tolerance(history.arrays):g}"
    tell(how)
    return player.learner


TO_THE_BIT = "everything comes out the same, to the bit"
AS_RECORDED = "as recorded; made on another kind of machine, whose arithmetic rounds differently"


def with_arrays(history: History) -> History:
    """The history with what its learner held after the last plan, computed where it is missing."""
    if history.arrays is not None or not history.plans:
        return history
    arrays = plan_arrays(replay(history))
    last = replace(history.plans[-1], digest=digest(arrays))
    return replace(history, arrays=arrays, plans=[*history.plans[:-1], last])


class _Player:
    """A study as far as it has been played.

    moves: of all epochs so far, as corrected by then; the last may be open
    people: the numbers of those who answered, in the order of their first answers
    said: what each of them has answered, and taken back: sides, credit, times
    out: those who are excluded by now
    made_here: all so far was made with this arithmetic, as the log says
    elsewhere: some of all was made with another; earlier versions do not say
    parted: where first something came out otherwise than recorded
    rounded: the arrays of some plan did
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
        self.made_here = True
        self.parted = ""
        self.rounded = False
        arithmetics = [e.content.get("arithmetic") for e in history.events if self._computes(e)]
        self.elsewhere = any(one not in (None, fingerprint()) for one in arithmetics)

    def _computes(self, event: Event) -> bool:
        """Whether something was computed then: a first sitting, a plan, the next list."""
        if event.kind == "observed":
            return self.config.world == "observed"
        return event.kind in ("made", "planned")

    def take(self, event: Event) -> None:
        if self._computes(event):
            self.made_here &= event.content.get("arithmetic") == fingerprint()
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
            said = f"episode, epoch, duel {shown.place}: something else would be asked"
            if not 0 <= number < len(asked):
                raise ReplayError(said)
            # Where a study was moved, what nobody had been asked yet was chosen anew.
            self._part(said, self.made_here and not self.elsewhere)

    def _part(self, said: str, exact: bool) -> None:
        """Something comes out otherwise than recorded."""
        if exact:
            raise ReplayError(said)
        self.parted = self.parted or said

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
        # If nothing was rounded, the list, or what was asked, is not what the plans say.
        if self.parted and self.history.plans and not (self.rounded or self.elsewhere):
            raise ReplayError(self.parted)

    def _plan(self) -> None:
        made = next(self.plans, None)
        if made is None:
            raise ReplayError("plans.csv: the log has more plans")
        states = coming_states(self.config, self.moves, self.planned_with)
        adapt(self.learner, self.config)
        self.learner.replan()
        self.planned_with = self.config
        self._compare_plan(made)
        for epoch in first_epochs(self.config, self.learner, states, self.moves, self._open):
            move = self.opened
            if epoch.next_states is not None and epoch.next_states.tolist() != _listed(move):
                raise ReplayError(
                    f"{_where(move)}: the simulated world moves otherwise than recorded"
                )

    def _compare_plan(self, made: PlanMade) -> None:
        """Its arrays come out as recorded; those of the last, where rounded, are then taken."""
        arrays, recorded = plan_arrays(self.learner), self.history.arrays
        if made.digest in (None, digest(arrays)):
            return
        said = f"plan {made.plan} comes out differently: its arrays are not those recorded"
        self._part(said, self.made_here)
        self.rounded = True
        if made.plan == self.history.episode and recorded is not None:
            if not agree(arrays, recorded):
                raise ReplayError(self.parted)
            self.learner.restore(self.learner.state() | recorded)

    def _open(self, epoch: Epoch) -> Epoch:
        """Take an epoch up; given back with the list that was recorded."""
        move = next(self.recorded, None)
        if move is None:
            raise ReplayError("transitions.csv: by the log there are more epochs")
        self.opened = move
        if not np.array_equal(epoch.states, move.states):
            raise ReplayError(f"{_where(move)}: the states are not those recorded")
        exact = self.made_here or not self._could_be(move, epoch)
        if not np.array_equal(epoch.arms, move.arms):
            self._part(f"{_where(move)}: the plan helps other arms than those recorded", exact)
            duels = self.learner.duels(move.states, move.arms, move.epoch)
            epoch = replace(epoch, arms=move.arms, duels=duels)
        if not np.array_equal(epoch.by_lot, move.by_lot):
            self._part(f"{_where(move)}: lots fall on other arms than those recorded", exact)
        self.asked[move.episode, move.epoch] = epoch.duels
        if self.config.world == "observed":
            move = replace(move, next_states=None, helped=None)
        self.moves.append(move)
        return epoch

    def _could_be(self, move: Move, epoch: Epoch) -> bool:
        """Whether a list is one of as many people who are there, with as many places by lot."""
        arms, lots = set(move.arms.tolist()), set(move.by_lot.tolist())
        here = set(np.flatnonzero(self.learner.present).tolist())
        sizes = [len(arms), len(move.arms), len(lots), len(move.by_lot)]
        wanted = 2 * [len(epoch.arms)] + 2 * [len(epoch.by_lot)]
        return lots <= arms <= here and sizes == wanted

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


def _where(move: Move) -> str:
    return f"episode {move.episode} epoch {move.epoch}"


def _listed(move: Move) -> list[int]:
    return [] if move.next_states is None else move.next_states.tolist()
