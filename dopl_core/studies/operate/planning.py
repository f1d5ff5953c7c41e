"""Making plans: when one is due, who makes it, and what it opens."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dopl_core.learning.bandit import IntArray
from dopl_core.learning.learner import Learner
from dopl_core.learning.reproducibility import MATHS, fingerprint
from dopl_core.studies.collect import duels
from dopl_core.studies.model.event_bodies import DuelsClosed, Listed, Observed, Planned
from dopl_core.studies.model.event_kinds import EFFECTIVE, SAID, body_of
from dopl_core.studies.model.log_values import Epoch, PlanMade
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.operate import help_lists
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.replay.episode import Episode, begin, open_epoch, places_by_answers
from dopl_core.studies.replay.known_states import coming_states
from dopl_core.studies.replay.replay import is_present
from dopl_core.studies.store import about, inserts, queries, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import StudyReader, read_study
from dopl_core.studies.store.time_limits import slowly
from dopl_core.studies.store.transaction import StudyTransaction, write_study

STEP_LIMIT = 300.0  # seconds without progress after which a plan counts as hung


def close_duels(store: Store, study: str) -> bool:
    """Wait no longer for the answers that are missing; whether a plan is now due."""
    with write_study(store, study) as tx:
        if tx.row.given < tx.row.asked:
            tx.append("duels_closed", DuelsClosed(withdraw(tx, sa.true())))
        return tx.plan_due


@slowly()
def advance(store: Store, study: str, *, tell: Callable[[str], None] = lambda step: None) -> bool:
    """Make the plan that is due, and open its epoch; whether this call did it.

    The first caller makes it, the others return at once. The plan is made outside any transaction
    and written with its duels in one. When a process dies or hangs on the way, the next caller
    takes over after its lease.
    tell: is told each step of the plan
    """
    me = secrets.token_hex(8)
    while True:
        with write_study(store, study) as tx:
            if not tx.plan_due or tx.planning(duels.PLANNER_LEASE) or tx.row.status == "closed":
                return False
            tx.row.planner, tx.row.planner_until = me, tx.now + int(1000 * duels.PLANNER_LEASE)
        with _lease(store, study, me) as go_on:

            def told(step: str) -> None:
                go_on(step)
                tell(step)

            made = _make_plan(store, study, told)
        with write_study(store, study) as tx:
            # The first plan that still holds is taken, no matter who had the lease.
            if tx.plan_due and tx.row.status != "closed" and _still_holds(tx, made):
                commit_plan(tx, made)
                tx.row.planner = tx.row.planner_until = tx.row.planner_step = None
                return True
        # An answer was taken back meanwhile, or another process was faster: look again.


@dataclass(frozen=True, eq=False)
class MadePlan:
    """A plan that is not written yet, made from the log up to event `seq`.

    cold: the plan before was made with other maths or on another machine
    epochs: those before it, as corrected by then
    by_answers: how many places of its list the answers since the last plan changed, if known
    """

    episode: Episode
    row: inserts.Row
    seq: int
    cold: bool = False
    epochs: Sequence[Epoch] = ()
    by_answers: int | None = None


def _make_plan(store: Store, study: str, tell: Callable[[str], None]) -> MadePlan:
    """The next plan from the log as it is."""
    with read_study(store, study) as reader:
        progress = learner_from_log.progress_now(reader)
        learner = progress.learner
        config, epochs, seq = reader.next_config, reader.epochs, reader.row.seq
        before = reader.config if reader.row.episode else None
        cold = before is not None and not _made_here(reader)
        answered = not cold and round(learner.counts.total()) != _answers_before(reader)
    learner.tell = tell
    states = coming_states(config, epochs, before)
    episode = begin(config, learner, states, epochs, cold=cold, count=progress.count)
    by_answers = None
    if answered and config.world == "observed":
        by_answers = places_by_answers(config, learner, episode.epochs[0], epochs)
    return MadePlan(episode, plan_row(episode), seq, cold, epochs, by_answers)


def _answers_before(reader: StudyReader) -> int:
    """How many answers the last plan was made with."""
    p = tables.plans.c
    query = sa.select(p.answers).where(p.study == reader.id, p.plan == reader.row.episode)
    return reader.connection.execute(query).scalar() or 0


def _made_here(reader: StudyReader) -> bool:
    """Whether the present maths, on this machine, made the last plan from what is still known."""
    seq, last = reader.standing("planned")[-1]
    later = (body_of(event) for _, event in reader.standing("erased", after=seq))
    return is_present(body_of(last)) and all(one.what == "annotator" for one in later)


def _still_holds(tx: StudyTransaction, made: MadePlan) -> bool:
    """Whether nothing has happened since that the plan should know.

    In an observed world the list does not wait for answers: late ones count in the next plan.
    """
    if made.row["plan"] != tx.row.episode + 1:
        return False
    late = SAID if tx.config.world == "observed" and tx.row.episode else ()
    kinds = [kind for kind in EFFECTIVE if kind not in late]
    e = tables.events.c
    since = sa.select(e.seq).where(e.study == tx.id, e.seq > made.seq, e.kind.in_(kinds))
    return tx.connection.execute(since.limit(1)).first() is None


@contextmanager
def _lease(store: Store, study: str, me: str) -> Iterator[Callable[[str], None]]:
    """Keep the right to plan for as long as the block makes progress, and give it back.

    The block gets a function to tell its steps to; everybody can see the last step.
    """
    done = threading.Event()
    steps, at = [""], [time.monotonic()]

    def go_on(step: str) -> None:
        steps.append(step)
        at.append(time.monotonic())

    def renew() -> None:
        while not done.wait(duels.PLANNER_LEASE / 3) and time.monotonic() - at[-1] < STEP_LIMIT:
            with suppress(ValueError, IntegrityError), write_study(store, study) as tx:
                if tx.row.planner == me:
                    tx.row.planner_until = tx.now + int(1000 * duels.PLANNER_LEASE)
                    tx.row.planner_step = steps[-1]

    keeper = threading.Thread(target=renew, daemon=True)
    keeper.start()
    try:
        yield go_on
    finally:
        done.set()
        keeper.join()
        with write_study(store, study) as tx:
            if tx.row.planner == me:
                tx.row.planner = tx.row.planner_until = tx.row.planner_step = None


def plan_row(episode: Episode) -> inserts.Row:
    """The row of a plan; packing its arrays takes a while and needs no database."""
    return inserts.plan(
        episode.learner,
        random_value=episode.random_value,
        changed=episode.changed,
        seconds=episode.seconds,
    )


def commit_plan(tx: StudyTransaction, made: MadePlan) -> None:
    """Write a plan, its epochs and its duels, and begin its episode."""
    plan, learner = made.row, made.episode.learner
    p = tables.plans.c
    old = tx.row.episode - (tx.config.world == "observed")  # a report may be undone
    where = sa.and_(p.study == tx.id, p.plan == old)
    tx.connection.execute(sa.update(tables.plans).where(where).values(arrays=None))
    inserts.insert(tx.connection, tables.plans, [plan | {"study": tx.id, "made_at": tx.now}])
    row = tx.row
    row.episode, row.epoch, row.asked, row.given = plan["plan"], 0, 0, 0
    row.in_force, row.in_force_chain = row.changes, row.changes_chain
    body = Planned(
        plan=plan["plan"],
        engine=plan["engine"],
        heard=made.seq,
        cold=made.cold,
        maths=MATHS,
        arithmetic=fingerprint(),
        about=about.of_plan(_made(plan | {"made_at": tx.now})),
    )
    tx.append("planned", body)
    learner_from_log.save_snapshot(tx, learner, made.seq)
    _open_epochs(tx, learner, made.episode.epochs, made.epochs, made.by_answers)


def _made(row: inserts.Row) -> PlanMade:
    return PlanMade(**{name: value for name, value in row.items() if name != "arrays"})


def _open_epochs(
    tx: StudyTransaction,
    learner: Learner,
    opened: list[Epoch],
    before: Sequence[Epoch],
    by_answers: int | None = None,
) -> None:
    """Ask the duels of epochs; a simulated world has moved through them already."""
    inserts.insert(tx.connection, tables.epochs, [inserts.epoch(tx.id, e) for e in opened])
    for epoch in opened:
        assert epoch.duels is not None  # noqa: S101
        place = (epoch.episode, epoch.epoch)
        first = _first_free(tx, place)
        tx.row.asked += ask(tx, place, epoch.duels, "policy", first)
        if epoch.next_states is None:
            # Later in an episode the learner has its plan only, so its moves come from the log.
            seen = learner_from_log.learner_now(tx) if epoch.epoch else learner
            entries = help_lists.reasons(tx.config, learner, epoch, before, seen.visits)
            empty = tx.config.budget - len(epoch.arms)
            about_it = about.of_list(epoch)
            tx.append("listed", Listed(tx.week, entries, empty, by_answers, about_it, first))
        else:
            _append_observed(tx, "simulated", epoch)


def _first_free(tx: StudyTransaction, place: tuple[int, int]) -> int:
    """The first free number of a duel in an epoch; not 0 after a report that was undone."""
    d = tables.duels.c
    here = sa.and_(d.study == tx.id, d.episode == place[0], d.epoch == place[1])
    last = tx.connection.execute(sa.select(sa.func.max(d.number)).where(here)).scalar()
    return 0 if last is None else last + 1


def ask(
    tx: StudyTransaction, place: tuple[int, int], pairs: IntArray, purpose: str, first: int = 0
) -> int:
    """Put duels [D, 4] into the queue, numbered from `first`; how many answers they ask for."""
    asked = [
        inserts.duel(tx.id, (*place, number), purpose, sides, tx.config.ratings)
        for number, sides in enumerate(pairs.tolist(), start=first)
    ]
    inserts.insert(tx.connection, tables.duels, asked)
    return sum(row["ratings"] for row in asked)


def move_on(
    tx: StudyTransaction,
    next_states: IntArray,
    helped: IntArray | None,
    fresh: Mapping[str, Mapping[str, str]],
    digest: str,
) -> None:
    """Close the epoch with what the owner reported, and open the next one of the episode."""
    known = dict(tx.reported_columns(tx.row.episode, tx.row.epoch))
    known |= {arm: known.get(arm, {}) | dict(new) for arm, new in fresh.items()}
    e = tables.epochs.c
    here = sa.and_(e.study == tx.id, e.episode == tx.row.episode, e.epoch == tx.row.epoch)
    epoch = tx.present_epoch()
    helped = epoch.listed if helped is None else helped
    if np.array_equal(helped, epoch.arms):
        helped = None
    report = inserts.report(next_states, "owner", known if fresh else None, helped)
    tx.connection.execute(sa.update(tables.epochs).where(here).values(report))
    _append_observed(tx, "owner", tx.present_epoch(), digest)
    if tx.row.epoch < tx.config.horizon:
        learner, before = learner_from_log.planned(tx), tx.epochs
        tx.row.asked, tx.row.given = tx.row.asked - tx.row.given, 0
        opened = open_epoch(tx.config, learner, next_states, tx.row.epoch, before)
        _open_epochs(tx, learner, [replace(opened, episode=tx.row.episode)], before)


def _append_observed(
    tx: StudyTransaction, source: Literal["simulated", "owner"], epoch: Epoch, digest: str = ""
) -> None:
    body = Observed(episode=tx.row.episode, epoch=tx.row.epoch, source=source, report=digest)
    if source == "owner":  # the next list of the episode is made at once
        body.maths, body.arithmetic = MATHS, fingerprint()
    body.about = about.of_report(epoch)
    tx.append("observed", body)
    tx.row.epoch += 1


def withdraw(tx: StudyTransaction, which: sa.ColumnElement[bool]) -> int:
    """Stop asking open duels of the present episode; how many answers that saves."""
    d = tables.duels.c
    missing = sa.and_(
        d.study == tx.id,
        d.episode == tx.row.episode,
        d.purpose.in_(LEARNT),
        d.given < d.ratings,
        which,
    )
    ids = tx.connection.execute(sa.select(d.id).where(missing)).scalars().all()
    for duel in ids:
        duels.release(tx, queries.HELD_BY_OTHERS, duel=duel, impression=0)
    saved = sa.select(sa.func.coalesce(sa.func.sum(d.ratings - d.given), 0)).where(missing)
    count = int(tx.connection.execute(saved).scalar_one())
    values = {"ratings": d.given, "free": 0}
    tx.connection.execute(sa.update(tables.duels).where(missing).values(values))
    tx.row.asked -= count
    return count
