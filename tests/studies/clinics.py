"""An owner in a process of its own who never rests, and may be killed at any moment."""

import os
import random
from pathlib import Path

from crowds import processes
from playing import STATES

from dopl_core import studies
from dopl_core.studies import Arm, Ask, Store, StudyError


def owner(url: str, study: str, notes: Path, seed: int):  # type: ignore[no-untyped-def]
    """Start an owner who notes every act that the service acknowledged."""
    process = processes.Process(target=_run, args=(url, study, str(notes), seed), daemon=True)
    process.start()
    return process


def _run(url: str, study: str, notes: str, seed: int) -> None:
    from dopl_core.studies.collect import duels

    duels.PLANNER_LEASE = 0.3  # a planner may be killed, and is not missed for long
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store, rng = studies.open_store(url), random.Random(seed)
    number = 0
    while True:
        number += 1
        act = rng.choice((_answer, _answer, _report, _report, _join, _leave, _correct, _change))
        try:
            what = act(store, study, rng, f"{seed}-{number}")
        except StudyError:
            continue  # it made no sense just now, and nothing was changed
        if what:
            os.write(file, f"{what}\n".encode())  # one write to the kernel: it outlives us


def _answer(store: Store, study: str, rng: random.Random, _: str) -> str:
    found = studies.next_duel(store, study, rng.choice(("Ann", "Bob")))
    if not isinstance(found, Ask):
        return ""
    saved = studies.answer(store, found.impression, rng.choice(("left", "right")), too_fast_ms=0)
    return f"answered {found.impression}" if saved.saved else ""


def _report(store: Store, study: str, rng: random.Random, _: str) -> str:
    if studies.get_study(store, study).plan_due:
        studies.advance(store, study)
        return ""
    lists = studies.read_lists(store, study)
    states = {arm: rng.choice([*STATES, None]) for arm in studies.present_states(store, study)}
    week = lists[-1].week
    helped = [one.id for one in lists[-1].listed if rng.random() < 0.9]
    studies.observe(store, study, states, helped=helped, week=week)
    return f"reported {week}"


def _join(store: Store, study: str, rng: random.Random, name: str) -> str:
    studies.join(store, study, [Arm(name, name, "new", rng.choice(STATES))])
    return f"joined {name}"


def _leave(store: Store, study: str, rng: random.Random, _: str) -> str:
    here = [arm.id for arm in studies.coming_config(store, study).arms if arm.present]
    if len(here) < 8:
        return ""
    gone = rng.choice(here)
    studies.leave(store, study, [gone])
    return f"left {gone}"


def _correct(store: Store, study: str, rng: random.Random, _: str) -> str:
    week = rng.randint(0, len(studies.read_lists(store, study)))
    arm = rng.choice(sorted(studies.present_states(store, study)))
    studies.correct(store, study, week, {arm: rng.choice(STATES)})
    return f"corrected {week} {arm}"


def _change(store: Store, study: str, rng: random.Random, _: str) -> str:
    [week] = studies.read_lists(store, study, last=1)
    off, on = rng.choice(week.listed).id, [one.id for one in week.reserve if rng.random() < 0.3]
    studies.change_list(store, study, remove=[off], add=on, because="not this week")
    return f"changed {week.week} {off}"
