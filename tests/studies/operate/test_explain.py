"""Why somebody is on the list or not: their place in line and what was observed, nothing else."""

import re

import numpy as np
import pytest
from playing import answer_open, cohort, report_from

from dopl_core import studies
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import Store, StudyError

STATES = ["Poor", "Fair", "Good"]


def test_everybody_has_a_place_in_line_that_agrees_with_the_list(sqlite_store: Store) -> None:
    rules = {"budget": 3, "horizon": 1, "find_out": 0}
    study = studies.create_study(sqlite_store, cohort(10, STATES, 3, **rules))
    [week] = studies.read_lists(sqlite_store, study)
    found = {f"p{n}": studies.explain(sqlite_store, study, f"p{n}") for n in range(10)}
    ranks = sorted(one.rank or 0 for one in found.values())
    assert ranks == list(range(1, 11))
    assert [found[one.id].rank for one in week.listed] == [1, 2, 3]
    assert [found[one.id].rank for one in week.reserve] == [4, 5]
    for arm, one in found.items():
        listed = arm in {one.id for one in week.listed}
        assert one.where.startswith("On the list" if listed else "Not on the list")
        assert "%" not in " ".join([one.where, *one.because, *one.change])  # nobody was seen yet
        assert "is not known yet." in " ".join(one.because)
        assert "Your team has not compared them in this state yet." in one.because
        assert len(one.change) == 3  # two other states, and what else changes a place


def test_an_explanation_says_why_others_come_before_somebody_in_the_best_state(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the plan ranks the best state first, and the list leaves it out all the same."""
    best_first = lambda self, states, where=None: states.astype(float)  # noqa: E731
    others = lambda self, states, *_: np.flatnonzero(states < 2)[: self.budget]  # noqa: E731
    monkeypatch.setattr(Dopl, "standing", best_first)
    monkeypatch.setattr(Dopl, "activate", others)
    rules = {"budget": 3, "horizon": 1, "find_out": 0}
    study = studies.create_study(sqlite_store, cohort(10, STATES, 3, **rules))
    states = studies.present_states(sqlite_store, study)
    found = {arm: studies.explain(sqlite_store, study, arm) for arm in states}
    few = 'Few places go to "Good" until it is known that help does something there.'
    passed = {arm for arm, state in states.items() if state == "Good" and found[arm].rank <= 3}
    assert passed
    assert passed == {arm for arm, one in found.items() if few in one.where}
    for arm, state in states.items():
        for one in found[arm].change:
            assert not one.startswith('In "Good"') or one.endswith("not on the list.")
        assert state != "Good" or found[arm].where.startswith("Not on the list")


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
    assert any(
        re.search(r"compared them \d times? in this state, and answered \d ", one) for one in said
    )
    assert not any(" of 1 times" in one or "answered 1 times" in one for one in said)
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


@pytest.mark.parametrize("seed", range(4))
def test_people_who_are_tied_have_the_same_number_in_line_and_on_the_list(
    sqlite_store: Store, seed: int
) -> None:
    study = studies.create_study(sqlite_store, cohort(20, STATES, seed, budget=6, find_out=0))
    [week] = studies.read_lists(sqlite_store, study)
    named = [*week.listed, *week.reserve]
    ranks = [studies.explain(sqlite_store, study, one.id).rank for one in named]
    assert ranks == list(range(1, 10))


def test_a_place_in_line_decides_nothing_alone_where_places_are_shared(sqlite_store: Store) -> None:
    rows = "".join(f"p{n},{STATES[n // 6]},{'ab'[n // 6 % 2]}\n" for n in range(12))
    arms = studies.read_roster(f"id,state,group\n{rows}".encode(), STATES)
    rules = {"title": "Wards", "budget": 1, "horizon": 1, "practice": False, "sitting": 0}
    rules |= {"fair_column": "group", "fair_rule": "roster"}
    study = studies.create_study(sqlite_store, studies.from_roster(arms, STATES, **rules))
    found = [studies.explain(sqlite_store, study, f"p{n}") for n in range(12)]
    assert all("The list has 1 place. Places are shared by group." in one.where for one in found)
    assert not any("on the list" in said for one in found for said in one.change)


def test_there_is_nothing_to_explain_without_an_open_list(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cohort(10, STATES, 3, budget=3, sitting=5))
    with pytest.raises(StudyError, match="there is no open list"):
        studies.explain(sqlite_store, study, "p1")
