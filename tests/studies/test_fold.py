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

from dopl_core.studies import arrays, fold, schema, service
from dopl_core.studies.service import Store


def set_(store: Store, table: sa.Table, study: str, **values: object) -> None:
    with store.write() as connection:
        connection.execute(sa.update(table).where(table.c.study == study).values(values))


def check_played(store: Store, clock: Clock, config: service.StudyConfig, clicks: int) -> None:
    study = service.create_study(store, config)
    play(store, study, clicks, people=("Ann", "Bob", "Cy"), clock=clock)
    assert service.get_study(store, study).episode > 2
    check_replay(store, study)


@pytest.mark.parametrize("make", [cpap, clinic])
def test_a_folded_learner_is_the_replayed_one_to_the_bit(
    store: Store, clock: Clock, make: Callable[..., service.StudyConfig]
) -> None:
    config = make(ratings=2, ties_allowed=True, lease_seconds=5)
    check_played(store, clock, config, 100)


@pytest.mark.parametrize("make", [cpap, clinic])
def test_so_it_is_with_calibrated_confidence_and_cbc(
    sqlite_store: Store, clock: Clock, make: Callable[..., service.StudyConfig]
) -> None:
    config = make(confidence="calibrated", engine="auto", design="tree")
    check_played(sqlite_store, clock, config, 30)


def test_another_process_holds_the_same_learner(store: Store, url: str) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 40)
    code = (
        "import sys; from dopl_core.studies import arrays, service; "
        "store = service.open_store(sys.argv[1]); "
        "print(arrays.digest(service.load_learner(store, sys.argv[2]).state()))"
    )
    command = [sys.executable, "-c", code, url, study]
    root = Path(__file__).resolve().parents[2]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    assert found.stdout.strip() == digest(store, study)


def test_the_learner_is_the_same_without_its_snapshot(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 50)
    with_snapshot = digest(store, study)
    with store.write() as connection:
        assert connection.execute(sa.delete(schema.snapshots)).rowcount == 1
    assert digest(store, study) == with_snapshot


def test_a_snapshot_saves_reading_the_answers_it_has_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 50, undo=0.0)
    read: list[int] = []
    answers = fold._answers

    def counting(*given: object) -> np.ndarray:
        found = answers(*given)  # type: ignore[arg-type]
        read.append(len(found))
        return found

    monkeypatch.setattr(fold, "_answers", counting)
    learner = service.load_learner(store, study)
    assert learner.counts.total() > 20
    assert read[0] <= 6  # those since the last plan


def test_answers_are_counted_by_who_gave_them_in_order_of_first_answers(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 60, people=("Zoe", "Ann", "Bob"))
    answers = service.answers(store, study)
    table = service.load_learner(store, study).counts.table()
    with store.read() as connection:
        numbers = fold.people(connection, study)
    said = answers[answers.outcome.isin(["left", "right", "tie"])]
    assert len(numbers) == 3
    for name, number in numbers.items():
        assert table.times[table.who == number].sum() == (said.annotator == name).sum() > 0


def damaged(store: Store, study: str) -> bytes:
    with store.read() as connection:
        row = connection.execute(
            sa.select(schema.snapshots).where(schema.snapshots.c.study == study)
        ).one()
    kept = arrays.unpack(row.arrays)
    return arrays.pack(kept | {"duels.times": kept["duels.times"] + 1})


def test_a_snapshot_whose_arrays_were_changed_is_not_believed(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 50)
    true = digest(store, study)
    set_(store, schema.snapshots, study, arrays=damaged(store, study))
    assert digest(store, study) == true
    set_(store, schema.snapshots, study, arrays=b"not arrays at all")
    assert digest(store, study) == true
    set_(store, schema.snapshots, study, seq=10**6)
    assert digest(store, study) == true


def test_a_snapshot_of_another_log_is_not_believed(store: Store) -> None:
    """Even one that is whole: the log says what was answered, and nothing else does."""
    study = service.create_study(store, cpap())
    play(store, study, 50, undo=0.0)
    kept = service.load_learner(store, study).counts.wins()
    e = schema.events.c
    said = sa.and_(e.study == study, e.kind == "answered")
    with store.write() as connection:
        first = connection.execute(
            sa.select(sa.func.min(e.seq)).where(said, e.outcome == "left")
        ).scalar()
        change = sa.update(schema.events).where(e.study == study, e.seq == first)
        connection.execute(change.values(outcome="right"))
    changed = service.load_learner(store, study).counts.wins()
    assert changed.sum() == kept.sum()
    assert (changed != kept).sum() == 2
    with store.write() as connection:
        connection.execute(sa.delete(schema.events).where(e.study == study, e.seq == first))
    assert service.load_learner(store, study).counts.total() == kept.sum() - 1


def test_plan_arrays_that_were_damaged_are_made_again(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 50)
    true = digest(store, study)
    set_(store, schema.plans, study, arrays=b"damaged")
    assert digest(store, study) == true


def test_only_the_last_plan_keeps_its_arrays_and_all_keep_their_digests(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 50)
    with store.read() as connection:
        p = schema.plans.c
        query = sa.select(p.arrays, p.digest).where(p.study == study).order_by(p.plan)
        rows = connection.execute(query).all()
    assert len(rows) > 3
    assert [row.arrays is not None for row in rows] == [False] * (len(rows) - 1) + [True]
    assert len({row.digest for row in rows}) == len(rows)


def test_arrays_are_packed_the_same_each_time_and_never_run_code() -> None:
    kept = {"b": np.arange(6.0).reshape(2, 3), "a": np.array("text"), "c": np.array(None)}
    with pytest.raises(ValueError, match="allow_pickle"):
        arrays.unpack(arrays.pack(kept))
    del kept["c"]
    packed = arrays.pack(kept)
    assert packed == arrays.pack(dict(reversed(kept.items())))
    assert arrays.digest(arrays.unpack(packed)) == arrays.digest(kept)
    assert arrays.digest({"a": np.array([0.0])}) != arrays.digest({"a": np.array([-0.0])})


def test_a_study_is_opened_by_its_configuration_as_written(sqlite_store: Store) -> None:
    from dopl_core.studies.config_json import from_json, to_json

    config = clinic(instructions="Look at the hours.\nThen decide.", repeat_every=0)
    assert from_json(to_json(config)) == config
    data = json.loads(to_json(config))
    del data["repeat_every"]  # a field that came later
    assert from_json(json.dumps(data)) == config
    with pytest.raises(ValueError, match='"wrold" is not known'):
        from_json(json.dumps(data | {"wrold": 1}))


def test_a_study_of_many_is_replayed_and_imported_to_the_bit(
    sqlite_store: Store, clock: Clock
) -> None:
    """Strengths by draws, classes and pairs as for very many: 135 arms with three states are."""
    lines = [f"p{n},{STATES[n % 3]},P {n},ward,{n},{n % 9}" for n in range(135)]
    text = "\n".join(["id,state,label,group,age,hours", *lines]).encode()
    rules = {"confidence": "calibrated", "budget": 4, "horizon": 1, "answers": 12, "sitting": 20}
    config = service.from_roster(
        service.read_roster(text, STATES), STATES, title="Many", practice=False, **rules
    )
    study = service.create_study(sqlite_store, config)
    play(sqlite_store, study, 60, people=("Ann", "Bob"), clock=clock)
    assert service.get_study(sqlite_store, study).episode >= 2
    learner = service.load_learner(sqlite_store, study)
    assert learner.preferences is not None
    assert learner.preferences.covariance is None
    assert learner.preferences.common is not None
    folded = arrays.digest(learner.state())
    assert arrays.digest(service.replay_study(sqlite_store, study).state()) == folded
    content = service.export_bundle(sqlite_store, study)
    service.delete_study(sqlite_store, study)
    service.import_bundle(sqlite_store, content)
    assert digest(sqlite_store, study) == folded
    assert service.export_bundle(sqlite_store, study) == content


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE events SET outcome = 'right' WHERE study = :study AND seq = :seq", "not what was"),
        ("DELETE FROM events WHERE study = :study AND seq = :seq", "is missing"),
        ("UPDATE events SET at = at + 1 WHERE study = :study AND seq = :seq", "not what was"),
    ],
)
def test_a_log_that_was_tampered_with_is_seen(store: Store, change: str, reason: str) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 20, undo=0.0)
    service.replay_study(store, study)
    e = schema.events.c
    with store.write() as connection:
        said = sa.select(e.seq).where(e.study == study, e.outcome == "left").limit(1)
        seq = connection.execute(said).scalar_one()
        connection.execute(sa.text(change), {"study": study, "seq": seq})
    with pytest.raises(ValueError, match=reason):
        service.replay_study(store, study)


def test_exchanging_two_outcomes_is_seen_by_the_snapshots_checksum(store: Store) -> None:
    study = service.create_study(store, cpap(ratings=1))
    play(store, study, 60, undo=0.0)
    kept = service.load_learner(store, study).counts.wins()
    e = schema.events.c
    with store.write() as connection:
        for outcome, other in (("left", "right"), ("right", "left")):
            said = sa.select(sa.func.min(e.seq)).where(e.study == study, e.outcome == outcome)
            seq = connection.execute(said.where(e.kind == "answered")).scalar_one()
            here = sa.update(schema.events).where(e.study == study, e.seq == seq)
            connection.execute(here.values(outcome=f"{other} "))
        for word in ("left", "right"):
            now = sa.update(schema.events).where(e.study == study, e.outcome == f"{word} ")
            connection.execute(now.values(outcome=word))
    assert (service.load_learner(store, study).counts.wins() != kept).any()
