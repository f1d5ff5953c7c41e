"""Plans of other maths or another machine are facts: replay follows them, and studies go on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from elsewhere import CORES, elsewhere, play_on
from playing import Clock, clinic, digest, everyone, play

from dopl_core import studies
from dopl_core.learning import reproducibility
from dopl_core.studies import Store
from dopl_core.studies.exchange import bundle
from dopl_core.studies.model.errors import LogError, ReplayError
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.replay import replay as replaying
from dopl_core.studies.replay.consistency import check
from dopl_core.studies.replay.replay import TO_THE_BIT, replay
from dopl_core.studies.store import blobs, tables
from dopl_core.studies.store.log_reader import read_log

KEPT = Path(__file__).resolve().parents[2] / "data" / "kept"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> StudyLog:
    """Of a calibrated clinic with a first sitting, whose first week nobody answers."""
    clock = Clock()
    store = studies.open_store(f"sqlite:///{tmp_path_factory.mktemp('made')}/x.db", clock=clock)
    study = studies.create_study(store, clinic(confidence="calibrated", sitting=4, by_lot=1))
    studies.close_duels(store, study)
    studies.advance(store, study)
    studies.observe(store, study, everyone("Low"))
    play(store, study, 30, clock=clock)
    content = studies.export_bundle(store, study)
    store.close()
    return bundle.read(content)


def with_another_answer(log: StudyLog) -> StudyLog:
    """Somebody has said right, not left, before the last plan."""
    left = [n for n, shown in enumerate(log.impressions) if shown.outcome == "left"]
    shown, events = list(log.impressions), list(log.events)
    shown[left[0]] = replace(shown[left[0]], outcome="right")
    for n, event in enumerate(events):
        if event.impression == left[0] and event.kind == "answered":
            events[n] = replace(event, outcome="right")
    return replace(log, impressions=shown, events=events)


def with_other_arrays(log: StudyLog) -> StudyLog:
    """What is believed of one arm-state after the last plan is a little more."""
    assert log.arrays is not None
    mean = log.arrays["preferences.mean"].copy()
    mean[0, 0] += 0.01
    changed = log.arrays | {"preferences.mean": mean}
    last = replace(log.plans[-1], digest=blobs.digest(changed))
    return replace(log, arrays=changed, plans=[*log.plans[:-1], last])


def with_another_list(log: StudyLog) -> StudyLog:
    """Somebody else was on the list of the first week; those helped are the same."""
    first = log.epochs[0]
    others = np.setdiff1d(np.arange(len(first.states)), [*first.arms, *first.left_out])
    arms = np.sort([*first.drawn, *others[: len(first.arms) - len(first.drawn)]])
    changed = replace(first, arms=arms, helped=first.acted)
    return replace(log, epochs=[changed, *log.epochs[1:]])


SPOILT = (with_another_answer, with_other_arrays, with_another_list)


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_changed_record_is_refused_where_plans_are_computed_again(
    log: StudyLog, spoil: Callable[[StudyLog], StudyLog]
) -> None:
    how: list[str] = []
    replay(log, how.append)
    assert how == [TO_THE_BIT]
    with pytest.raises(ReplayError, match=r"is not reproduced|helps other arms"):
        replay(spoil(log))


@pytest.mark.parametrize(("name", "value"), [("fingerprint", lambda: "another"), ("MATHS", 99)])
def test_replay_follows_plans_of_other_maths_or_another_machine(
    log: StudyLog, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(replaying, name, value)
    how: list[str] = []
    learner = replay(with_another_list(log), how.append)
    assert how[0].startswith(f"{log.episode} of {log.episode} plans were made by another version")
    assert log.arrays is not None
    assert blobs.digest(learner.plan_state()) == blobs.digest(log.arrays)


def test_replay_follows_lists_of_versions_in_which_nobody_was_drawn_to_wait(
    log: StudyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "MATHS", 99)
    before = [replace(epoch, by_lot=epoch.drawn) for epoch in log.epochs]
    learner = replay(replace(log, epochs=before))
    assert learner.visits.tolist() == replay(log).visits.tolist()
    for by_lot in (log.epochs[0].left_out, log.epochs[0].arms, log.epochs[0].arms[:0]):
        spoilt = [replace(log.epochs[0], by_lot=by_lot), *log.epochs[1:]]
        with pytest.raises(ReplayError, match="not as many places are drawn at random"):
            replay(replace(log, epochs=spoilt))


def test_a_followed_list_still_has_the_right_number_of_present_arms(
    log: StudyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "fingerprint", lambda: "another")
    first = log.epochs[0]
    for arms in (first.arms[:1], np.append(first.arms, 3), first.arms + 10, first.arms * 0):
        longer = [replace(first, arms=arms), *log.epochs[1:]]
        with pytest.raises(ReplayError, match="the list is not 2 arms that are present"):
            replay(replace(log, epochs=longer))


def test_answers_and_states_are_checked_where_plans_are_followed(
    log: StudyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "fingerprint", lambda: "another")
    second = replace(log.epochs[1], states=np.zeros(4, dtype=np.int64) + 2)
    with pytest.raises(ReplayError, match="the states are not those reported before"):
        replay(replace(log, epochs=[log.epochs[0], second, *log.epochs[2:]]))
    with pytest.raises(LogError, match=r"answers, duels\.csv has"):
        check(replace(log, plans=[replace(plan, answers=7) for plan in log.plans]))


@pytest.mark.long
@pytest.mark.parametrize("core", CORES)
def test_bundles_go_on_where_numbers_are_rounded_otherwise(
    core: str, log: StudyLog, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.zip"
    whole.write_bytes(bundle.write(log))
    kept = sorted(KEPT.glob("bundle*.zip"))
    said = elsewhere(core, "imports", whole, *kept)
    if said["arithmetic"] == reproducibility.fingerprint():
        pytest.skip(f"this machine's arithmetic is that of {core}")
    assert all("replay follows the record" in said[str(file)] for file in (whole, *kept))


def test_a_database_goes_on_under_another_arithmetic_and_back_again(
    sqlite_store: Store, clock: Clock
) -> None:
    url = sqlite_store.engine.url.render_as_string()
    study = studies.create_study(sqlite_store, clinic(confidence="calibrated", sitting=3))
    assert play_on(sqlite_store, clock, study) == TO_THE_BIT
    there = elsewhere(CORES[1], "plays", url, study)
    here = play_on(sqlite_store, clock, study)
    if there["arithmetic"] != reproducibility.fingerprint():
        assert "replay follows the record" in there["how"]
        assert "replay follows the record" in here
        log = read_log(sqlite_store, study)
        cold = [body_of(event).cold for event in log.events if event.kind == "planned"]
        assert sum(cold) == 2  # there, and back again: the log says so
    kept = digest(sqlite_store, study)
    content = studies.export_bundle(sqlite_store, study)
    studies.delete_study(sqlite_store, study)
    studies.import_bundle(sqlite_store, content)
    assert digest(sqlite_store, study) == kept
    assert studies.export_bundle(sqlite_store, study) == content


def test_lost_arrays_of_another_machine_are_made_by_the_present_maths(
    sqlite_store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(sqlite_store, clinic(confidence="calibrated"))
    play(sqlite_store, study, 40, clock=clock)
    true = studies.load_learner(sqlite_store, study)
    monkeypatch.setattr(replaying, "fingerprint", lambda: "another")
    p = tables.plans.c
    with sqlite_store.write() as connection:
        lost = sa.update(tables.plans).where(p.study == study, p.arrays.is_not(None))
        connection.execute(lost.values(arrays=None))
    again = studies.load_learner(sqlite_store, study)
    assert again.episode == true.episode
    assert again.known_dynamics().mean == pytest.approx(true.known_dynamics().mean, abs=1e-6)
    studies.replay_bundle(studies.export_bundle(sqlite_store, study))
