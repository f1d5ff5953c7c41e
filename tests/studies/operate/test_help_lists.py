"""Help lists: true reasons, states and outcomes; and the summary of a report."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from playing import clinic

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.operate import help_lists
from dopl_core.studies.operate.help_lists import Listed, WeekList

ADA = Listed("p1", "Low", "Low", 0, 0.62, 0.41, 0.85, False, label="Ada", group="ward")
SEEN = {"seen_with_help": 20, "better_with_help": 12, "seen_without": 30, "better_without": 5}
ADA = changed(ADA, **SEEN)
WEEK = WeekList(3, 0, [ADA], False, "week", ("Low", "High"), "patient")
SHARES = (
    'Patients in "Low" were better off the next week 12 of 20 times with help (60 %) and 5 of 30 '
    "times without help (17 %)."
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, SHARES),
        (
            {"better_without": 20},  # a loss is no reason
            f"Listed by the plan. {SHARES.replace('5 of 30', '20 of 30').replace('17', '67')}",
        ),
        ({"equal": True}, f"Tied with people off the list; chosen at random. {SHARES}"),
        ({"state": "High", "last_seen": "High"}, 'Patients in "High" were still there the next'),
        ({"badly_off": True}, f"Among the worst off. {SHARES}"),
        (
            {"badly_off": True, "equal": True},
            f"Among the worst off; tie broken at random. {SHARES}",
        ),
        (
            {"seen_without": 0, "better_without": 0},
            "Listed by the plan. "
            'Patients in "Low" were better off the next week 12 of 20 times with help (60 %). '
            'Nobody in "Low" has been seen without help yet.',
        ),
        (
            {"seen_with_help": 0, "better_with_help": 0, "seen_without": 1, "better_without": 1},
            'better off the next week 1 of 1 time without help (100 %). Nobody in "Low" has been '
            "seen with help yet.",
        ),
        (
            dict.fromkeys(SEEN, 0),
            'Listed by the plan. What help does in "Low" is not known yet.',
        ),
        (
            dict.fromkeys(SEEN, 0) | {"badly_off": True},
            'What help does in "Low" is not known yet. The worst off come first.',
        ),
        (
            dict.fromkeys(SEEN, 0) | {"badly_off": True, "equal": True},
            'What help does in "Low" is not known yet. The worst off come first; tie broken at '
            "random.",
        ),
        (
            dict.fromkeys(SEEN, 0) | {"badly_off": True, "to_find_out": True},
            'Listed to find out what help does in "Low". The report will show how patients there '
            "do with help.",
        ),
        (
            {"to_find_out": True, "seen_with_help": 0, "better_with_help": 0},
            'Listed to find out what help does in "Low". The report will show how patients there '
            'do with help. Patients in "Low" were better off the next week 5 of 30 times without '
            'help (17 %). Nobody in "Low" has been seen with help yet.',
        ),
        (
            dict.fromkeys(SEEN) | {"to_find_out": True, "state": None, "last_seen": None},
            "Listed to find out what help does.",
        ),
        ({"by_lot": True}, "Chosen at random among people off the list"),
    ],
)
def test_a_reason_gives_the_observed_shares_or_says_that_nobody_was_seen(
    change: dict, words: str
) -> None:
    assert words in help_lists.why_listed(changed(ADA, **change), WEEK)


def test_a_list_of_an_older_version_gives_no_figures() -> None:
    old = changed(ADA, **dict.fromkeys(SEEN), sure=0.99)
    assert help_lists.why_listed(old, WEEK) == "Listed by the plan."


def test_who_is_there_to_find_out_is_not_told_that_nothing_is_known() -> None:
    nothing = changed(ADA, **dict.fromkeys(SEEN, 0), to_find_out=True)
    assert "is not known yet" not in help_lists.why_listed(nothing, WEEK)


def test_a_person_taken_off_the_list_finds_nothing_out() -> None:
    off = changed(ADA, to_find_out=True, changed="off", because="away")
    assert help_lists.why_listed(off, WEEK) == "Taken off the list by the owner: away"


def test_reasons_use_the_owners_noun_and_word_for_a_week() -> None:
    week = replace(WEEK, word="month", noun="mother")
    assert 'Mothers in "Low" were better off the next month' in help_lists.why_listed(ADA, week)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "Low"),
        ({"state": None, "weeks_ago": 2}, "Unknown (last seen Low, 2 weeks ago)"),
        ({"state": None, "weeks_ago": 1}, "Unknown (last seen Low, 1 week ago)"),
        ({"state": None, "weeks_ago": 14}, "Unknown (last seen Low, 14 weeks ago)"),
        ({"state": None, "last_seen": None}, "Unknown (never seen)"),
    ],
)
def test_an_unknown_state_says_when_it_was_last_known(change: dict, words: str) -> None:
    assert help_lists.state_words(changed(ADA, **change)) == words


def test_a_list_can_consist_of_ties_only() -> None:
    assert not WEEK.all_equal
    assert replace(WEEK, listed=[changed(ADA, equal=True)]).all_equal
    assert not replace(WEEK, listed=[]).all_equal


def test_the_summary_of_a_report_counts_every_arm_once() -> None:
    before = {"a": "Low", "b": "Low", "c": None, "d": "High", "e": "Low"}
    now = {"a": "High", "b": "Low", "c": "Low", "d": None}
    said = studies.report_words(before, now, ["a", "b"], ["a", "d"])
    assert said == (
        "1 moved, 1 as before, 2 unknown, 1 now known, 1 of 2 helped and 1 not on the list"
    )
    assert studies.report_words({"a": "Low"}, {"a": "Low"}, ["a"], ["a"]) == (
        "0 moved, 1 as before, 0 unknown, 1 of 1 helped"
    )


def test_a_reported_week_is_read_with_its_corrections(store: Store) -> None:
    study = studies.create_study(store, clinic(horizon=1, confidence="calibrated"))
    assert studies.read_week(store, study, 0)["p1"] == studies.Standing("Low", False)
    states = {"p1": "High", "p2": "High", "p3": "Low"}
    studies.observe(store, study, states, {"p1": {"age": "61"}}, helped=["p1"])
    studies.advance(store, study)
    found = studies.read_week(store, study, 1)
    assert found["p1"] == studies.Standing("High", True)
    assert found["p4"] == studies.Standing(None, False)
    studies.correct(store, study, 1, {"p4": "Low"}, {"p1": False})
    found = studies.read_week(store, study, 1)
    assert (found["p1"].helped, found["p4"].state) == (False, "Low")
    assert studies.read_cards(store, study)["p1"] == {"age": "61", "hours": "1 2 3"}
