"""Why somebody is on the list or not: their place in line and what was observed, nothing else."""

import numpy as np
import pytest
from playing import answer_open, cohort, report_from

from dopl_core import studies
from dopl_core.studies import Store, StudyError

STATES = ["Poor", "Fair", "Good"]


def test_everybody_has_a_place_in_line_that_agrees_with_the_list(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cohort(10, STATES, 3, budget=3, horizon=1))
    [week] = studies.read_lists(sqlite_store, study)
    found = {f"p{n}": studies.explain(sqlite_store, study, f"p{n}") for n in range(10)}
    ranks = sorted(one.rank or 0 for one in found.values())
    assert ranks == list(range(1, 11))
    assert {found[one.id].rank for one in week.listed} == {1, 2, 3}
    assert [found[one.id].rank for one in week.reserve] == [4, 5]
    for arm, one in found.items():
        listed = arm in {one.id for one in week.listed}
        assert one.where.startswith("On the list" if listed else "Not on the list")
        assert "%" not in " ".join([one.where, *one.because, *one.change])  # nobody was seen yet
        assert "has been seen with or without help yet." in " ".join(one.because)
        assert "Your team has not compared them in this state yet." in one.because
        assert len(one.change) == 3  # two other states, and what else changes a place


def test_an_explanation_counts_what_was_observed_and_answered(sqlite_store: Store) -> None:
    rules = {"budget": 3, "horizon": 1, "answers": 8}
    study = studies.create_study(sqlite_store, cohort(10, STATES, 3, **rules))
    answer_open(sqlite_store, study)
    report_from(sqlite_store, study, np.random.default_rng(1))
    studies.advance(sqlite_store, study)
    [*_, week] = studies.read_lists(sqlite_store, study)
    assert week.by_answers in range(4)
    said = [" ".join(studies.explain(sqlite_store, study, f"p{n}").because) for n in range(10)]
    assert any("times without help (" in one for one in said)
    studies.change_list(sqlite_store, study, remove=[week.listed[0].id], because="ill")
    found = studies.explain(sqlite_store, study, week.listed[0].id)
    assert found.where.startswith("You took them off this list. By the plan they are number ")


def test_the_answers_since_the_last_plan_change_places_or_do_not(sqlite_store: Store) -> None:
    """No sentence without answers; answers that reverse everything change most places."""
    rules = {"budget": 4, "horizon": 1, "answers": 40, "hide_state": False}
    study = studies.create_study(sqlite_store, cohort(12, STATES, 5, **rules))
    assert studies.read_lists(sqlite_store, study)[0].by_answers is None
    now = studies.present_states(sqlite_store, study)
    studies.observe(sqlite_store, study, now)
    studies.advance(sqlite_store, study)
    assert studies.read_lists(sqlite_store, study)[1].by_answers is None
    without = {one.id for one in studies.read_lists(sqlite_store, study)[1].listed}
    for _ in range(3):
        answer_open(sqlite_store, study)
        studies.observe(sqlite_store, study, now)
        studies.advance(sqlite_store, study)
    changed = [week.by_answers for week in studies.read_lists(sqlite_store, study)[2:]]
    assert all(count is not None and 0 <= count <= 4 for count in changed)
    assert without


def test_a_rule_that_keeps_somebody_off_the_list_is_said(sqlite_store: Store) -> None:
    config = cohort(10, STATES, 3, budget=3, horizon=1, once_in=3)
    study = studies.create_study(sqlite_store, config)
    [week] = studies.read_lists(sqlite_store, study)
    studies.observe(sqlite_store, study, studies.present_states(sqlite_store, study))
    studies.advance(sqlite_store, study)
    found = studies.explain(sqlite_store, study, week.listed[0].id)
    assert (found.rank, found.where) == (
        None,
        "A rule in your settings keeps them off this list: how often, or how soon.",
    )


def test_there_is_nothing_to_explain_without_an_open_list(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cohort(10, STATES, 3, budget=3, sitting=5))
    with pytest.raises(StudyError, match="there is no open list"):
        studies.explain(sqlite_store, study, "p1")
