"""Undoing the latest report: its week is open again, with the list that it had."""

from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from dopl_core.studies.model.config_changes import CHANGES, changed
from dopl_core.studies.model.config_json import read_arms
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import ReportUndone
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.outcomes import LEARNT
from dopl_core.studies.operate.drafts import discard_draft
from dopl_core.studies.operate.last_report import LastReport, read_last_report
from dopl_core.studies.operate.planning import withdraw
from dopl_core.studies.operate.roster_changes import withdraw_people
from dopl_core.studies.replay.learner_from_log import keep_plan
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.transaction import StudyTransaction, write_study

_d, _e, _i = tables.duels.c, tables.events.c, tables.impressions.c


def undo_report(store: Store, study: str, week: int) -> None:
    """Take back the latest report, which is of this week: as if it had never been sent.

    What was reported does not count any more, nor do the plan, the list and the changes of the list
    that followed, nor corrections of this week. The list of the week is back as it was. Answers
    given since count in the next plan. People who came or left and settings stay changed.
    """
    with write_study(store, study) as tx:
        last = _check(tx, week)
        _remove_later(tx, last.place)
        before = _newcomers_before(tx, last.seq)
        tx.append("report_undone", ReportUndone(last.week, last.seq, before))
        _reopen(tx, last.place)
        discard_draft(tx.connection, study)
    keep_plan(store, study)


def _check(tx: StudyTransaction, week: int) -> LastReport:
    word = tx.config.epoch_word
    if tx.config.world != "observed":
        raise StudyError(f'study "{tx.id}" has a simulated world: it has no reports to undo')
    if tx.row.status == "closed":
        raise StudyError(f'study "{tx.id}" is closed: reopen it to undo a report')
    last = read_last_report(tx)
    if last is None:
        raise StudyError(f'study "{tx.id}" has no report to undo')
    latest = f"{word} {last.week}"
    if week > last.week:
        raise StudyError(f"{word} {week} has no report: the latest report is of {latest}")
    if week < last.week:
        raise StudyError(
            f"only the latest report can be undone, which is of {latest}: correct the report of "
            f"{word} {week}, or undo the later ones first"
        )
    return last


def _remove_later(tx: StudyTransaction, place: tuple[int, int]) -> None:
    """Remove the report of an epoch, and the plan and the list that followed.

    Duels that somebody was shown stay, with their answers.
    """
    e, p = tables.epochs.c, tables.plans.c
    later = sa.tuple_(_d.episode, _d.epoch) > sa.tuple_(*place)
    withdraw(tx, later)
    shown = sa.exists().where(_i.duel == _d.id)
    unseen = sa.and_(_d.study == tx.id, later, _d.purpose.in_(LEARNT), ~shown)
    tx.connection.execute(sa.delete(tables.duels).where(unseen))
    opened = sa.tuple_(e.episode, e.epoch) > sa.tuple_(*place)
    tx.connection.execute(sa.delete(tables.epochs).where(e.study == tx.id, opened))
    here = sa.and_(e.study == tx.id, e.episode == place[0], e.epoch == place[1])
    nothing = inserts.report(None, None, None, None)
    tx.connection.execute(sa.update(tables.epochs).where(here).values(nothing))
    tx.connection.execute(sa.delete(tables.plans).where(p.study == tx.id, p.plan > place[0]))
    # A snapshot may count answers about people whom the plan before does not know.
    tx.connection.execute(sa.delete(tables.snapshots).where(tables.snapshots.c.study == tx.id))


def _newcomers_before(tx: StudyTransaction, seq: int) -> list[dict[str, Any]]:
    """Newcomers whose states the report at event `seq` said, as they were before it.

    The event by which it says so comes right after it, or after the next list of its episode.
    """
    count = sa.select(sa.func.count()).where(_e.study == tx.id, _e.kind.in_(CHANGES), _e.seq < seq)
    known = tx.connection.execute(count).scalar_one()
    then = {arm.id: arm for arm in changed(tx.first_config, tx.changes[:known]).arms}
    now = {arm.id: arm for arm in tx.next_config.arms}
    joined = [body_of(event) for n, event in tx.standing("arms_joined", after=seq) if n <= seq + 2]
    said = [arm for body in joined for arm in read_arms(body.arms)]
    return [
        asdict(replace(then[arm.id], present=now[arm.id].present))
        for arm in said  # only a report names people who are there already
        if arm.id in then and then[arm.id].present and replace(now[arm.id], present=True) == arm
    ]


def _reopen(tx: StudyTransaction, place: tuple[int, int]) -> None:
    """Go back to an epoch: its plan is in force, and its duels are asked as far as they were."""
    row = tx.row
    row.episode, row.epoch = place
    planned, _ = tx.standing("planned")[-1]
    chains = sa.select(_e.chain).where(_e.study == tx.id, _e.kind.in_(CHANGES), _e.seq < planned)
    held = tx.connection.execute(chains.order_by(_e.seq)).scalars().all()  # None in old studies
    row.in_force, row.in_force_chain = len(held), (held[-1] or str(len(held))) if held else ""
    asked = sa.and_(_d.study == tx.id, _d.episode == place[0], _d.purpose.in_(LEARNT))
    missing = sa.func.coalesce(sa.func.sum(_d.ratings - _d.given), 0)
    given = sa.func.coalesce(sa.func.sum(_d.given).filter(_d.epoch == place[1]), 0)
    rest, row.given = tx.connection.execute(sa.select(missing, given).where(asked)).one()
    rest, row.given = int(rest), int(row.given)
    row.asked = row.given + rest
    here = {arm.id for arm in tx.next_config.arms if arm.present}
    withdraw_people(tx, [arm.id for arm in tx.config.arms if arm.id not in here])
