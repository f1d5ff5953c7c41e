"""Drafts of reports: kept in the database until they are sent."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from playing import clinic, everyone

from dopl_core import studies
from dopl_core.studies import Draft, Store


def test_a_draft_outlives_the_process_that_wrote_it(store: Store, url: str) -> None:
    study = studies.create_study(store, clinic())
    studies.change_draft(store, study, 1, lambda draft: draft.states.update(p1="Low", p2=None))
    studies.change_draft(store, study, 1, lambda draft: draft.helped.update(p1=False))
    again = studies.open_store(url)
    kept = Draft({"p1": "Low", "p2": None}, {"p1": False})
    assert studies.read_draft(again, study, 1) == kept
    assert studies.read_draft(again, study, 2) == Draft()
    again.close()


def test_changes_of_two_tabs_at_once_are_all_kept(store: Store) -> None:
    study = studies.create_study(store, clinic())

    def fill_in(n: int) -> None:
        studies.change_draft(store, study, 1, lambda draft: draft.states.update({f"p{n}": "Low"}))

    with ThreadPoolExecutor(8) as tabs:
        list(tabs.map(fill_in, range(20)))
    assert len(studies.read_draft(store, study, 1).states) == 20


def test_a_sent_report_deletes_the_draft_and_a_refused_one_keeps_it(store: Store) -> None:
    study = studies.create_study(store, clinic(sitting=0))
    studies.change_draft(store, study, 1, lambda draft: setattr(draft, "rest", "unknown"))
    with pytest.raises(studies.StudyError):
        studies.observe(store, study, {"nobody": "Low"})
    assert studies.read_draft(store, study, 1) == Draft(rest="unknown")
    studies.observe(store, study, everyone())
    assert studies.read_draft(store, study, 1) == Draft()


def test_a_draft_counts_only_people_who_are_still_in_the_study() -> None:
    draft = Draft({"gone": "Low", "p1": "High"}, {"p2": False, "gone": True}, rest="as before")
    report = draft.report({"p1": "Low", "p2": None, "p3": "Low"}, listed=["p2", "p3"])
    assert report.states == {"p1": "High", "p2": None, "p3": "Low"}
    assert report.helped == ["p3"]
