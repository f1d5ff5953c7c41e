"""Bundles without names: nobody can be recognised in them, and the study goes on."""

import dataclasses
import json

import msgspec
import pytest
from bundles import files
from named_clinic import KEPT, NAMES, SECRETS, config, found_in, lived, present
from playing import STATES, Clock, answer_open, check_replay, cpap, digest, play

from dopl_core import cli, studies
from dopl_core.studies import Store, StudyConfig, StudyError
from dopl_core.studies.model import event_bodies
from dopl_core.studies.model.event_kinds import KINDS, body_of
from dopl_core.studies.model.log_values import Epoch, Impression, Person, PlanMade, QueuedDuel
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store.log_reader import read_log


def test_no_file_of_a_bundle_without_names_says_who_anybody_is(sqlite_store: Store) -> None:
    study = lived(sqlite_store)
    events = read_log(sqlite_store, study).events
    kinds = {event.kind for event in events}
    assert {kind for kind, one in KINDS.items() if one.body is not event_bodies.Empty} <= kinds
    whole = {secret for _, secret in found_in(studies.export_bundle(sqlite_store, study), SECRETS)}
    assert whole == set(SECRETS)  # so the search finds each of them
    content = studies.export_bundle(sqlite_store, study, without_names=True)
    reports = [body_of(event).report for event in events if event.kind == "observed"]
    reports += [body_of(event).version for event in events if event.kind == "consented"]
    assert all(reports)  # digests, by which a guess of all names could be confirmed
    assert found_in(content, (*SECRETS, KEPT, *reports)) == []
    about = json.loads(files(content)["study.json"])
    assert about["names"] == "removed"
    assert about["config"]["title"] == "Clinic"
    kept = studies.export_bundle(sqlite_store, study, without_names=True, keep=[KEPT])
    others = tuple(secret for secret in SECRETS if secret != "181 cm")
    assert found_in(kept, others) == []
    assert {one for _, one in found_in(kept, (KEPT, "181 cm"))} == {KEPT, "181 cm"}
    assert json.loads(files(kept)["study.json"])["config"]["list_columns"] == KEPT


@pytest.mark.parametrize("keep", [(), ("Viertel", "Rufnummer", KEPT)])
def test_a_study_without_names_imports_replays_and_goes_on(
    store: Store, keep: tuple[str, ...]
) -> None:
    study = lived(store)
    plan = digest(store, study)
    exported = studies.export_bundle(store, study, without_names=True, keep=keep)
    answers = studies.answers(store, study, without_names=True)
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    assert studies.export_bundle(store, study) == exported
    assert digest(store, study) == plan
    assert studies.answers(store, study).equals(answers)
    how: list[str] = []
    check_replay(store, study, how.append)
    assert how == [
        "2 of 2 plans were made before names and columns were removed: replay follows the record "
        "there. All else is reproduced. Personal data were erased: annotator 6 on 2026-09-21."
    ]
    people = present(store, study)
    assert people == ["person 1", "person 2", "person 3", "person 6"]
    answer_open(store, study, "annotator 2")
    studies.observe(store, study, dict.fromkeys(people, "Moderate"), week=2)
    studies.advance(store, study)
    check_replay(store, study, how.append)
    assert how[1].startswith("2 of 3 plans were made before names")
    again = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, again)
    assert studies.export_bundle(store, study) == again


def test_a_simulated_world_without_names_is_recomputed_to_the_bit(
    sqlite_store: Store, clock: Clock
) -> None:
    study = studies.create_study(sqlite_store, cpap(repeat_every=3, ratings=2))
    play(sqlite_store, study, 20, people=NAMES, clock=clock)
    plan = digest(sqlite_store, study)
    exported = studies.export_bundle(sqlite_store, study, without_names=True)
    assert found_in(exported, NAMES) == []
    studies.delete_study(sqlite_store, study)
    studies.import_bundle(sqlite_store, exported)
    how: list[str] = []
    check_replay(sqlite_store, study, how.append)
    assert how == ["Everything is reproduced to the bit."]
    assert digest(sqlite_store, study) == plan
    assert studies.export_bundle(sqlite_store, study) == exported


@pytest.mark.parametrize("option", ["--without-names", "--pseudonyms"])
def test_the_export_command_removes_names_and_keeps_columns(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path, option: str
) -> None:
    study = studies.create_study(sqlite_store, config())
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    out = tmp_path / "some.zip"
    cli.main(["export", study, option, "--keep", KEPT, "--out", str(out)])
    expected = studies.export_bundle(sqlite_store, study, without_names=True, keep=[KEPT])
    assert out.read_bytes() == expected
    for options, reason in (
        ([option, "--keep", "Grösse"], 'column "Grösse" is not in this study: choose from Größe'),
        (["--keep", KEPT], "an export with names keeps all columns"),
    ):
        with pytest.raises(SystemExit, match=reason):
            cli.main(["export", study, *options, "--out", str(tmp_path / "none.zip")])
    assert not (tmp_path / "none.zip").exists()


def test_groups_keep_their_order_and_shares(sqlite_store: Store) -> None:
    arms = [
        studies.Arm(f"p{n}", f"P {n}", group, "Low")
        for n, group in enumerate(("ward", "all", "Home", "ward", "Old"))
    ]
    rules = {"fair_column": "group", "fair_rule": "shares", "fair_shares": "ward: 30%, Home 20.5"}
    made = studies.from_roster(arms, STATES, title="Ward", budget=2, sitting=4, **rules)
    study = studies.create_study(sqlite_store, made)
    content = studies.export_bundle(sqlite_store, study, without_names=True)
    about = json.loads(files(content)["study.json"])["config"]
    groups = [arm["group"] for arm in about["arms"]]
    assert groups == ["group 3", "all", "Group 1", "group 3", "Group 2"]
    assert sorted(groups) == [groups[n] for n in (2, 4, 1, 0, 3)]
    assert about["fair_shares"] == "group 3 30, Group 1 20.5"
    studies.replay_bundle(content)


# Every field of a log, and what an export without names does with it. A new field must be added.
RENAMED, BLANK, MARKED, HARMLESS = "renamed", "left out", "computed anew", "stays"
FIELDS: dict[str, dict[str, str]] = {
    "About": {HARMLESS: "about"},
    "Computed": {MARKED: "about arithmetic", HARMLESS: "maths"},
    "Made": {MARKED: "config arithmetic", HARMLESS: "about maths"},
    "Joined": {RENAMED: "link participant", BLANK: "code"},
    "Consented": {RENAMED: "version"},
    "ProtocolFixed": {HARMLESS: "protocol digest"},
    "Planned": {MARKED: "arithmetic", HARMLESS: "about maths plan engine heard cold"},
    "Observed": {
        MARKED: "about arithmetic",
        BLANK: "report",
        HARMLESS: "maths episode epoch source",
    },
    "Corrected": {RENAMED: "states helped", HARMLESS: "week"},
    "HistoryAdded": {RENAMED: "records", HARMLESS: "moves"},
    "AnswersAdded": {RENAMED: "answers", HARMLESS: "count"},
    "SettingsChanged": {RENAMED: "settings"},
    "ArmsJoined": {RENAMED: "arms"},
    "ArmsLeft": {RENAMED: "arms"},
    "Flagged": {RENAMED: "arm", BLANK: "comment"},
    "Reasoned": {BLANK: "text", HARMLESS: "tags"},
    "FirstRoundDrawn": {MARKED: "arithmetic", HARMLESS: "about maths first_duel"},
    "DuelsClosed": {HARMLESS: "missing"},
    "ListEntry": {
        RENAMED: "id",
        HARMLESS: "state last_seen weeks_ago with_help without sure equal badly_off by_lot "
        "left_out seen_with_help better_with_help seen_without better_without reserve "
        "worse_with_help worse_without to_find_out",
    },
    "ReportUndone": {RENAMED: "arms", HARMLESS: "week since"},
    "Listed": {RENAMED: "entries", HARMLESS: "week empty by_answers about first_duel"},
    "ListChanged": {RENAMED: "removed added entries", BLANK: "because", HARMLESS: "week"},
    "PhotosAdded": {BLANK: "photos"},
    "Erased": {RENAMED: "name", BLANK: "stands", HARMLESS: "what events answers"},
    "Person": {
        RENAMED: "name link participant consented",
        BLANK: "code",
        HARMLESS: "joined_at practised repeats",
    },
    "Impression": {
        RENAMED: "annotator participant reason",
        HARMLESS: "place purpose sides session outcome shown_at answered_at response_ms trip_ms "
        "narrow",
    },
    "QueuedDuel": {HARMLESS: "place purpose sides ratings response_ms"},
    "Epoch": {
        RENAMED: "columns",
        HARMLESS: "episode epoch states arms next_states source helped by_lot duels own "
        "to_find_out",
    },
    "PlanMade": {
        HARMLESS: "plan made_at engine value random_value multiplier changed answers seconds digest"
    },
    "Arm": {RENAMED: "id label group columns", HARMLESS: "state present"},
    "StudyLog": {
        RENAMED: "config config_text annotators impressions epochs events",
        HARMLESS: "study status made_at asked given plans arrays queue",
    },
    # Of a configuration, only what can hold text of its owner.
    "StudyConfig": {
        RENAMED: "arms hidden_columns unused_columns list_columns fair_column fair_shares",
        BLANK: "instructions why consent translations completion_code annotator_limits",
        HARMLESS: "title noun question epoch_word states environment environment_name reason_tags",
    },
}


def fields_in(kind: type) -> set[str]:
    if issubclass(kind, msgspec.Struct):
        return set(kind.__struct_fields__)
    found = dataclasses.fields(kind)
    if kind is StudyConfig:  # its other fields are numbers, and words of ours
        found = tuple(one for one in found if one.name in ("arms", "states") or _is_text(one.type))
    return {one.name for one in found}


def _is_text(hint: object) -> bool:
    return hint is str or getattr(hint, "__origin__", None) is str


BODIES = [
    kind
    for kind in vars(event_bodies).values()
    if isinstance(kind, type)
    and issubclass(kind, msgspec.Struct)
    and kind.__module__ == event_bodies.__name__
    and kind is not event_bodies.Empty
]
VALUES = [Person, Impression, QueuedDuel, Epoch, PlanMade, studies.Arm, StudyLog, StudyConfig]


@pytest.mark.parametrize("kind", [*BODIES, *VALUES], ids=lambda kind: kind.__name__)
def test_every_field_of_a_log_is_renamed_or_left_out_or_harmless(kind: type) -> None:
    said = [name for names in FIELDS[kind.__name__].values() for name in names.split()]
    assert sorted(said) == sorted(fields_in(kind))


def test_a_column_to_keep_must_exist(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="choose from none, it has no columns"):
        studies.export_bundle(sqlite_store, study, without_names=True, keep=["age"])
