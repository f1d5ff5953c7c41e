"""What was made on another kind of machine opens, replays as recorded, and goes on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from elsewhere import CORES, elsewhere, play_on
from playing import Clock, clinic, digest, everyone, play

from dopl_core.learning import arithmetic
from dopl_core.studies import arrays, bundle, schema, service
from dopl_core.studies import replay as replaying
from dopl_core.studies.history import History
from dopl_core.studies.replay import AS_RECORDED, TO_THE_BIT, ReplayError, replay
from dopl_core.studies.service import Store

AGREES = f"{AS_RECORDED}: the last plan agrees within 1e-06"
KEPT = Path(__file__).resolve().parents[1] / "data" / "kept"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Of a calibrated clinic with a first sitting, whose first week nobody answers."""
    clock = Clock()
    store = service.open_store(f"sqlite:///{tmp_path_factory.mktemp('made')}/x.db", clock=clock)
    study = service.create_study(store, clinic(confidence="calibrated", sitting=4, by_lot=1))
    service.close_duels(store, study)
    service.advance(store, study)
    service.observe(store, study, everyone("Low"))
    play(store, study, 30, clock=clock)
    content = service.export_bundle(store, study)
    store.close()
    return bundle.read(content)


def with_another_answer(history: History) -> History:
    """Somebody has said right, not left, before the last plan."""
    left = [n for n, shown in enumerate(history.impressions) if shown.outcome == "left"]
    shown, events = list(history.impressions), list(history.events)
    shown[left[0]] = replace(shown[left[0]], outcome="right")
    for n, event in enumerate(events):
        if event.impression == left[0] and event.kind == "answered":
            events[n] = replace(event, outcome="right")
    return replace(history, impressions=shown, events=events)


def with_other_arrays(history: History) -> History:
    """What is believed of one arm-state after the last plan is a little more."""
    assert history.arrays is not None
    mean = history.arrays["preferences.mean"].copy()
    mean[0, 0] += 0.01
    changed = history.arrays | {"preferences.mean": mean}
    last = replace(history.plans[-1], digest=arrays.digest(changed))
    return replace(history, arrays=changed, plans=[*history.plans[:-1], last])


def with_another_list(history: History) -> History:
    """Somebody else was on the list of the first week; those helped are the same."""
    first = history.moves[0]
    others = np.setdiff1d(np.arange(len(first.states)), first.arms)
    arms = np.sort([*first.by_lot, *others[: len(first.arms) - len(first.by_lot)]])
    changed = replace(first, arms=arms, helped=first.acted)
    return replace(history, moves=[changed, *history.moves[1:]])


def before_arithmetic(history: History) -> History:
    """As versions wrote it that did not say with what arithmetic."""
    events = [
        replace(e, body=(e.body or "").replace(f', "arithmetic": "{arithmetic.fingerprint()}"', ""))
        if e.body
        else e
        for e in history.events
    ]
    assert not any("arithmetic" in (e.body or "") for e in events)
    return replace(history, events=events)


SPOILT = (with_another_answer, with_other_arrays, with_another_list)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("spoil", SPOILT)
def test_here_whatever_was_changed_is_refused(
    history: History, spoil: Callable[[History], History], old: bool
) -> None:
    if old:
        history = before_arithmetic(history)
    how: list[str] = []
    replay(history, how.append)
    assert how == [TO_THE_BIT]
    with pytest.raises(ReplayError, match=r"comes out differently|helps other arms"):
        replay(spoil(history))


@pytest.mark.parametrize("spoil", SPOILT[:2])
def test_so_are_answers_and_arrays_of_another_machine(
    history: History, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[History], History]
) -> None:
    monkeypatch.setattr(replaying, "fingerprint", lambda: "another")
    replay(history)
    with pytest.raises(ReplayError, match="comes out differently"):
        replay(spoil(history))


def test_whom_another_machine_helped_is_a_fact_if_it_could_be(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = with_another_list(history)
    monkeypatch.setattr(replaying, "fingerprint", lambda: "another")
    how: list[str] = []
    replay(history, how.append)
    assert how == [AGREES]
    first = history.moves[0]
    for arms in (first.arms[:1], np.append(first.arms, 3), first.arms + 10, first.arms * 0):
        longer = [replace(first, arms=arms), *history.moves[1:]]
        with pytest.raises(ReplayError, match="helps other arms"):
            replay(replace(history, moves=longer))


@pytest.mark.long
@pytest.mark.parametrize("core", CORES)
def test_bundles_of_every_version_go_on_where_numbers_are_rounded_otherwise(
    core: str, history: History, tmp_path: Path
) -> None:
    whole, spoilt = tmp_path / "whole.zip", [tmp_path / f"{n}.zip" for n in range(2)]
    whole.write_bytes(bundle.write(history))
    for spoil, file in zip(SPOILT, spoilt, strict=False):
        file.write_bytes(bundle.write(spoil(history)))
    kept = sorted(KEPT.glob("bundle*.zip"))
    said = elsewhere(core, "imports", whole, *spoilt, *kept)
    if said["arithmetic"] == arithmetic.fingerprint():
        pytest.skip(f"this machine's arithmetic is that of {core}")
    assert said[str(whole)] == AGREES
    assert all("comes out differently" in said[str(file)] for file in spoilt)
    assert {said[str(file)] for file in kept} <= {TO_THE_BIT, AGREES}


def test_a_database_goes_on_under_another_arithmetic_and_back_again(
    sqlite_store: Store, clock: Clock
) -> None:
    url = sqlite_store.engine.url.render_as_string()
    study = service.create_study(sqlite_store, clinic(confidence="calibrated", sitting=3))
    assert play_on(sqlite_store, clock, study) == TO_THE_BIT
    there = elsewhere(CORES[1], "plays", url, study)
    here = play_on(sqlite_store, clock, study)
    if there["arithmetic"] != arithmetic.fingerprint():
        assert {there["how"], here} == {AGREES}
    kept = digest(sqlite_store, study)
    content = service.export_bundle(sqlite_store, study)
    service.delete_study(sqlite_store, study)
    service.import_bundle(sqlite_store, content)
    assert digest(sqlite_store, study) == kept
    assert service.export_bundle(sqlite_store, study) == content


def test_lost_arrays_of_another_machine_are_made_again(
    sqlite_store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(sqlite_store, clinic(confidence="calibrated"))
    play(sqlite_store, study, 40, clock=clock)
    true = service.load_learner(sqlite_store, study).state()
    monkeypatch.setattr(replaying, "fingerprint", lambda: "another")
    p = schema.plans.c
    with sqlite_store.write() as connection:
        lost = sa.update(schema.plans).where(p.study == study, p.arrays.is_not(None))
        connection.execute(lost.values(arrays=None, digest="rounded otherwise"))
    assert arrays.agree(service.load_learner(sqlite_store, study).state(), true)
    how: list[str] = []
    service.replay_study(sqlite_store, study, how.append)
    assert how == [AS_RECORDED]
    service.replay_bundle(service.export_bundle(sqlite_store, study))
