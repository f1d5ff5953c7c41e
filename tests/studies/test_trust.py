"""Excluding a person from the learner, and taking it back, on both databases."""

import random

import pytest
import sqlalchemy as sa
from playing import Clock, clinic, cpap, digest, play

from dopl_core.studies import arrays, schema, service
from dopl_core.studies.service import Ask, Store, StudyError

EVERYBODY = ("Zed", "Ann", "Bob")


def sitting(store: Store, people: tuple[str, ...]) -> str:
    """A study whose first sitting these people have answered, each in their own way."""
    config = clinic(confidence="calibrated", sitting=6, ratings=len(people), horizon=1)
    study = service.create_study(store, config)
    for name in people:
        while isinstance(ask := service.next_duel(store, study, name), Ask):
            said = random.Random(f"{name} {ask.left.arm} {ask.right.arm}").choice(("left", "right"))
            service.answer(store, ask.impression, said, too_fast_ms=0)
    return study


def planned(store: Store, study: str) -> tuple[str, int]:
    """The digest of all arrays of the next plan, and the answers it was made with."""
    assert service.advance(store, study)
    last = service.plans(store, study).iloc[-1]
    return last.digest, last.answers


def check_sound(store: Store, study: str) -> None:
    """Folded, replayed, without its snapshot and through a bundle it is the same, to the bit."""
    folded = digest(store, study)
    assert arrays.digest(service.replay_study(store, study).state()) == folded
    with store.write() as connection:
        connection.execute(sa.delete(schema.snapshots))
    assert digest(store, study) == folded
    content, out = service.export_bundle(store, study), service.excluded(store, study)
    service.delete_study(store, study)
    service.import_bundle(store, content)
    assert service.export_bundle(store, study) == content
    assert digest(store, study) == folded
    assert service.excluded(store, study) == out


def test_without_a_person_the_plan_is_as_if_they_had_never_answered(store: Store) -> None:
    others = planned(store, sitting(store, ("Ann", "Bob")))
    study = sitting(store, EVERYBODY)
    service.exclude(store, study, "Zed")
    assert planned(store, study) == others
    check_sound(store, study)


def test_taken_back_the_plan_is_as_if_they_had_never_been_excluded(store: Store) -> None:
    everybody = planned(store, sitting(store, EVERYBODY))
    study = sitting(store, EVERYBODY)
    service.exclude(store, study, "Zed")
    service.include(store, study, "Zed")
    assert planned(store, study) == everybody
    assert planned(store, sitting(store, ("Ann", "Bob"))) != everybody
    check_sound(store, study)


def test_a_snapshot_is_not_believed_once_somebody_else_is_excluded(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 60, people=EVERYBODY)
    whole = digest(store, study)
    said = service.answers(store, study).query("outcome in ('left', 'right')").annotator
    total = service.load_learner(store, study).counts.total()
    service.exclude(store, study, "Zed")
    assert service.load_learner(store, study).counts.total() == total - (said == "Zed").sum()
    service.include(store, study, "Zed")
    assert digest(store, study) == whole


def test_answers_given_meanwhile_count_once_it_is_taken_back(store: Store, clock: Clock) -> None:
    study = service.create_study(store, cpap(ratings=2, ties_allowed=True))
    play(store, study, 30, people=EVERYBODY, clock=clock)
    service.exclude(store, study, "Zed")
    play(store, study, 40, people=EVERYBODY, clock=clock, seed=1)
    check_sound(store, study)
    before = service.load_learner(store, study).counts.total()
    play(store, study, 10, people=("Zed",), clock=clock, undo=0.5)
    assert service.load_learner(store, study).counts.total() == before
    service.include(store, study, "Zed")
    kept = service.answers(store, study).outcome.isin(["left", "right", "tie"]).sum()
    assert service.load_learner(store, study).counts.total() == kept > before
    service.exclude(store, study, "Ann")
    play(store, study, 20, people=EVERYBODY, clock=clock, seed=2)
    check_sound(store, study)


def test_in_a_clinic_lists_wait_for_nobody_and_all_is_played_again(
    store: Store, clock: Clock
) -> None:
    study = service.create_study(store, clinic(horizon=1, confidence="calibrated", answers=3))
    for seed, name in enumerate(("Zed", "Ann", "Bob")):
        play(store, study, 12, people=EVERYBODY, clock=clock, seed=seed)
        service.exclude(store, study, name)
    play(store, study, 12, people=EVERYBODY, clock=clock)
    assert service.load_learner(store, study).counts.total() == 0
    check_sound(store, study)


def test_only_who_is_there_is_excluded_and_only_once(store: Store) -> None:
    study = service.create_study(store, cpap())
    play(store, study, 5, people=("Ann",))
    before = service.last_event(store, study)
    with pytest.raises(StudyError, match='nobody called "Bob"'):
        service.exclude(store, study, "Bob")
    with pytest.raises(StudyError, match='"Ann" is not excluded'):
        service.include(store, study, "Ann")
    assert service.last_event(store, study) == before
    service.exclude(store, study, "Ann")
    with pytest.raises(StudyError, match='"Ann" is excluded already'):
        service.exclude(store, study, "Ann")
    assert service.excluded(store, study) == ["Ann"]


def test_a_plan_that_is_being_made_is_made_again_without_them(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dopl_core.studies import running

    study, make = sitting(sqlite_store, EVERYBODY), running._make_plan
    made = []

    def while_it_is_made(*given: object) -> object:
        made.append(make(*given))  # type: ignore[arg-type]
        if len(made) == 1:
            service.exclude(sqlite_store, study, "Zed")
        return made[-1]

    monkeypatch.setattr(running, "_make_plan", while_it_is_made)
    found = planned(sqlite_store, study)
    assert len(made) == 2
    assert found == planned(sqlite_store, sitting(sqlite_store, ("Ann", "Bob")))


def test_a_new_study_is_of_edition_3_and_stays_of_it_through_a_bundle(sqlite_store: Store) -> None:
    study = sitting(sqlite_store, EVERYBODY)
    planned(sqlite_store, study)
    check_sound(sqlite_store, study)
    assert service.get_study(sqlite_store, study).config.edition == 3
    assert service.load_learner(sqlite_store, study).edition == 3
