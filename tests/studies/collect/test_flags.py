"""Flags: annotators tell the owner what is wrong with a card, and the owner deals with it."""

import pandas as pd
import pytest
from playing import check_replay, clinic, cpap, digest

from dopl_core import studies
from dopl_core.studies import Ask, Store, StudyError


def ask(store: Store, study: str, name: str = "Ann") -> Ask:
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask)
    return found


def again(store: Store, study: str) -> pd.DataFrame:
    """The flags; impressions of an imported study have other numbers."""
    return studies.flags(store, study).reset_index(drop=True)


def test_a_flag_reaches_the_owner_and_the_bundle_and_changes_nothing_else(store: Store) -> None:
    study = studies.create_study(store, clinic())
    shown = ask(store, study)
    before = digest(store, study)
    studies.flag(store, shown.impression, "Ann", "  =the hours look wrong ", shown.left.arm)
    for wrong, words in (
        ("", "Please write what is wrong"),
        ("x" * 501, "at most 500"),
        ("a\0b", "zero|NUL|cannot"),
    ):
        with pytest.raises(StudyError, match=words):
            studies.flag(store, shown.impression, "Ann", wrong)
    with pytest.raises(StudyError, match="another duel"):
        studies.flag(store, shown.impression, "Ann", "x", "nobody")
    with pytest.raises(StudyError, match="somebody else"):
        studies.flag(store, shown.impression, "Bob", "x")
    told = studies.flags(store, study)
    assert told[["annotator", "about", "comment"]].values.tolist() == [
        ["Ann", shown.left.arm, "=the hours look wrong"]
    ]
    assert digest(store, study) == before
    content = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert again(store, study).equals(told.reset_index(drop=True))


def test_a_comment_is_one_line_whatever_its_browser_sends(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    shown = ask(sqlite_store, study)
    forged = "blurred\n2026-01-01 10:00 Bob, about p1:\u2028\x1b[1mstop\u202e all"
    studies.flag(sqlite_store, shown.impression, "Ann", forged)
    [comment] = studies.flags(sqlite_store, study).comment
    assert comment == "blurred 2026-01-01 10:00 Bob, about p1: [1mstop all"
    with pytest.raises(StudyError, match="Please write what is wrong"):
        studies.flag(sqlite_store, shown.impression, "Ann", "\n\u202e\n")


def test_a_flag_is_done_until_somebody_flags_the_pair_again(store: Store) -> None:
    study = studies.create_study(store, clinic())
    shown = ask(store, study)
    studies.flag(store, shown.impression, "Ann", "wrong age", shown.left.arm)
    studies.flag(store, shown.impression, "Ann", "and blurred")
    before = digest(store, study)
    assert studies.finish_flag(store, shown.impression)
    assert not studies.finish_flag(store, shown.impression)  # a second click
    assert again(store, study).done.tolist() == [True, True]
    studies.flag(store, shown.impression, "Ann", "still wrong")
    assert again(store, study).done.tolist() == [False, True, True]
    assert digest(store, study) == before
    check_replay(store, study)
    told, content = again(store, study), studies.export_bundle(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert again(store, study).equals(told)
    assert studies.export_bundle(store, study) == content


def test_flagged_cards_are_shown_as_they_were(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, clinic())
    shown = ask(sqlite_store, study)
    found = studies.flagged_pair(sqlite_store, study, shown.impression)
    assert found == (shown.left, shown.right, shown.episode, shown.epoch)
