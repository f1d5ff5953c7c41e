"""Excluding a person from the learner, and taking it back, on both databases."""

import random

import pytest
import sqlalchemy as sa
from playing import Clock, clinic, cpap, digest, play

from dopl_core import studies
from dopl_core.studies import Ask, Store, StudyError
from dopl_core.studies.store import blobs, tables

EVERYBODY = ("Zed", "Ann", "Bob")


def sitting(store: Store, people: tuple[str, ...]) -> str:
    """A study whose first sitting these people have answered, each in their own way."""
    config = clinic(confidence="calibrated", sitting=6, ratings=len(people), horizon=1)
    study = studies.create_study(store, config)
    for name in people:
        while isinstance(ask := studies.next_duel(store, study, name), Ask):
            said = random.Random(f"{name} {ask.left.arm} {ask.right.arm}").choice(("left", "right"))
            studies.answer(store, ask.impression, said, too_fast_ms=0)
    return study


def planned(store: Store, study: str) -> tuple[str, int]:
    """The digest of all arrays of the next plan, and the answers it was made with."""
    assert studies.advance(store, study)
    last = studies.plans(store, study).iloc[-1]
    return last.digest, last.answers


def check_sound(store: Store, study: str) -> None:
    """Folded, replayed, without its snapshot and through a bundle it is the same, to the bit."""
    folded = digest(store, study)
    assert blobs.digest(studies.replay_study(store, study).state()) == folded
    with store.write() as connection:
        connection.execute(sa.delete(tables.snapshots))
    assert digest(store, study) == folded
    content, out = studies.export_bundle(store, study), studies.excluded_annotators(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    assert digest(store, study) == folded
    assert studies.excluded_annotators(store, study) == out


def test_without_a_person_the_plan_is_as_if_they_had_never_answered(store: Store) -> None:
    others = planned(store, sitting(store, ("Ann", "Bob")))
    study = sitting(store, EVERYBODY)
    studies.exclude(store, study, "Zed")
    assert planned(store, study) == others
    check_sound(store, study)


def test_taken_back_the_plan_is_as_if_they_had_never_been_excluded(store: Store) -> None:
    everybody = planned(store, sitting(store, EVERYBODY))
    study = sitting(store, EVERYBODY)
    studies.exclude(store, study, "Zed")
    studies.include(store, study, "Zed")
    assert planned(store, study) == everybody
    assert planned(store, sitting(store, ("Ann", "Bob"))) != everybody
    check_sound(store, study)


def test_a_snapshot_is_not_believed_once_somebody_else_is_excluded(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 60, people=EVERYBODY)
    whole = digest(store, study)
    said = studies.answers(store, study).query("outcome in ('left', 'right')").annotator
    total = studies.load_learner(store, study).counts.total()
    studies.exclude(store, study, "Zed")
    assert studies.load_learner(store, study).counts.total() == total - (said == "Zed").sum()
    studies.include(store, study, "Zed")
    assert digest(store, study) == whole


def test_answers_given_meanwhile_count_once_it_is_taken_back(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap(ratings=2, ties_allowed=True))
    play(store, study, 30, people=EVERYBODY, clock=clock)
    studies.exclude(store, study, "Zed")
    play(store, study, 40, people=EVERYBODY, clock=clock, seed=1)
    check_sound(store, study)
    before = studies.load_learner(store, study).counts.total()
    play(store, study, 10, people=("Zed",), clock=clock, undo=0.5)
    assert studies.load_learner(store, study).counts.total() == before
    studies.include(store, study, "Zed")
    kept = studies.answers(store, study).outcome.isin(["left", "right", "tie"]).sum()
    assert studies.load_learner(store, study).counts.total() == kept > before
    studies.exclude(store, study, "Ann")
    play(store, study, 20, people=EVERYBODY, clock=clock, seed=2)
    check_sound(store, study)


def test_in_a_clinic_lists_wait_for_nobody_and_all_is_played_again(
    store: Store, clock: Clock
) -> None:
    study = studies.create_study(store, clinic(horizon=1, confidence="calibrated", answers=3))
    for seed, name in enumerate(("Zed", "Ann", "Bob")):
        play(store, study, 12, people=EVERYBODY, clock=clock, seed=seed)
        studies.exclude(store, study, name)
    play(store, study, 12, people=EVERYBODY, clock=clock)
    assert studies.load_learner(store, study).counts.total() == 0
    check_sound(store, study)


def test_only_who_is_there_is_excluded_and_only_once(store: Store) -> None:
    study = studies.create_study(store, cpap())
    play(store, study, 5, people=("Ann",))
    before = studies.last_event(store, study)
    with pytest.raises(StudyError, match='nobody called "Bob"'):
        studies.exclude(store, study, "Bob")
    with pytest.raises(StudyError, match='"Ann" is not excluded'):
        studies.include(store, study, "Ann")
    assert studies.last_event(store, study) == before
    studies.exclude(store, study, "Ann")
    with pytest.raises(StudyError, match='"Ann" is excluded already'):
        studies.exclude(store, study, "Ann")
    assert studies.excluded_annotators(store, study) == ["Ann"]


def test_a_plan_that_is_being_made_is_made_again_without_them(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dopl_core.studies.operate import planning

    study, make = sitting(sqlite_store, EVERYBODY), planning._make_plan
    made = []

    def while_it_is_made(*given: object) -> object:
        made.append(make(*given))  # type: ignore[arg-type]
        if len(made) == 1:
            studies.exclude(sqlite_store, study, "Zed")
        return made[-1]

    monkeypatch.setattr(planning, "_make_plan", while_it_is_made)
    found = planned(sqlite_store, study)
    assert len(made) == 2
    assert found == planned(sqlite_store, sitting(sqlite_store, ("Ann", "Bob")))
