"""Consent: nothing is asked and nothing counts before a person agrees to the present text."""

import json

import pytest
from bundles import files, zipped
from playing import check_replay, clinic, cpap, one_answer

from dopl_core import studies
from dopl_core.studies import Ask, Consent, CsvError, Finished, Store, StudyError, access

TEXT = "We keep your answers for a year.\n\nYou can stop at any time."


def kinds(store: Store, study: str) -> list[str]:
    rows = files(studies.export_bundle(store, study))["events.csv"].decode().splitlines()
    return [row.split(",")[3] for row in rows[1:]]


def agree(store: Store, study: str, name: str = "Ann", participant: str = "") -> None:
    asked = studies.next_duel(store, study, name, participant)
    assert isinstance(asked, Consent)
    studies.agree(store, study, name, asked.version, participant)


@pytest.mark.parametrize("participant", ["", "BBB"])
def test_nothing_is_asked_and_nothing_recorded_before_somebody_agrees(
    store: Store, participant: str
) -> None:
    study = studies.create_study(store, cpap(consent=TEXT, practice=True))
    asked = studies.next_duel(store, study, "Ann", participant)
    assert asked == Consent(TEXT, studies.coming_config(store, study).consent_version, False)
    studies.skip_practice(store, study, "Ann")
    assert studies.undo(store, study, "Ann") is None
    assert studies.get_study(store, study).annotators == 0
    assert not {"joined", "shown", "practice_skipped"} & set(kinds(store, study))
    agree(store, study, "Ann", participant)
    ask = studies.next_duel(store, study, "Ann", participant)
    assert isinstance(ask, Ask)
    assert ask.purpose == "practice"
    assert [kind for kind in kinds(store, study) if kind in ("joined", "consented", "shown")] == [
        "joined",
        "consented",
        "shown",
    ]
    check_replay(store, study)


def test_a_new_text_holds_at_once_and_is_asked_again(store: Store) -> None:
    study = studies.create_study(store, cpap(consent=TEXT))
    agree(store, study)
    one_answer(store, study, "Ann")
    ask = studies.next_duel(store, study, "Ann")
    assert isinstance(ask, Ask)
    last = studies.own_answers(store, study, "Ann")[0]
    studies.change_settings(store, study, consent="We keep your answers for two years.")
    before = studies.last_event(store, study)
    for refused in (
        lambda: studies.answer(store, ask.impression, "left", too_fast_ms=0),
        lambda: studies.change(store, last.impression, "Ann", "skip"),
        lambda: studies.undo(store, study, "Ann"),
    ):
        with pytest.raises(StudyError, match="The consent text has changed"):
            refused()
    assert studies.last_event(store, study) == before
    asked = studies.next_duel(store, study, "Ann")
    assert isinstance(asked, Consent)
    assert asked.again
    agree(store, study)
    again = studies.next_duel(store, study, "Ann")
    assert isinstance(again, Ask)
    assert again.impression == ask.impression
    assert studies.answer(store, ask.impression, "left", too_fast_ms=0).saved
    table = studies.consents(store, study)
    assert table.annotator.tolist() == ["Ann", "Ann"]
    assert table.present.tolist() == [False, True]
    assert table.version.nunique() == 2
    check_replay(store, study)


def test_agreeing_twice_is_recorded_once_and_to_another_text_not_at_all(store: Store) -> None:
    study = studies.create_study(store, cpap(consent=TEXT))
    version = studies.coming_config(store, study).consent_version
    for _ in range(2):
        studies.agree(store, study, "Ann", version)
    assert len(studies.consents(store, study)) == 1
    for other in ("", "0123456789ab"):
        with pytest.raises(StudyError, match="Please read it again"):
            studies.agree(store, study, "Bob", other)


def test_the_owner_and_studies_without_a_text_need_no_consent(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap(consent=TEXT))
    one_answer(sqlite_store, study, access.OWNER)
    plain = studies.create_study(sqlite_store, cpap(consent=" \n"))
    one_answer(sqlite_store, plain, "Ann")
    agree(sqlite_store, study)
    studies.change_settings(sqlite_store, study, consent="")
    one_answer(sqlite_store, study, "Bob")
    with pytest.raises(StudyError, match="Please read it again"):
        studies.agree(sqlite_store, study, "Cy", "")


def test_people_who_are_done_are_thanked_and_not_asked_again(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap(consent=TEXT, quota=1))
    agree(sqlite_store, study)
    one_answer(sqlite_store, study, "Ann")
    studies.change_settings(sqlite_store, study, consent="Another text.")
    assert isinstance(studies.next_duel(sqlite_store, study, "Ann"), Finished)
    studies.close_study(sqlite_store, study)
    assert isinstance(studies.next_duel(sqlite_store, study, "Bob"), Finished)
    assert studies.get_study(sqlite_store, study).annotators == 1


def test_consent_survives_export_and_import(store: Store) -> None:
    study = studies.create_study(store, clinic(consent=TEXT))
    agree(store, study)
    one_answer(store, study, "Ann")
    content = studies.export_bundle(store, study)
    nameless = studies.export_bundle(store, study, without_names=True)
    table = studies.consents(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    assert studies.consents(store, study).equals(table)
    assert not isinstance(studies.next_duel(store, study, "Ann"), Consent)
    check_replay(store, study)
    assert TEXT.splitlines()[0].encode() not in b"".join(files(nameless).values())
    studies.delete_study(store, study)
    studies.import_bundle(store, nameless)
    assert studies.consents(store, study).version.tolist() == ["text 1"]


def test_a_bundle_in_which_somebody_agreed_to_another_text_is_refused(
    sqlite_store: Store,
) -> None:
    study = studies.create_study(sqlite_store, clinic(consent=TEXT))
    agree(sqlite_store, study)
    parts = files(studies.export_bundle(sqlite_store, study))
    about = json.loads(parts["study.json"])
    about["annotators"][0].pop("consented")
    with pytest.raises(CsvError, match='"Ann" agreed to another consent text'):
        studies.replay_bundle(zipped(parts | {"study.json": json.dumps(about).encode()}))
    version = studies.coming_config(sqlite_store, study).consent_version
    forged = parts["events.csv"].replace(version.encode(), b"0" * 12)
    with pytest.raises(CsvError, match="no consent text had the version 000000000000"):
        studies.replay_bundle(zipped(parts | {"events.csv": forged}))


def test_simulated_annotators_agree(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap(consent=TEXT))
    done = studies.rehearse(sqlite_store, study, annotators=2, answers=4)
    assert done.answers == 4
    answered = set(studies.answers(sqlite_store, study).annotator)
    assert answered <= set(studies.consents(sqlite_store, study).annotator)
