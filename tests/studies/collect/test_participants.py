"""Participants: a kind of their own, with completion codes, and with few duels held by one link."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from bundles import files, zipped
from playing import Clock, check_replay, clinic, cohort, cpap

from dopl_core import studies
from dopl_core.studies import Ask, CsvError, Finished, Store, StudyError, Waiting, access

BBB = "Panel, participant BBB"


def say(store: Store, study: str, outcome: str, participant: str = "BBB") -> None:
    found = studies.next_duel(store, study, "Panel", participant)
    assert isinstance(found, Ask)
    studies.answer(store, found.impression, outcome, too_fast_ms=0)


def test_a_person_with_the_name_of_a_participant_is_refused(store: Store) -> None:
    study = studies.create_study(store, cpap())
    say(store, study, "left")
    with pytest.raises(StudyError, match="is how participants are named; use another name"):
        access.invite(store, study, BBB)
    with pytest.raises(StudyError, match="is how participants are named"):
        studies.next_duel(store, study, "Panel, participant CCC")
    for person in ("Panel BBB", "Panel", "BBB"):
        assert isinstance(studies.next_duel(store, study, person), Ask)
        assert studies.own_answers(store, study, person) == []
    assert len(studies.own_answers(store, study, BBB)) == 1


@pytest.mark.parametrize("participant", ["x" * 101, "a b", " a", "a\n", "ä", "{id}"])
def test_ids_that_cannot_be_told_apart_are_refused(sqlite_store: Store, participant: str) -> None:
    study = studies.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="The participant id"):
        studies.next_duel(sqlite_store, study, "Panel", participant)
    assert studies.get_study(sqlite_store, study).annotators == 0


def test_participants_survive_export_import_and_replay(store: Store, clock: Clock) -> None:
    study = studies.create_study(
        store, clinic(ratings=2, quota=1, completion_code="C", own_codes=True)
    )
    for participant in ("BBB", "CCC"):
        say(store, study, "left", participant)
    before = studies.participants(store, study)
    content = studies.export_bundle(store, study)
    people = json.loads(files(content)["study.json"])["annotators"]
    assert [(one["link"], one["participant"]) for one in people] == [
        ("Panel", "BBB"),
        ("Panel", "CCC"),
    ]
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    check_replay(store, study)
    after = studies.participants(store, study)
    assert after.equals(before)
    assert after.code.str.fullmatch("C-[2-9A-Z]{8}").all()
    assert after.code.nunique() == 2
    found = studies.next_duel(store, study, "Panel", "BBB")
    assert found == Finished(1, "quota", after.code[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"participant": "CCC"', b'"participant": "DDD"'),
        (b'"participant": "CCC"', b'"participant": "BBB"'),
        (b'"link": "Panel"', b'"link": "Other"'),
    ],
)
def test_a_bundle_with_other_participants_than_its_log_is_refused(
    sqlite_store: Store, old: bytes, new: bytes
) -> None:
    study = studies.create_study(sqlite_store, clinic(ratings=2))
    for participant in ("BBB", "CCC"):
        say(sqlite_store, study, "left", participant)
    members = files(studies.export_bundle(sqlite_store, study))
    spoilt = members | {"study.json": members["study.json"].replace(old, new)}
    with pytest.raises(CsvError, match=r"is another participant in the log|is there twice"):
        studies.replay_bundle(zipped(spoilt))
    spoilt = members | {"duels.csv": members["duels.csv"].replace(b",CCC,", b",BBB,")}
    with pytest.raises(CsvError, match=r"duels.csv row 3: the id of another participant"):
        studies.replay_bundle(zipped(spoilt))


def test_the_code_is_for_the_full_number_of_answers_of_which_a_fifth_may_be_skips(
    store: Store,
) -> None:
    rules = {"quota": 5, "completion_code": "C0DE", "horizon": 9}
    study = studies.create_study(store, cpap(**rules))
    for outcome in ("skip", "skip", "left", "right", "left"):
        say(store, study, outcome)
    found = studies.next_duel(store, study, "Panel", "BBB")
    assert isinstance(found, Ask)  # the second skip does not count
    assert found.own == 4
    say(store, study, "left")
    assert studies.next_duel(store, study, "Panel", "BBB") == Finished(5, "quota", "C0DE")
    assert studies.participants(store, study).iloc[0].tolist() == ["Panel", "BBB", 6, 2, 5, "C0DE"]
    assert studies.undo(store, study, BBB)
    assert isinstance(studies.next_duel(store, study, "Panel", "BBB"), Ask)
    assert studies.participants(store, study).code.tolist() == [""]


def test_skips_alone_end_after_twice_the_quota_without_a_code(sqlite_store: Store) -> None:
    rules = {"quota": 3, "completion_code": "C0DE", "horizon": 9}
    study = studies.create_study(sqlite_store, cpap(**rules))
    for _ in range(6):
        say(sqlite_store, study, "skip")
    assert studies.next_duel(sqlite_store, study, "Panel", "BBB") == Finished(1, "skips")


def test_nobody_gets_a_code_without_an_id_or_without_a_quota(sqlite_store: Store) -> None:
    for rules in ({"quota": 1}, {"quota": 0}):
        study = studies.create_study(sqlite_store, cpap(completion_code="C0DE", **rules))
        found = studies.next_duel(sqlite_store, study, "Panel")
        assert isinstance(found, Ask)
        studies.answer(sqlite_store, found.impression, "left", too_fast_ms=0)
        say(sqlite_store, study, "left")
        studies.close_study(sqlite_store, study)
        found = studies.next_duel(sqlite_store, study, "Panel")
        assert found == Finished(1)
        code = "C0DE" if rules["quota"] else ""
        assert studies.next_duel(sqlite_store, study, "Panel", "BBB") == Finished(1, code=code)


def test_made_up_ids_hold_a_quarter_of_the_open_duels_and_not_for_long(
    store: Store, clock: Clock
) -> None:
    config = cohort(30, ("Low", "High"), 1, budget=5, sitting=100, lease_seconds=120)
    study = studies.create_study(store, config)
    found = [studies.next_duel(store, study, "Panel", f"made-up-{n}") for n in range(143)]
    assert sum(isinstance(one, Ask) for one in found) == 25
    assert {one.reason for one in found if isinstance(one, Waiting)} == {"others"}
    assert isinstance(studies.next_duel(store, study, "Other", "real-1"), Ask)  # another link
    people = [studies.next_duel(store, study, f"Person {n}") for n in range(74)]
    assert all(isinstance(one, Ask) for one in people)
    clock.wait(30)
    assert isinstance(studies.next_duel(store, study, "Panel", "real-2"), Ask)
    shown = studies.answers(store, study)
    still_held = shown[shown.outcome.isna() & shown.annotator.str.startswith("Panel")]
    assert len(still_held) == 16 + 1  # nine of the leases were shorter than 30 seconds


def test_participants_who_have_answered_leave_a_quarter_of_the_duels_to_others(
    sqlite_store: Store, clock: Clock
) -> None:
    config = cohort(30, ("Low", "High"), 1, budget=5, sitting=40)
    study = studies.create_study(sqlite_store, config)
    for n in range(20):
        say(sqlite_store, study, "skip", f"p{n}")
    held = [studies.next_duel(sqlite_store, study, "Panel", f"p{n}") for n in range(20)]
    assert sum(isinstance(one, Ask) for one in held) == 15  # of 20 that are open
    assert isinstance(studies.next_duel(sqlite_store, study, "Ann"), Ask)


def test_an_id_belongs_to_the_browser_that_first_used_it(store: Store) -> None:
    study = studies.create_study(store, cpap())
    link = access.find_invite(store, access.invite(store, study, "Panel"))
    assert link is not None
    assert access.take_seat(store, link, "BBB", "browser-1")
    assert access.take_seat(store, link, "BBB", "browser-1")
    assert not access.take_seat(store, link, "BBB", "browser-2")
    assert access.take_seat(store, link, "CCC", "browser-1")  # a shared computer
    assert access.has_seat(store, link, "BBB", "browser-1")
    assert not access.has_seat(store, link, "BBB", "")
    assert not access.has_seat(store, link, "DDD", "browser-1")
    with pytest.raises(StudyError, match="did not keep its cookie"):
        access.take_seat(store, link, "DDD", "")
    assert access.release_seat(store, study, "Panel", "BBB")
    assert not access.release_seat(store, study, "Panel", "BBB")
    assert access.take_seat(store, link, "BBB", "browser-2")
    assert not access.has_seat(store, link, "BBB", "browser-1")


def test_exactly_one_of_several_browsers_gets_an_id(store: Store) -> None:
    study = studies.create_study(store, cpap())
    link = access.find_invite(store, access.invite(store, study, "Panel"))
    assert link is not None
    with ThreadPoolExecutor(6) as threads:
        taken = [threads.submit(access.take_seat, store, link, "BBB", f"{n}") for n in range(6)]
    assert sum(one.result() for one in taken) == 1


def test_another_link_with_the_same_id_is_another_participant(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    say(sqlite_store, study, "left")
    found = studies.next_duel(sqlite_store, study, "Second panel", "BBB")
    assert isinstance(found, Ask)
    assert found.own == 0
    assert list(studies.participants(sqlite_store, study).link) == ["Panel", "Second panel"]
