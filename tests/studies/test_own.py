"""What people do beside answering: look back, change, tell the owner; nobody does it for them."""

import json

import pytest
from playing import Clock, clinic, cpap, play

from dopl_core.studies import archive, exchange, service
from dopl_core.studies.episode import better_side, practice_duels
from dopl_core.studies.service import Arm, Ask, Finished, Store, StudyError
from dopl_core.studies.timing import Timing, heard


def ask(store: Store, study: str, name: str = "Ann") -> Ask:
    found = service.next_duel(store, study, name)
    assert isinstance(found, Ask)
    return found


def say(store: Store, study: str, outcome: str, name: str = "Ann") -> Ask:
    found = ask(store, study, name)
    assert service.answer(store, found.impression, outcome, too_fast_ms=0).saved
    return found


def wins(store: Store, study: str) -> list[list[float]]:
    return service.load_learner(store, study).counts.wins().tolist()


def test_an_answer_of_this_round_can_be_changed_and_counts_as_if_given_so(
    store: Store, clock: Clock
) -> None:
    study, other = (service.create_study(store, cpap()) for _ in range(2))
    first = say(store, study, "left")
    for outcome in ("right", "skip"):
        clock.wait(1)
        say(store, study, outcome)
    assert service.change(store, first.impression, "Ann", "right")
    for outcome in ("right", "right", "skip"):
        say(store, other, outcome)
    assert wins(store, study) == wins(store, other)
    looked = service.own_answers(store, study, "Ann")
    assert [one.outcome for one in looked] == ["skip", "right", "right"]
    assert all(one.can_change for one in looked)
    assert looked[-1].left == first.left


def test_a_changed_study_replays_and_is_exported_and_imported_to_the_bit(
    sqlite_store: Store, clock: Clock
) -> None:
    store = sqlite_store
    study = service.create_study(store, cpap())
    changed = 0
    for turn in range(60):
        play(store, study, 1, seed=turn, clock=clock)
        for one in service.own_answers(store, study, "Ann")[::2]:
            changed += service.change(store, one.impression, "Ann", ("left", "skip")[turn % 2])
    assert changed > 20
    assert service.get_study(store, study).episode > 3
    exchange.replay_study(store, study)
    content, before = service.export_bundle(store, study), wins(store, study)
    service.delete_study(store, study)
    assert service.import_bundle(store, content) == study
    assert service.export_bundle(store, study) == content
    assert wins(store, study) == before


def test_what_a_plan_has_used_cannot_be_changed_and_nobody_changes_anothers(
    sqlite_store: Store,
) -> None:
    study = service.create_study(sqlite_store, cpap())
    first, *_ = (say(sqlite_store, study, "left") for _ in range(6))
    with pytest.raises(StudyError, match="somebody else"):
        service.change(sqlite_store, first.impression, "Bob", "right")
    with pytest.raises(StudyError, match="not one of left"):
        service.change(sqlite_store, first.impression, "Ann", "tie")
    service.advance(sqlite_store, study)
    before = wins(sqlite_store, study)
    assert not service.change(sqlite_store, first.impression, "Ann", "right")
    assert not any(one.can_change for one in service.own_answers(sqlite_store, study, "Ann"))
    assert wins(sqlite_store, study) == before


def test_undo_after_a_change_takes_back_what_was_changed(sqlite_store: Store) -> None:
    study = service.create_study(sqlite_store, cpap())
    first, _ = say(sqlite_store, study, "left"), say(sqlite_store, study, "left")
    service.change(sqlite_store, first.impression, "Ann", "right")
    again = service.undo(sqlite_store, study, "Ann")
    assert again is not None
    assert again.duel == first.duel
    assert [o.outcome for o in service.own_answers(sqlite_store, study, "Ann")] == ["left"]


def test_a_flag_reaches_the_owner_and_the_bundle_and_changes_nothing_else(store: Store) -> None:
    study = service.create_study(store, clinic())
    shown = ask(store, study)
    before = wins(store, study)
    service.flag(store, shown.impression, "Ann", "  =the hours look wrong ", shown.left.arm)
    for wrong, words in (("", "0 characters"), ("x" * 501, "501"), ("a\0b", "zero|NUL|cannot")):
        with pytest.raises(StudyError, match=words):
            service.flag(store, shown.impression, "Ann", wrong)
    with pytest.raises(StudyError, match="another duel"):
        service.flag(store, shown.impression, "Ann", "x", "nobody")
    with pytest.raises(StudyError, match="somebody else"):
        service.flag(store, shown.impression, "Bob", "x")
    told = service.flags(store, study)
    assert told[["annotator", "about", "comment"]].values.tolist() == [
        ["Ann", shown.left.arm, "=the hours look wrong"]
    ]
    assert wins(store, study) == before
    content = service.export_bundle(store, study)
    service.delete_study(store, study)
    service.import_bundle(store, content)
    assert service.flags(store, study).equals(told)


def test_a_person_is_asked_no_more_than_the_quota(sqlite_store: Store) -> None:
    study = service.create_study(sqlite_store, cpap(quota=2))
    for _ in range(2):
        say(sqlite_store, study, "left")
    assert service.next_duel(sqlite_store, study, "Ann") == Finished(2, "quota")
    assert isinstance(service.next_duel(sqlite_store, study, "Bob"), Ask)
    service.undo(sqlite_store, study, "Ann")
    assert isinstance(service.next_duel(sqlite_store, study, "Ann"), Ask)


def test_who_comes_first_is_told_how_much_is_asked_and_who_comes_back_is_not(
    sqlite_store: Store, clock: Clock
) -> None:
    study = service.create_study(sqlite_store, cpap(quota=4))
    assert service.arrival(sqlite_store, study, "Ann") == service.Arrival(4, 7.0)
    for took in (1000, 3000, 2000):
        found = ask(sqlite_store, study)
        service.answer(sqlite_store, found.impression, "left", response_ms=took, too_fast_ms=0)
    assert service.arrival(sqlite_store, study, "Ann") is None
    assert service.arrival(sqlite_store, study, "Bob") == service.Arrival(3, 2.0)


def test_a_round_ends_with_what_has_changed(sqlite_store: Store) -> None:
    study = service.create_study(sqlite_store, cpap())
    for name in ("Ann", "Ann", "Bob", "Ann", "Bob", "Ann"):
        say(sqlite_store, study, "left", name)
    service.advance(sqlite_store, study)
    end = service.round_end(sqlite_store, study, "Ann")
    assert (end.own, end.decisions, len(end.listed)) == (4, 60, 4)
    changed = service.plans(sqlite_store, study).changed.iloc[-1]
    assert end.changed == round(60 * changed)


def test_the_times_a_browser_measured_phones_and_panels_are_kept_and_exported(store: Store) -> None:
    study = service.create_study(store, cpap())
    found = service.next_duel(store, study, "Ann", "5f3a-77")
    assert isinstance(found, Ask)
    times = {"response_ms": 900, "trip_ms": 41, "narrow": True}
    service.answer(store, found.impression, "left", too_fast_ms=0, **times)
    row = service.answers(store, study).iloc[0]
    assert (row.response_ms, row.trip_ms, row.narrow, row.participant) == (900, 41, 1, "5f3a-77")
    content = service.export_bundle(store, study)
    service.delete_study(store, study)
    service.import_bundle(store, content)
    assert service.export_bundle(store, study) == content
    kept = archive.read(store, study).impressions[0]
    assert (kept.trip_ms, kept.narrow, kept.participant) == (41, 1, "5f3a-77")


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        ({"impression": 7, "response": 812.6, "trip": 40, "narrow": True}, Timing(812, 40, True)),
        ({"impression": 7, "response": 812, "trip": None}, Timing(812)),
        ({"impression": 6, "response": 812, "trip": 40}, Timing(1000)),  # of another duel
        ({"impression": 7, "response": 9000, "trip": 40}, Timing(1000)),  # it was not there so long
        ({"impression": 7, "response": -1}, Timing(1000)),
        ({"impression": 7, "response": "1"}, Timing(1000)),
        ({"impression": 7, "response": True}, Timing(1000)),
        ({"impression": 7, "response": float("nan")}, Timing(1000)),
        ({"impression": 7, "response": 5, "trip": 1e30, "narrow": "yes"}, Timing(5)),
        ([7, 812], Timing(1000)),
        (None, Timing(1000)),
    ],
)
def test_a_browser_is_believed_as_far_as_it_can_be_true(said: object, believed: Timing) -> None:
    assert heard(said, 7, 1000) == believed


def test_practice_is_never_against_the_order_that_the_owner_gave() -> None:
    for seed in range(20):
        config = clinic(seed=seed, practice=True)
        for duel in practice_duels(config).tolist():
            better = better_side(config, tuple(duel))
            assert better == ("left" if duel[1] > duel[3] else "right")
        turned = cpap(seed=seed, practice=True, ordered=True)
        for duel in practice_duels(turned).tolist():
            assert better_side(turned, tuple(duel)) == ("left" if duel[1] > duel[3] else "right")


def test_two_of_one_name_are_told_apart_by_their_ids(sqlite_store: Store) -> None:
    arms = [Arm(f"p{n}", name, state="Low") for n, name in enumerate(("Ann", "ann ", "Bo"))]
    config = service.from_roster(arms, ["Low", "High"], title="Ward", budget=3, practice=False)
    study = service.create_study(sqlite_store, config)
    names = set()
    for _ in range(2):
        found = say(sqlite_store, study, "left")
        names |= {found.left.label, found.right.label}
    assert names == {"Ann (p0)", "ann  (p1)", "Bo"}


def test_states_are_hidden_by_default_only_where_a_new_roster_has_more_to_judge_by() -> None:
    assert clinic().hide_state
    bare = [Arm(f"p{n}", "x", state="Low") for n in range(3)]
    assert not service.from_roster(bare, ["Low", "High"], title="t", budget=2).hide_state
    from dopl_core.studies.config_json import from_json, to_json

    old = json.loads(to_json(clinic()))
    new = ("hide_state", "hide_description", "show_id", "why", "quota", "completion_code")
    for name in (*new, "tell_results"):
        del old[name]
    assert not from_json(json.dumps(old)).hide_state
