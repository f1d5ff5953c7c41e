"""The learner is the fold of the log, the same in every process, snapshot or not."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from playing import STATES, Clock, check_replay, clinic, cpap, digest, play

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.replay import learner_from_log
from dopl_core.studies.store import blobs, log_reader, tables


def set_(store: Store, table: sa.Table, study: str, **values: object) -> None:
    with store.write() as connection:
        connection.execute(sa.update(table).where(table.c.study == study).values(values))


def check_played(store: Store, clock: Clock, config: studies.StudyConfig, clicks: int) -> None:
    study = studies.create_study(store, config)
    play(store, study, clicks, people=("Ann", "Bob", "Cy"), clock=clock)
    assert studies.get_study(store, study).episode > 2
    check_replay(store, study)


@pytest.mark.parametrize("make", [cpap, clinic])
def test_a_folded_learner_is_the_replayed_one_to_the_bit(
    store: Store, clock: Clock, make: Callable[..., studies.StudyConfig]
) -> None:
    config = make(ratings=2, ties_allowed=True, lease_seconds=5)
    check_played(store, clock, config, 100)


@pytest.mark.parametrize("make", [cpap, clinic])
def test_a_folded_calibrated_learner_with_cbc_is_the_replayed_one_too(
    sqlite_store: Store, clock: Clock, make: Callable[..., studies.StudyConfig]
) -> None:
    config = make(confidence="calibrated", engine="auto", design="tree")
    check_played(sqlite_store, clock, config, 30)


def test_another_process_holds_the_same_learner(store: Store, url: str) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 40)
    code = (
        "import sys; from dopl_core import studies; from dopl_core.studies.store import blobs; "
        "store = studies.open_store(sys.argv[1]); "
        "print(blobs.digest(studies.load_learner(store, sys.argv[2]).state()))"
    )
    command = [sys.executable, "-c", code, url, study]
    root = Path(__file__).resolve().parents[3]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    assert found.stdout.strip() == digest(store, study)


def test_the_learner_is_the_same_without_its_snapshot(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 50)
    with_snapshot = digest(store, study)
    with store.write() as connection:
        assert connection.execute(sa.delete(tables.snapshots)).rowcount == 1
    assert digest(store, study) == with_snapshot


def test_a_snapshot_saves_reading_the_answers_it_has_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 50, undo=0.0)
    read: list[int] = []
    effective_events = learner_from_log.effective_events

    def counting(*given: object) -> object:
        events, shown = effective_events(*given)  # type: ignore[arg-type]
        read.append(sum(event.kind == "answered" for event in events))
        return events, shown

    monkeypatch.setattr(learner_from_log, "effective_events", counting)
    learner = studies.load_learner(store, study)
    assert learner.counts.total() > 20
    assert read[0] <= 6  # answers since the last plan


def test_answers_are_counted_by_who_gave_them_in_order_of_first_answers(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 60, people=("Zoe", "Ann", "Bob"))
    answers = studies.answers(store, study)
    table = studies.load_learner(store, study).counts.table()
    with store.read() as connection:
        numbers = log_reader.annotator_numbers(connection, study)
    said = answers[answers.outcome.isin(["left", "right", "tie"])]
    assert len(numbers) == 3
    for name, number in numbers.items():
        assert table.times[table.who == number].sum() == (said.annotator == name).sum() > 0


def test_repeats_and_fast_answers_are_evidence_and_undone_ones_are_not(store: Store) -> None:
    study = studies.create_study(store, cpap(repeat_every=2, horizon=4))
    took_ms = {"Bob": (900,), "Ann": (400, 900, 400, 500, 400, 900)}  # repeats need two people
    for name, took in ((name, took) for name, times in took_ms.items() for took in times):
        found = studies.next_duel(store, study, name)
        assert isinstance(found, studies.Ask)
        studies.answer(store, found.impression, "left", response_ms=took, too_fast_ms=0)
    said = studies.answers(store, study)
    learnt, repeats = said[said.purpose == "policy"], said[said.purpose == "repeat"]
    habits = studies.load_learner(store, study).counts.habits
    assert habits["repeats"].total() == repeats.outcome.eq("left").sum() > 0
    assert habits["fast"].total() == (learnt.response_ms < 600).sum() > 0
    check_replay(store, study)
    for _ in range(6):
        studies.undo(store, study, "Ann")
    assert all(
        one.total() == 0 for one in studies.load_learner(store, study).counts.habits.values()
    )


def test_a_snapshot_from_before_habits_were_counted_is_not_believed(store: Store) -> None:
    study = studies.create_study(store, cpap(repeat_every=2))
    play(store, study, 50)
    true = digest(store, study)
    with store.read() as connection:
        row = connection.execute(sa.select(tables.snapshots)).one()
    old = {name: x for name, x in blobs.unpack(row.arrays).items() if name.startswith("duels.")}
    set_(store, tables.snapshots, study, arrays=blobs.pack(old), digest=blobs.digest(old))
    assert digest(store, study) == true


def damaged(store: Store, study: str) -> bytes:
    with store.read() as connection:
        row = connection.execute(
            sa.select(tables.snapshots).where(tables.snapshots.c.study == study)
        ).one()
    kept = blobs.unpack(row.arrays)
    return blobs.pack(kept | {"duels.times": kept["duels.times"] + 1})


def test_a_snapshot_whose_arrays_were_changed_is_not_believed(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 50)
    true = digest(store, study)
    set_(store, tables.snapshots, study, arrays=damaged(store, study))
    assert digest(store, study) == true
    set_(store, tables.snapshots, study, arrays=b"not arrays at all")
    assert digest(store, study) == true
    set_(store, tables.snapshots, study, seq=10**6)
    assert digest(store, study) == true


def test_a_snapshot_of_another_log_is_not_believed(store: Store) -> None:
    """Even one that is whole: the log says what was answered, and nothing else does."""
    study = studies.create_study(store, cpap())
    play(store, study, 50, undo=0.0)
    kept = studies.load_learner(store, study).counts.wins()
    e = tables.events.c
    said = sa.and_(e.study == study, e.kind == "answered")
    with store.write() as connection:
        first = connection.execute(
            sa.select(sa.func.min(e.seq)).where(said, e.outcome == "left")
        ).scalar()
        change = sa.update(tables.events).where(e.study == study, e.seq == first)
        connection.execute(change.values(outcome="right"))
    changed = studies.load_learner(store, study).counts.wins()
    assert changed.sum() == kept.sum()
    assert (changed != kept).sum() == 2
    with store.write() as connection:
        connection.execute(sa.delete(tables.events).where(e.study == study, e.seq == first))
    assert studies.load_learner(store, study).counts.total() == kept.sum() - 1


def test_plan_arrays_that_were_damaged_are_made_again(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 50)
    true = digest(store, study)
    set_(store, tables.plans, study, arrays=b"damaged")
    assert digest(store, study) == true


def test_only_the_last_plan_keeps_its_arrays_and_all_keep_their_digests(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 50)
    with store.read() as connection:
        p = tables.plans.c
        query = sa.select(p.arrays, p.digest).where(p.study == study).order_by(p.plan)
        rows = connection.execute(query).all()
    assert len(rows) > 3
    assert [row.arrays is not None for row in rows] == [False] * (len(rows) - 1) + [True]
    assert len({row.digest for row in rows}) == len(rows)


def test_arrays_are_packed_the_same_each_time_and_never_run_code() -> None:
    kept = {"b": np.arange(6.0).reshape(2, 3), "a": np.array("text"), "c": np.array(None)}
    with pytest.raises(ValueError, match="allow_pickle"):
        blobs.unpack(blobs.pack(kept))
    del kept["c"]
    packed = blobs.pack(kept)
    assert packed == blobs.pack(dict(reversed(kept.items())))
    assert blobs.digest(blobs.unpack(packed)) == blobs.digest(kept)
    assert blobs.digest({"a": np.array([0.0])}) != blobs.digest({"a": np.array([-0.0])})


def test_a_study_is_opened_by_its_configuration_as_written(sqlite_store: Store) -> None:
    from dopl_core.studies.model.config_json import from_json, to_json

    config = clinic(instructions="Look at the hours.\nThen decide.", repeat_every=0)
    assert from_json(to_json(config)) == config
    data = json.loads(to_json(config))
    del data["repeat_every"]  # a field that came later
    assert from_json(json.dumps(data)) == config
    assert from_json(json.dumps(data | {"wrold": 1})) == config  # a field that exists no more
    with pytest.raises(ValueError, match='states: number 1: key "label" is missing'):
        from_json(json.dumps(data | {"states": [{"lable": "Low"}]}))


def test_a_study_of_many_is_replayed_and_imported_to_the_bit(
    sqlite_store: Store, clock: Clock
) -> None:
    """Strengths by draws, classes and pairs as for very many: 135 arms with three states are."""
    lines = [f"p{n},{STATES[n % 3]},P {n},ward,{n},{n % 9}" for n in range(135)]
    text = "\n".join(["id,state,label,group,age,hours", *lines]).encode()
    rules = {"confidence": "calibrated", "budget": 4, "horizon": 1, "answers": 12, "sitting": 20}
    config = studies.from_roster(
        studies.read_roster(text, STATES), STATES, title="Many", practice=False, **rules
    )
    study = studies.create_study(sqlite_store, config)
    play(sqlite_store, study, 42, people=("Ann", "Bob"), clock=clock)
    assert studies.get_study(sqlite_store, study).episode >= 2
    learner = studies.load_learner(sqlite_store, study)
    assert learner.preferences is not None
    assert learner.preferences.covariance is None
    assert learner.preferences.common is not None
    folded = blobs.digest(learner.state())
    assert blobs.digest(studies.replay_study(sqlite_store, study).state()) == folded
    content = studies.export_bundle(sqlite_store, study)
    studies.delete_study(sqlite_store, study)
    studies.import_bundle(sqlite_store, content)
    assert digest(sqlite_store, study) == folded
    assert studies.export_bundle(sqlite_store, study) == content


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE events SET outcome = 'right' WHERE study = :study AND seq = :seq", "not what was"),
        ("DELETE FROM events WHERE study = :study AND seq = :seq", "is missing"),
        ("UPDATE events SET at = at + 1 WHERE study = :study AND seq = :seq", "not what was"),
    ],
)
def test_a_log_that_was_tampered_with_is_seen(store: Store, change: str, reason: str) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 20, undo=0.0)
    studies.replay_study(store, study)
    e = tables.events.c
    with store.write() as connection:
        said = sa.select(e.seq).where(e.study == study, e.outcome == "left").limit(1)
        seq = connection.execute(said).scalar_one()
        connection.execute(sa.text(change), {"study": study, "seq": seq})
    with pytest.raises(ValueError, match=reason):
        studies.replay_study(store, study)


def test_exchanging_two_outcomes_is_seen_by_the_snapshots_checksum(store: Store) -> None:
    study = studies.create_study(store, cpap(ratings=1))
    play(store, study, 60, undo=0.0)
    kept = studies.load_learner(store, study).counts.wins()
    e = tables.events.c
    with store.write() as connection:
        for outcome, other in (("left", "right"), ("right", "left")):
            said = sa.select(sa.func.min(e.seq)).where(e.study == study, e.outcome == outcome)
            seq = connection.execute(said.where(e.kind == "answered")).scalar_one()
            here = sa.update(tables.events).where(e.study == study, e.seq == seq)
            connection.execute(here.values(outcome=f"{other} "))
        for word in ("left", "right"):
            now = sa.update(tables.events).where(e.study == study, e.outcome == f"{word} ")
            connection.execute(now.values(outcome=word))
    assert (studies.load_learner(store, study).counts.wins() != kept).any()
