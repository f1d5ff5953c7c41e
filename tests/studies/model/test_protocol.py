"""The protocol of a trial: checked when it is made, fixed in the log, and never changed."""

import json
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from bundles import OURS, files, zipped
from playing import check_replay, clinic, cpap, one_answer, trial

from dopl_core import studies
from dopl_core.studies import Store, StudyError
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.protocol import digest, to_json
from dopl_core.studies.replay.consistency import check
from dopl_core.studies.store import tables
from dopl_core.studies.store.log_reader import read_log

CONFIG = clinic(sitting=2, by_lot=1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"question": " "}, "question is empty"),
        ({"looks": (2, 2, 4)}, "rising order"),
        ({"looks": (2, 3)}, "the last one must be the last week, 4"),
        ({"looks": ()}, "the last one must be the last week"),
        ({"by_lot": 2}, "by_lot is 2: a whole number from 1 to 1 needed"),
        ({"people": 2}, "budget is 2 for 2 people"),
        ({"effect": 0}, "effect is 0"),
        ({"power": 2}, "power is 2"),
        ({"outcome": "alive"}, "must be one of better_off"),
        ({"patients": 4}, '"patients" is unknown'),
    ],
)
def test_a_protocol_that_cannot_be_kept_is_refused(
    wrong: dict[str, object], words: str, tmp_path: Path
) -> None:
    (file := tmp_path / "p.json").write_text(json.dumps(msgspec.to_builtins(trial(CONFIG)) | wrong))
    with pytest.raises(StudyError, match=words):
        studies.read_protocol_file(file)


def test_equal_protocols_and_only_they_have_the_same_digest(tmp_path: Path) -> None:
    one = trial(CONFIG)
    assert digest(one) == digest(trial(CONFIG, level=0.05, outcome="better_off"))
    (file := tmp_path / "p.json").write_bytes(to_json(one))
    assert digest(one) == digest(studies.read_protocol_file(file))
    others = {"question": "Do letters help?", "power": 0.8, "effect": 0.21, "looks": (4,)}
    assert all(digest(one) != digest(trial(CONFIG, **{k: v})) for k, v in others.items())


def test_a_protocol_is_fixed_with_the_study_before_anything_else(store: Store) -> None:
    study = studies.create_study(store, CONFIG, protocol=trial(CONFIG))
    one_answer(store, study, "Ann")
    events = read_log(store, study).events
    assert [event.kind for event in events[:2]] == ["made", "protocol_fixed"]
    fixed = studies.read_protocol(store, study)
    assert fixed is not None
    assert (fixed.at, fixed.protocol) == (events[0].at, trial(CONFIG))
    check_replay(store, study)
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.read_protocol(store, study) == fixed
    assert studies.read_protocol(store, studies.create_study(store, clinic())) is None


@pytest.mark.parametrize(
    "wrong", [{"people": 5}, {"budget": 3}, {"people": 6, "budget": 3, "by_lot": 2}]
)
def test_a_protocol_of_another_study_is_refused(
    sqlite_store: Store, wrong: dict[str, object]
) -> None:
    with pytest.raises(StudyError, match="the protocol has"):
        studies.create_study(sqlite_store, CONFIG, protocol=trial(CONFIG, **wrong))
    with pytest.raises(StudyError, match="a study of real people"):
        studies.create_study(sqlite_store, cpap(), protocol=trial(CONFIG))
    assert studies.list_studies(sqlite_store) == []


@pytest.mark.parametrize("changed", [{"effect": 0.1}, {"looks": [3, 4]}, {"question": "Why?"}])
def test_a_changed_protocol_is_noticed(sqlite_store: Store, changed: dict[str, object]) -> None:
    study = studies.create_study(sqlite_store, CONFIG, protocol=trial(CONFIG))
    content = studies.export_bundle(sqlite_store, study)
    e = tables.events.c
    body = sa.select(e.body).where(e.kind == "protocol_fixed")
    with sqlite_store.write() as connection:
        said = json.loads(connection.execute(body).scalar_one())
        said["protocol"] |= changed
        new = sa.update(tables.events).where(e.kind == "protocol_fixed")
        connection.execute(new.values(body=json.dumps(said)))
    sqlite_store.heads.clear()
    with pytest.raises(OURS):
        studies.replay_study(sqlite_store, study)
    before = files(content)["events.csv"].decode()
    key, value = next(iter(changed.items()))
    old = json.dumps({key: getattr(trial(CONFIG), key)})[1:-1].replace('"', '""')
    after = before.replace(old, json.dumps({key: value})[1:-1].replace('"', '""'))
    assert after != before
    with pytest.raises(OURS, match="the protocol is not what it was"):
        studies.replay_bundle(zipped(files(content) | {"events.csv": after.encode()}))


def test_a_protocol_after_the_first_plan_is_refused(sqlite_store: Store) -> None:
    config = clinic(by_lot=1)
    study = studies.create_study(sqlite_store, config, protocol=trial(config))
    log = read_log(sqlite_store, study)
    fixed = log.events.pop(1)
    log.events.append(fixed)
    with pytest.raises(LogError, match="fixed once and before the first plan"):
        check(log)
