"""Rehearsals: simulated annotators answer a study through the real service, to try it out.

They think, make mistakes and walk away. In a simulated world they answer by its true rewards. In an
observed one the better state is more likely to win, and the owner's reports are simulated too.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import sqlalchemy as sa

from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.streams import Stream, generator
from dopl_core.studies.collect import duels, my_answers
from dopl_core.studies.collect.views import Ask, Consent, Finished, Receipt, Waiting
from dopl_core.studies.model.errors import LockedError, StudyError
from dopl_core.studies.model.study_config import StudyConfig, bandit_of
from dopl_core.studies.operate import lifecycle, planning, present, reports
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.world import bradley_terry

NAME = "rehearsal"  # the annotators are named rehearsal 1, rehearsal 2, ...

_POLL = 0.01, 0.2  # least and most seconds between polls while there is nothing to answer


@dataclass(frozen=True)
class Habits:
    """How simulated annotators behave; shares are of the duels shown to them.

    think_seconds: mean time to an answer, 0 for full speed
    slips: share answered at random;  skips, ties: share skipped, or tied where allowed
    walk_aways: share left unanswered until the lease expires
    """

    think_seconds: float = 0.0
    slips: float = 0.05
    skips: float = 0.02
    ties: float = 0.0
    walk_aways: float = 0.0

    def __post_init__(self) -> None:
        if not self.think_seconds >= 0:
            raise StudyError(f"think_seconds is {self.think_seconds}: it must be 0 or more")
        for what in ("slips", "skips", "ties", "walk_aways"):
            if not 0 <= getattr(self, what) <= 1:
                raise StudyError(f"{what} is {getattr(self, what)}: it must be a share from 0 to 1")


@dataclass
class Rehearsal:
    """Counts and times of a rehearsal.

    answers: acknowledged, practice and repeats included;  statuses: counts by receipt status
    plans: plans made;  click_seconds: answer plus next_duel, one entry a click
    """

    answers: int = 0
    plans: int = 0
    walk_aways: int = 0
    reports: int = 0
    seconds: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    click_seconds: list[float] = field(default_factory=list)


def rehearse(
    store: Store,
    study: str,
    *,
    annotators: int = 8,
    answers: int = 500,
    habits: Habits | None = None,
    seed: int = 0,
    on_answer: Callable[[int, str], None] | None = None,
    first: int = 1,
) -> Rehearsal:
    """Simulate annotators until `answers` answers are acknowledged or nothing is left to ask.

    on_answer: called with each acknowledged (impression, outcome) from the annotators' threads
    first: number of the first annotator, so that several processes can rehearse one study
    """
    if annotators < 1 or answers < 1:
        raise StudyError("a rehearsal needs at least one annotator and one answer")
    config = lifecycle.get_study(store, study).config
    crew = _Crew(store, study, config, answers, habits or Habits(), seed, on_answer)
    threads = [
        threading.Thread(target=crew.run, args=(number,), daemon=True)
        for number in range(first, first + annotators)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    crew.done.seconds = time.perf_counter() - started
    if crew.failure is not None:
        raise crew.failure
    return crew.done


def people_in(store: Store, study: str) -> list[str]:
    """Names of the real people who have answered, without simulated annotators."""
    a = tables.annotators.c
    query = sa.select(a.name).where(a.study == study, a.answers > 0).order_by(a.name)
    with store.read() as connection:
        names = connection.execute(query).scalars().all()
    return [name for name in names if not name.startswith(f"{NAME} ")]


class _Crew:
    """The simulated annotators of one rehearsal and what their threads share."""

    def __init__(
        self,
        store: Store,
        study: str,
        config: StudyConfig,
        answers: int,
        habits: Habits,
        seed: int,
        on_answer: Callable[[int, str], None] | None,
    ) -> None:
        self.store, self.study, self.config, self.habits = store, study, config, habits
        self.seed, self.on_answer = seed, on_answer
        self.rewards = _true_rewards(config)
        self.left = answers  # answers still to give
        self.done = Rehearsal()
        self.failure: Exception | None = None
        self.lock = threading.Lock()
        self.moved = time.monotonic()  # time of the last progress

    def run(self, number: int) -> None:
        """Be one annotator, in a thread of its own."""
        rng = generator(Stream.REHEARSAL, self.seed, number)
        name = f"{NAME} {number}"
        rest = _POLL[0]
        try:
            while self.failure is None and (busy := self._step(name, rng)) is not None:
                rest = _POLL[0] if busy else min(2 * rest, _POLL[1])
                if not busy:
                    time.sleep(rest)
        except Exception as error:  # raised again in the thread that started the rehearsal
            self.failure = error

    def _step(self, name: str, rng: np.random.Generator) -> bool | None:
        """One poll of the study: whether there was something to do; None at the end."""
        with self.lock:
            if self.left <= 0:
                return None
        started = time.perf_counter()
        try:
            found = duels.next_duel(self.store, self.study, name)
        except LockedError:  # a person would look again, too
            return False
        looked = time.perf_counter() - started
        if isinstance(found, Finished):
            return None
        if isinstance(found, Waiting):
            return self._wait(found, rng)
        if isinstance(found, Consent):
            my_answers.agree(self.store, self.study, name, found.version)
            return True
        if rng.random() < self.habits.walk_aways:
            with self.lock:
                self.done.walk_aways += 1
            time.sleep(1.2 * self.config.lease_seconds)
            return True
        thought = rng.exponential(self.habits.think_seconds) if self.habits.think_seconds else 0.0
        time.sleep(thought)
        with self.lock:
            if self.left <= 0:
                return None
            self.left -= 1
        outcome = self._choose(found, rng)
        started = time.perf_counter()
        took = int(1000 * thought)
        try:
            receipt = duels.answer(
                self.store, found.impression, outcome, response_ms=took, too_fast_ms=0
            )
        except LockedError:  # not saved: the same duel is shown again
            with self.lock:
                self.left += 1
            return False
        self._note(found, outcome, receipt, looked + time.perf_counter() - started)
        if receipt.plan_due:
            self._advance()
        return True

    def _note(self, ask: Ask, outcome: str, receipt: Receipt, seconds: float) -> None:
        if receipt.saved and self.on_answer is not None:
            self.on_answer(ask.impression, outcome)
        with self.lock:
            self.moved = time.monotonic()
            done = self.done
            done.answers += receipt.saved
            done.statuses[receipt.status] = done.statuses.get(receipt.status, 0) + 1
            done.click_seconds.append(seconds)
            self.left += not receipt.saved

    def _wait(self, waiting: Waiting, rng: np.random.Generator) -> bool | None:
        if waiting.plan_due:
            return self._advance()
        if waiting.reason == "owner":
            return self._report(rng)
        # All may wait for an annotator who does not exist, as when ratings outnumber annotators.
        stuck = time.monotonic() - self.moved > 2 * self.config.lease_seconds + 1
        over = waiting.reason == "paused" or (waiting.reason == "others" and stuck)
        return None if over else False

    def _advance(self) -> bool:
        made = planning.advance(self.store, self.study)
        with self.lock:
            self.done.plans += made
            self.moved = time.monotonic()
        return made

    def _report(self, rng: np.random.Generator) -> bool:
        """Report simulated moves; help makes a better state more likely."""
        with self.lock:
            now = lifecycle.get_study(self.store, self.study)
            if now.waits_for != "owner" or now.given < now.asked:
                return False
            helped = {row.arm for row in present.epoch_list(self.store, self.study)}
            labels = [state.label for state in self.config.states]
            reported: dict[str, str | None] = {}
            for arm, state in present.present_states(self.store, self.study).items():
                up, luck = 0.6 if arm in helped else 0.3, rng.random()
                step = 1 if luck < up else -1 if luck > 0.8 else 0
                position = labels.index(state or labels[0]) + step
                reported[arm] = labels[min(max(position, 0), len(labels) - 1)]
            reports.observe(self.store, self.study, reported)
            self.done.reports += 1
            self.moved = time.monotonic()
            return True

    def _choose(self, ask: Ask, rng: np.random.Generator) -> str:
        habits, luck = self.habits, rng.random()
        if luck < habits.skips:
            return "skip"
        if luck < habits.skips + habits.ties and self.config.ties_allowed:
            return "tie"
        left, right = ask.left, ask.right
        gap = (
            self.rewards[left.number, left.state_number]
            - self.rewards[right.number, right.state_number]
        )
        chance = 0.5 if rng.random() < habits.slips else float(bradley_terry(gap))
        return "left" if rng.random() < chance else "right"


def _true_rewards(config: StudyConfig) -> FloatArray:
    """The reward [N, S] of each arm-state that the simulated annotators answer by."""
    if config.world == "simulated":
        return bandit_of(config).rewards
    ladder = np.linspace(0.0, 1.0, config.n_states)
    return np.broadcast_to(ladder, (config.n_arms, config.n_states))
