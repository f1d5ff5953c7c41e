"""Crowds of simulated annotators in processes of their own, which may be killed at any moment."""

import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import sqlalchemy as sa
from playing import check_replay

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.model.outcomes import ANSWERS
from dopl_core.studies.store import tables

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["dopl_core.studies.operate.rehearsal", "psycopg"])


def crowd(
    url: str, study: str, notes: Path, *, first: int, annotators: int, answers: int, seed: int
) -> ForkServerProcess:
    """Start annotators who note every answer that the service acknowledged."""
    given = (url, study, str(notes), first, annotators, answers, seed)
    process = processes.Process(target=_play, args=given, daemon=True)
    process.start()
    return process


def _play(
    url: str, study: str, notes: str, first: int, annotators: int, answers: int, seed: int
) -> None:
    from dopl_core.studies.collect import duels
    from dopl_core.studies.operate import rehearsal

    duels.PLANNER_LEASE = 0.3  # a planner may be killed, and is not missed for long
    # Each note is one write to the kernel: it outlives the process.
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rehearsal.rehearse(
        studies.open_store(url),
        study,
        annotators=annotators,
        answers=answers,
        habits=rehearsal.Habits(skips=0.05, ties=0.05),
        seed=seed,
        first=first,
        on_answer=lambda impression, outcome: _note(file, impression, outcome),
    )


def _note(file: int, impression: int, outcome: str) -> None:
    os.write(file, f"{impression} {outcome}\n".encode())


def lines(notes: Path) -> int:
    """How many acts were acknowledged."""
    return notes.read_text().count("\n") if notes.exists() else 0


def wait_for(notes: Path, acts: int, process: ForkServerProcess) -> None:
    """Wait until that many acts were acknowledged, so that a slow machine does as much work."""
    while lines(notes) < acts:
        assert process.is_alive()
        time.sleep(0.005)


def noted(files: Sequence[Path]) -> list[tuple[int, str]]:
    """All acknowledged answers."""
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return [(int(impression), outcome) for impression, outcome in map(str.split, lines)]


def check(store: Store, study: str, acknowledged: list[tuple[int, str]]) -> None:
    """Every acknowledged answer is in the log once, no duel has too many, the learner is right."""
    assert len(dict(acknowledged)) == len(acknowledged)
    e, d, i = tables.events.c, tables.duels.c, tables.impressions.c
    with store.read() as connection:
        said = connection.execute(
            sa.select(e.impression, e.outcome).where(e.study == study, e.kind == "answered")
        ).all()
        kept = connection.execute(
            sa.select(i.id, i.outcome).where(i.study == study, i.outcome.in_(ANSWERS))
        ).all()
        ratings = connection.execute(
            sa.select(d.id, d.given, d.ratings, sa.func.count(i.id), d.held + d.free)
            .join_from(
                tables.duels,
                tables.impressions,
                sa.and_(i.duel == d.id, i.outcome.in_(ANSWERS)),
                isouter=True,
            )
            .where(d.study == study, d.purpose == "policy")
            .group_by(d.id, d.given, d.ratings, d.held, d.free)
        ).all()
        numbers = connection.execute(
            sa.select(sa.func.count(), sa.func.max(e.seq)).where(e.study == study)
        ).one()
    assert len(said) == len(kept)
    log = dict(map(tuple, said))
    assert log == dict(map(tuple, kept))
    assert set(acknowledged) <= set(log.items())
    for _, given, wanted, counted, left in ratings:
        assert given == counted <= wanted
        assert left == wanted - given
    assert numbers[0] == numbers[1]
    check_replay(store, study)
