"""Many at once, and killed at any moment: nothing acknowledged is lost or counted twice."""

import random
import time
from pathlib import Path

import clinics
import crowds
import pytest
from playing import check_replay, clinic, cpap

from dopl_core import studies
from dopl_core.studies.operate.rehearsal import Habits, rehearse
from dopl_core.studies.store import log_reader

pytestmark = pytest.mark.long


def test_fifty_annotators_give_thousands_of_answers(url: str, tmp_path: Path) -> None:
    answers = 5000 if url.startswith("sqlite") else 2000
    store = studies.open_store(url)
    config = cpap(budget=10, horizon=25, ratings=2, ties_allowed=True, lease_seconds=30)
    study = studies.create_study(store, config)
    notes = [tmp_path / "notes 0", tmp_path / "notes 1"]
    started = [
        crowds.crowd(
            url, study, notes[n], first=1 + 25 * n, annotators=25, answers=answers // 2, seed=n
        )
        for n in range(2)
    ]
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0, 0]
    acknowledged = crowds.noted(notes)
    assert len(acknowledged) == answers
    crowds.check(store, study, acknowledged)
    assert len(studies.annotators(studies.answers(store, study))) == 50
    store.close()


def test_no_acknowledged_answer_is_lost_when_killed_under_load(url: str, tmp_path: Path) -> None:
    """Each time every acknowledged answer is there, and the study goes on."""
    kills = 50 if url.startswith("sqlite") else 15
    store = studies.open_store(url)
    config = cpap(budget=4, horizon=3, ratings=2, ties_allowed=True, lease_seconds=0.2)
    study = studies.create_study(store, config)
    notes, rng = tmp_path / "notes", random.Random(5)
    dead = 0
    for kill in range(kills):
        before = crowds.lines(notes)
        process = crowds.crowd(url, study, notes, first=1, annotators=6, answers=10**6, seed=kill)
        crowds.wait_for(notes, before + rng.randint(3, 12), process)
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.join()
        dead += process.exitcode == -9
        assert studies.get_study(store, study).answers >= len(crowds.noted([notes]))
    assert dead == kills
    acknowledged = crowds.noted([notes])
    assert len(acknowledged) > 2 * kills
    crowds.check(store, study, acknowledged)
    went_on = rehearse(store, study, annotators=4, answers=60, habits=Habits(), seed=99)
    assert went_on.answers == 60
    assert went_on.plans > 0
    crowds.check(store, study, acknowledged)
    store.close()


def test_an_owner_killed_twenty_times_loses_nothing_that_was_acknowledged(
    url: str, tmp_path: Path
) -> None:
    """Reports, corrections, people who come and go, answers: all there, each once, to the bit."""
    store = studies.open_store(url)
    rules = {"horizon": 1, "answers": 5, "lease_seconds": 0.2, "confidence": "calibrated"}
    study = studies.create_study(store, clinic(**rules))
    notes, rng = tmp_path / "notes", random.Random(7)
    for kill in range(20):
        before = crowds.lines(notes)
        process = clinics.owner(url, study, notes, kill)
        crowds.wait_for(notes, before + rng.randint(3, 12), process)
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -9
    history = log_reader.read_log(store, study)
    kinds = [event.kind for event in history.events]
    acknowledged = [line.split() for line in notes.read_text().splitlines()]
    weeks = [int(what[1]) for what in acknowledged if what[0] == "reported"]
    assert len(set(weeks)) == len(weeks)
    assert set(weeks) <= set(range(1, kinds.count("observed") + 1))
    joined = {what[1] for what in acknowledged if what[0] == "joined"}
    assert joined <= {arm.id for arm in history.coming.arms}
    for said, logged in (("left", "arms_left"), ("corrected", "corrected")):
        assert sum(what[0] == said for what in acknowledged) <= kinds.count(logged)
    answered = {int(what[1]) for what in acknowledged if what[0] == "answered"}
    assert len(answered) <= kinds.count("answered")
    assert len(weeks) > 5
    assert joined
    check_replay(store, study)
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    store.close()
