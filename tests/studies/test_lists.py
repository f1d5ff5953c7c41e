"""What a list says: true words about who is on it, and what a report would change."""

from dataclasses import replace

import pytest
from playing import clinic

from dopl_core.studies import lists, service
from dopl_core.studies.lists import Listed, WeekList
from dopl_core.studies.service import Store

ADA = Listed("p1", "Ada", "ward", "Low", "Low", 0, 0.62, 0.41, 0.85, False)
WEEK = WeekList(3, 0, [ADA], False, "week", "High")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "With help better off next week in 62 of 100 such weeks, without in 41 (fairly sure)"),
        ({"sure": 0.97}, "(quite sure)"),
        ({"sure": 0.7}, "Not known yet: on the list to find out."),
        ({"with_help": 0.45}, "Not known yet"),
        ({"with_help": 0.2, "sure": 0.99}, "Not known yet"),  # never a loss as a gain
        ({"equal": True}, "picked by chance"),
        ({"state": "High", "last_seen": "High"}, "With help still in the best state next week"),
    ],
)
def test_a_reason_is_a_gain_that_is_known_or_that_none_is(change: dict, words: str) -> None:
    assert words in lists.why(replace(ADA, **change), WEEK)


def test_words_are_the_owners() -> None:
    assert "next month in 62 of 100 such months" in lists.why(ADA, replace(WEEK, word="month"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "Low"),
        ({"state": None, "weeks_ago": 2}, "Unknown: last seen Low, two weeks ago"),
        ({"state": None, "weeks_ago": 1}, "Unknown: last seen Low, one week ago"),
        ({"state": None, "weeks_ago": 14}, "Unknown: last seen Low, 14 weeks ago"),
        ({"state": None, "last_seen": None}, "Unknown: never seen yet"),
    ],
)
def test_unknown_states_say_when_somebody_was_last_seen(change: dict, words: str) -> None:
    assert lists.whereabouts_words(replace(ADA, **change)) == words


def test_a_list_of_equals_was_left_to_chance() -> None:
    assert not WEEK.all_equal
    assert replace(WEEK, listed=[replace(ADA, equal=True)]).all_equal
    assert not replace(WEEK, listed=[]).all_equal


def test_what_a_report_says_is_counted_and_nothing_is_assumed() -> None:
    before = {"a": "Low", "b": "Low", "c": None, "d": "High", "e": "Low"}
    now = {"a": "High", "b": "Low", "c": "Low", "d": None}
    said = lists.report_words(before, now, ["a", "b"], ["a", "d"])
    assert said == (
        "1 moved, 1 as before, 2 unknown, 1 seen again, 1 of 2 helped and 1 not on the list"
    )
    assert lists.report_words({"a": "Low"}, {"a": "Low"}, ["a"], ["a"]) == (
        "0 moved, 1 as before, 0 unknown, 1 of 1 helped"
    )


def test_every_reported_week_can_be_looked_at_as_it_is_known_by_now(store: Store) -> None:
    study = service.create_study(store, clinic(horizon=1, confidence="calibrated"))
    assert lists.read_week(store, study, 0)["p1"] == lists.Standing("Low", False)
    states = {"p1": "High", "p2": "High", "p3": "Low"}
    service.observe(store, study, states, {"p1": {"age": "61"}}, helped=["p1"])
    service.advance(store, study)
    found = lists.read_week(store, study, 1)
    assert found["p1"] == lists.Standing("High", True)
    assert found["p4"] == lists.Standing(None, False)
    service.correct(store, study, 1, {"p4": "Low"}, {"p1": False})
    found = lists.read_week(store, study, 1)
    assert (found["p1"].helped, found["p4"].state) == (False, "Low")
    assert lists.read_cards(store, study)["p1"] == {"age": "61", "hours": "1 2 3"}
