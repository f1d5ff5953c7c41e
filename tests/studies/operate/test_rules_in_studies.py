"""The clinic's rules in a study: kept by its lists, in bundles, and the same when played again."""

from collections import Counter

import pytest
from playing import STATES, check_replay

from dopl_core import studies
from dopl_core.studies import Arm, Ask, Store
from dopl_core.studies.store import log_reader


def ward(number: int) -> Arm:
    columns = {"ward": "North" if number % 3 else "South"}
    return Arm(f"p{number}", f"p{number}", state=STATES[number % 3], columns=columns)


def clinic(**rules: object) -> studies.StudyConfig:
    own = {"title": "Clinic", "budget": 3, "engine": "lagrangian", "practice": False}
    return studies.from_roster([ward(n) for n in range(9)], STATES, **(own | rules))


def report(store: Store, study: str, also: tuple[str, ...] = ()) -> list[str]:
    """Everybody stays; the list is helped, and others are too. Gives the next list."""
    week = studies.read_lists(store, study)[-1]
    helped = [*(one.id for one in week.listed), *also]
    studies.observe(store, study, studies.present_states(store, study), helped=helped)
    studies.advance(store, study)
    return [one.id for one in studies.read_lists(store, study)[-1].listed]


def test_rules_are_kept_exported_and_played_again_to_the_bit(store: Store) -> None:
    config = clinic(once_in=2, fair_column="ward", by_lot=1, wait_after_joining=2, most_times=4)
    study = studies.create_study(store, config)
    studies.join(store, study, [ward(9)])
    before = [one.id for one in studies.read_lists(store, study)[-1].listed]
    for week in range(5):
        also = tuple(x for x in ("p8",) if week == 1 and x not in before)
        now = report(store, study, also)
        assert not set(now) & {*before, *also}
        assert week > 1 or "p9" not in now
        before = now
        if week == 2:
            studies.change_settings(store, study, fair_rule="even", most_times=0)
    check_replay(store, study)
    lists = [epoch.arms.tolist() for epoch in log_reader.read_log(store, study).epochs]
    exported = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, exported)
    assert [epoch.arms.tolist() for epoch in log_reader.read_log(store, study).epochs] == lists
    assert studies.export_bundle(store, study) == exported


def test_a_group_gets_its_share_of_the_places_over_time(sqlite_store: Store) -> None:
    shares = {"fair_rule": "shares", "fair_shares": "South 50", "budget": 2}
    study = studies.create_study(sqlite_store, clinic(fair_column="ward", **shares))
    lists = [[one.id for one in studies.read_lists(sqlite_store, study)[-1].listed]]
    lists += [report(sqlite_store, study) for _ in range(5)]
    had = Counter(int(arm[1:]) % 3 == 0 for listed in lists for arm in listed)
    assert had[True] >= 5


def test_a_list_is_shorter_if_the_rules_leave_too_few_and_says_so(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic(budget=5, once_in=2))
    assert studies.read_lists(sqlite_store, study)[-1].empty_places == 0
    assert len(report(sqlite_store, study)) == 4
    week = studies.read_lists(sqlite_store, study)[-1]
    assert week.empty_places == 1
    assert studies.short_list_text(week) == (
        "1 place is empty: by your rules nobody else may be helped this week."
    )
    exported = studies.export_bundle(sqlite_store, study)
    studies.delete_study(sqlite_store, study)
    studies.import_bundle(sqlite_store, exported)
    assert studies.read_lists(sqlite_store, study)[-1] == week
    assert studies.export_bundle(sqlite_store, study) == exported


def test_a_list_of_one_is_made_and_answers_come_from_further_pairs(store: Store) -> None:
    study = studies.create_study(store, clinic(budget=1, answers=3))
    assert len(studies.read_lists(store, study)[-1].listed) == 1
    for _ in range(3):
        found = studies.next_duel(store, study, "Ann")
        assert isinstance(found, Ask)
        assert studies.answer(store, found.impression, "left", too_fast_ms=0).saved
    assert studies.get_study(store, study).given == 3
    assert len(report(store, study)) == 1
    studies.replay_study(store, study)


def test_a_simulated_world_needs_two_to_compare() -> None:
    with pytest.raises(studies.StudyError, match="budget is 1: a simulated world compares"):
        studies.from_environment("cpap", budget=1)
