"""A study log played again, and compared with what was recorded.

Chain, counts, corrections and who may be on a list are always checked. A plan is a recorded fact:
it is computed again, to the bit, where the log says that the present maths and the arithmetic of
this machine made it. Elsewhere, and where names and columns were removed since, replay follows the
record.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.reproducibility import MATHS, fingerprint
from dopl_core.studies.model import rules
from dopl_core.studies.model.errors import ReplayError
from dopl_core.studies.model.event_bodies import (
    NAMES_REMOVED,
    Computed,
    FirstRoundDrawn,
    ListChanged,
    Observed,
    Planned,
)
from dopl_core.studies.model.event_kinds import apply, body_of, in_plan_order
from dopl_core.studies.model.factories import world_of
from dopl_core.studies.model.log_values import Epoch, PlanMade, Shown, week_of
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.model.progress import Progress, Watch
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.replay.episode import (
    change_list,
    first_round_duels,
    in_line,
    open_epoch,
    restore_plan,
)
from dopl_core.studies.replay.known_states import coming_states
from dopl_core.studies.store.blobs import digest
from dopl_core.world import SimulatedWorld

_ELSEWHERE = "were made by another version of dopl or on other hardware"
_REMOVED = "were made before names and columns were removed"
_ERASED = "were made before people were erased"
TO_THE_BIT = "Everything is reproduced to the bit."


def replay(log: StudyLog, tell: Callable[[str], None] = lambda how: None) -> Learner:
    """The learner, computed from the configuration, the answers and the reports.

    tell: is told how far plans were computed again
    """
    watch = _Recompute(log)
    progress = Progress(log.config, log.epochs, log.impressions, watch)
    for number, event in in_plan_order(log.events):
        watch.erased = number < log.people_erased
        watch.limits_erased = number < log.annotators_erased
        try:
            apply(progress, event)
        except ReplayError:
            raise
        except ValueError as error:  # refused by the learner or the configuration
            raise ReplayError(f"events.csv row {number + 1}: {error}") from None
    progress.count()
    watch.check_complete(progress)
    tell(f"{watch.summary()}{_erasures(log)}")
    return progress.learner


def _erasures(log: StudyLog) -> str:
    """What was erased, and when."""
    said = [
        f"{body.name or body.what} on {datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}"
        for _, at, body in log.erasures
    ]
    return f" Personal data were erased: {', '.join(said)}." if said else ""


def with_arrays(log: StudyLog) -> StudyLog:
    """The log with what its learner held after the last plan, computed where that is lost."""
    if log.arrays is not None or not log.plans:
        return log
    arrays = replay(log).plan_state()
    last = replace(log.plans[-1], digest=digest(arrays))
    return replace(log, arrays=arrays, plans=[*log.plans[:-1], last])


def is_present(body: Computed) -> bool:
    """Whether the present maths and the arithmetic of this machine computed it."""
    return body.maths == MATHS and body.arithmetic == fingerprint()


class _Recompute(Watch):
    """Computes plans, lists and duels again, where that can be to the bit.

    asked: by episode and epoch, the duels [D, 4]; only where they were computed again
    exact: the present plan was computed again here
    erased: the present event came before people were erased, whose columns plans may have used
    limits_erased: it came before an annotator was erased, whose limit pairs may have respected
    followed: how many plans were taken from the record, by the reason
    """

    def __init__(self, log: StudyLog) -> None:
        self.log = log
        self.asked: dict[tuple[int, int], IntArray] = {}
        self.exact = False
        self.erased = self.limits_erased = False
        self.followed = dict.fromkeys((_ELSEWHERE, _REMOVED, _ERASED), 0)
        self.world: SimulatedWorld | None = None
        first = log.events[0] if log.events else None
        limits_kept = not (log.config.limited_pairs and log.annotators_erased)
        kept = log.config.sitting and not log.people_erased and limits_kept
        if kept and first and first.kind == "made" and is_present(body_of(first)):
            self.asked[0, 0] = first_round_duels(log.config)

    def first_round(self, progress: Progress, body: FirstRoundDrawn) -> None:
        before = self.asked.pop((0, 0), None)
        kept = not self.erased and not (progress.config.limited_pairs and self.limits_erased)
        if before is not None and kept and is_present(body):
            drawn = first_round_duels(progress.config)
            self.asked[0, 0] = np.concatenate([before[: body.first_duel], drawn])

    def planned(self, progress: Progress, body: Planned) -> None:
        number = progress.learner.episode + 1
        if number > len(self.log.plans):
            raise ReplayError("plans.csv: the log has more plans")
        states = coming_states(progress.config, progress.epochs, progress.planned_with)
        self.exact = is_present(body) and not self.erased
        if self.exact:
            self._plan(progress.learner, body, self.log.plans[number - 1])
        else:
            removed = _REMOVED if body.arithmetic == NAMES_REMOVED else _ELSEWHERE
            self.followed[_ERASED if self.erased else removed] += 1
            self._follow(progress.learner, number)
        self.expected_states = states
        if progress.config.world == "simulated":
            self.world = world_of(progress.config)
            self.world.states = states
            self.world.begin(number, progress.learner.horizon)

    def _plan(self, learner: Learner, body: Planned, made: PlanMade) -> None:
        if body.cold:
            learner.forget_plan()
        learner.replan()
        if made.digest not in (None, digest(learner.plan_state())):
            raise ReplayError(f"plan {made.plan} is not reproduced: its arrays differ")

    def _follow(self, learner: Learner, number: int) -> None:
        """Take the plan from the record, as far as it is there: the last plan keeps its arrays."""
        learner.forget_plan()
        if number < self.log.episode:
            learner.episode = number
        elif self.log.arrays is None:
            learner.replan()  # lost, so made by the present maths
        else:
            restore_plan(learner, self.log.arrays)
            if learner.episode != number:
                raise ReplayError("arrays.npz: not of the last plan in plans.csv")

    def opened(self, progress: Progress, epoch: Epoch) -> None:
        if not np.array_equal(self.expected_states, epoch.states):
            raise ReplayError(f"{epoch}: the states are not those reported before")
        self._check_list(progress, epoch)
        if not self.exact:
            return
        config = progress.planned_with or progress.config
        made = open_epoch(config, progress.learner, epoch.states, epoch.epoch, progress.epochs)
        if not np.array_equal(made.arms, epoch.arms):
            raise ReplayError(f"{epoch}: the plan helps other arms than those recorded")
        if not np.array_equal(made.by_lot, epoch.by_lot):
            raise ReplayError(f"{epoch}: other places are drawn at random than those recorded")
        assert made.duels is not None  # noqa: S101
        if not (config.limited_pairs and self.limits_erased):
            self.asked[epoch.episode, epoch.epoch] = made.duels

    def _check_list(self, progress: Progress, epoch: Epoch) -> None:
        """A list has B different arms that may be on it, and as many by lot as it should.

        Older versions drew nobody to wait: places by lot were those that the plan left open.
        """
        config = progress.planned_with or progress.config
        arms, by_lot = set(epoch.arms.tolist()), set(epoch.by_lot.tolist())
        eligible = rules.eligible(config, progress.epochs)
        may = np.flatnonzero(config.present if eligible is None else config.present & eligible)
        places = min(config.budget, len(may))
        sizes = (len(arms), len(epoch.arms), len(epoch.by_lot))
        if not arms | by_lot <= set(may.tolist()) or sizes != (places, places, len(by_lot)):
            raise ReplayError(
                f"{epoch}: the list is not {places} arms that are present and eligible"
            )
        drawn, waiting = len(by_lot & arms), len(by_lot - arms)
        before = max(0, places - (config.budget - config.by_lot))
        most = min(config.by_lot, len(may) - places)
        exchanged = drawn == waiting and (drawn == most or (config.fair_column and drawn < most))
        if not exchanged and (drawn, waiting) != (before, 0):
            raise ReplayError(f"{epoch}: not as many places are drawn at random as there should be")

    def list_changed(self, progress: Progress, epoch: Epoch, body: ListChanged) -> None:
        """Whom the owner named is as it should be; who moves up is computed where lists are.

        In older versions people who had left since could move up.
        """
        before, config = progress.epochs[-1], progress.planned_with or progress.config
        removed, added = ({config.arm_number(i) for i in ids} for ids in (body.removed, body.added))
        listed, after = set(before.listed.tolist()), set(epoch.listed.tolist())
        here = set(np.flatnonzero(config.present).tolist())
        if not removed <= listed or added & listed or removed & after or not added <= after <= here:
            raise ReplayError(f"{epoch}: the owner's change does not fit the list")
        if self.exact:
            line = in_line(config, progress.learner, before, progress.epochs[:-1])
            gone = np.flatnonzero(~progress.config.present).tolist()
            lists = [change_list(before, line, removed, added, out) for out in (gone, [])]
            if not any(np.array_equal(some, epoch.listed) for some in lists):
                raise ReplayError(f"{epoch}: other people move up than those recorded")

    def reported(self, progress: Progress, epoch: Epoch, body: Observed) -> None:
        assert epoch.next_states is not None  # noqa: S101
        self.expected_states = epoch.next_states
        if self.world is not None:
            if not np.array_equal(self.world.step(epoch.arms), epoch.next_states):
                raise ReplayError(f"{epoch}: the simulated world moves otherwise than recorded")
        else:  # the next list was made then, with the arithmetic of that machine
            known = progress.learner.plan is not None
            self.exact = known and is_present(body) and not self.erased

    def answered(self, progress: Progress, shown: Shown) -> None:
        self._check_asked(shown)

    def _check_asked(self, shown: Shown) -> None:
        episode, epoch, number = shown.place
        asked = self.asked.get((episode, epoch))
        if asked is None or self.log.was_undone(shown.place):
            return
        number -= self.log.first_duels.get(week_of(self.log.config, episode, epoch), 0)
        if asked[number : number + 1].tolist() != [list(shown.sides)]:
            raise ReplayError(f"episode, epoch, duel {shown.place}: another pair would be asked")

    def check_complete(self, progress: Progress) -> None:
        """Everything recorded was reached by the log, and was asked."""
        recorded, played = self.log.epochs, progress.epochs
        reported = [sum(e.next_states is not None for e in some) for some in (recorded, played)]
        if len(recorded) != len(played) or reported[0] != reported[1]:
            raise ReplayError(
                f"transitions.csv has {len(recorded)} epochs, {reported[0]} of them reported; the "
                f"log has {len(played)}, {reported[1]} of them reported"
            )
        for shown in (*self.log.impressions, *(self.log.queue or ())):
            if shown.purpose in LEARNT:
                self._check_asked(shown)

    def summary(self) -> str:
        if not any(self.followed.values()):
            return TO_THE_BIT
        of = f"of {len(self.log.plans)} plans"
        said = " and ".join(f"{many} {of} {why}" for why, many in self.followed.items() if many)
        return f"{said}: replay follows the record there. All else is reproduced."
