"""What people do beside answering: look back and change; nobody does it for them."""

import json

import pytest
from playing import Clock, clinic, cpap, play

from dopl_core import studies
from dopl_core.studies import Arm, Ask, Finished, Store, StudyError
from dopl_core.studies.exchange import import_export
from dopl_core.studies.store import log_reader


def ask(store: Store, study: str, name: str = "Ann") -> Ask:
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask)
    return found


def say(store: Store, study: str, outcome: str, name: str = "Ann") -> Ask:
    found = ask(store, study, name)
    assert studies.answer(store, found.impression, outcome, too_fast_ms=0).saved
    return found


def wins(store: Store, study: str) -> list[list[float]]:
    return studies.load_learner(store, study).counts.wins().tolist()


def test_an_answer_of_this_round_can_be_changed_and_counts_as_if_given_so(
    store: Store, clock: Clock
) -> None:
    study, other = (studies.create_study(store, cpap()) for _ in range(2))
    first = say(store, study, "left")
    for outcome in ("right", "skip"):
        clock.wait(1)
        say(store, study, outcome)
    assert studies.change(store, first.impression, "Ann", "right")
    for outcome in ("right", "right", "skip"):
        say(store, other, outcome)
    assert wins(store, study) == wins(store, other)
    looked = studies.own_answers(store, study, "Ann")
    assert [one.outcome for one in looked] == ["skip", "right", "right"]
    assert all(one.can_change for one in looked)
    assert looked[-1].left == first.left


def test_a_changed_study_replays_and_is_exported_and_imported_to_the_bit(
    sqlite_store: Store, clock: Clock
) -> None:
    store = sqlite_store
    study = studies.create_study(store, cpap())
    changed = 0
    for turn in range(60):
        play(store, study, 1, seed=turn, clock=clock)
        for one in studies.own_answers(store, study, "Ann")[::2]:
            changed += studies.change(store, one.impression, "Ann", ("left", "skip")[turn % 2])
    assert changed > 20
    assert studies.get_study(store, study).episode > 3
    import_export.replay_study(store, study)
    content, before = studies.export_bundle(store, study), wins(store, study)
    studies.delete_study(store, study)
    assert studies.import_bundle(store, content) == study
    assert studies.export_bundle(store, study) == content
    assert wins(store, study) == before


def test_what_a_plan_has_used_cannot_be_changed_and_nobody_changes_anothers(
    sqlite_store: Store,
) -> None:
    study = studies.create_study(sqlite_store, cpap())
    first, *_ = (say(sqlite_store, study, "left") for _ in range(6))
    with pytest.raises(StudyError, match="somebody else"):
        studies.change(sqlite_store, first.impression, "Bob", "right")
    with pytest.raises(StudyError, match="not one of left"):
        studies.change(sqlite_store, first.impression, "Ann", "tie")
    studies.advance(sqlite_store, study)
    before = wins(sqlite_store, study)
    assert not studies.change(sqlite_store, first.impression, "Ann", "right")
    assert not any(one.can_change for one in studies.own_answers(sqlite_store, study, "Ann"))
    assert wins(sqlite_store, study) == before


def test_undo_after_a_change_takes_back_what_was_changed(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    first, _ = say(sqlite_store, study, "left"), say(sqlite_store, study, "left")
    studies.change(sqlite_store, first.impression, "Ann", "right")
    again = studies.undo(sqlite_store, study, "Ann")
    assert again is not None
    assert again.duel == first.duel
    assert [o.outcome for o in studies.own_answers(sqlite_store, study, "Ann")] == ["left"]


def test_a_person_is_asked_no_more_than_the_quota(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap(quota=2))
    for _ in range(2):
        say(sqlite_store, study, "left")
    assert studies.next_duel(sqlite_store, study, "Ann") == Finished(2, "quota")
    assert isinstance(studies.next_duel(sqlite_store, study, "Bob"), Ask)
    studies.undo(sqlite_store, study, "Ann")
    assert isinstance(studies.next_duel(sqlite_store, study, "Ann"), Ask)


def test_who_comes_first_is_told_how_much_is_asked_and_who_comes_back_is_not(
    sqlite_store: Store, clock: Clock
) -> None:
    study = studies.create_study(sqlite_store, cpap(quota=40, horizon=20))
    wanted = studies.get_study(sqlite_store, study).asked
    assert studies.arrival(sqlite_store, study, "Ann") == studies.Arrival(40, 7.0)
    times = [*[400] * 9, *[5000] * 11, *[400] * 21]
    told = {0: 7.0, 9: 7.0, 20: 5.0, 41: 3.0}  # a few fast clicks promise nobody more
    for number, took in enumerate([*times, 0]):
        if number in told:
            new = studies.arrival(sqlite_store, study, "Cas")
            assert new == studies.Arrival(min(40, wanted - number), told[number])
        name = ("Ann", "Bob")[number % 2]
        found = ask(sqlite_store, study, name)
        studies.answer(sqlite_store, found.impression, "left", response_ms=took, too_fast_ms=0)
    assert studies.arrival(sqlite_store, study, "Ann") is None


def test_a_round_ends_with_what_has_changed(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    for name in ("Ann", "Ann", "Bob", "Ann", "Bob", "Ann"):
        say(sqlite_store, study, "left", name)
    studies.advance(sqlite_store, study)
    end = studies.round_end(sqlite_store, study, "Ann")
    assert (end.own, end.decisions, len(end.listed)) == (4, 60, 4)
    changed = studies.plans(sqlite_store, study).changed.iloc[-1]
    assert end.changed == round(60 * changed)


def test_the_times_a_browser_measured_phones_and_panels_are_kept_and_exported(store: Store) -> None:
    study = studies.create_study(store, cpap())
    found = studies.next_duel(store, study, "Ann", "5f3a-77")
    assert isinstance(found, Ask)
    times = {"response_ms": 900, "trip_ms": 41, "narrow": True}
    studies.answer(store, found.impression, "left", too_fast_ms=0, **times)
    row = studies.answers(store, study).iloc[0]
    assert (row.response_ms, row.trip_ms, row.narrow, row.participant) == (900, 41, 1, "5f3a-77")
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content
    kept = log_reader.read_log(store, study).impressions[0]
    assert (kept.trip_ms, kept.narrow, kept.participant) == (41, 1, "5f3a-77")


def test_two_of_one_name_are_told_apart_by_their_ids(sqlite_store: Store) -> None:
    arms = [Arm(f"p{n}", name, state="Low") for n, name in enumerate(("Ann", "ann ", "Bo"))]
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=3, practice=False)
    study = studies.create_study(sqlite_store, config)
    names = set()
    for _ in range(2):
        found = say(sqlite_store, study, "left")
        names |= {found.left.label, found.right.label}
    assert names == {"Ann (p0)", "ann  (p1)", "Bo"}


def test_states_are_hidden_by_default_only_where_a_new_roster_has_more_to_judge_by() -> None:
    assert clinic().hide_state
    bare = [Arm(f"p{n}", "x", state="Low") for n in range(3)]
    assert not studies.from_roster(bare, ["Low", "High"], title="t", budget=2).hide_state
    from dopl_core.studies.model.config_json import from_json, to_json

    old = json.loads(to_json(clinic()))
    new = ("hide_state", "hide_description", "show_id", "why", "quota", "completion_code")
    for name in (*new, "tell_results"):
        del old[name]
    assert not from_json(json.dumps(old)).hide_state
