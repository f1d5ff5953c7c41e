"""What may be said of help: what was observed, and the same on lists and Insights."""

from html import unescape

import numpy as np
import pytest
from playing import cohort, report_from

from dopl_core import studies
from dopl_core.studies import Store, assessment, assessment_text
from dopl_core.studies.operate.known_effects import KnownEffect, Words, effect_text, known_effects
from pages.studies import print_sheet
from pages.studies.list_table import list_table

CLASS = ("Struggling", "Coping", "Thriving")
PATIENTS = ("Low", "Moderate", "High")


def finds_all_out(one: studies.Listed) -> bool:
    """Whether somebody is listed to find out what help does where nothing was seen of it."""
    return one.to_find_out and not one.known_effect.seen


def test_moves_are_counted_over_all_arms() -> None:
    visits = np.zeros((2, 2, 2, 2), dtype=np.int64)
    visits[0, 0, 1], visits[1, 0, 1], visits[1, 0, 0] = [1, 3], [2, 0], [4, 1]
    visits[0, 1, 0] = [1, 6]
    assert known_effects(visits) == [KnownEffect(6, 3, 5, 1), KnownEffect(0, 0, 7, 6, 0, 1)]


@pytest.mark.parametrize(
    ("effect", "in_favour"),
    [
        ((20, 12, 30, 5), True),
        ((20, 10, 30, 15), False),
        ((20, 2, 30, 15), False),
        ((20, 20, 0, 0), False),
        ((0, 0, 30, 1), False),
    ],
)
def test_shares_are_in_favour_of_help_only_if_both_were_seen(effect, in_favour) -> None:
    assert KnownEffect(*effect).in_favour is in_favour


def test_help_that_prevents_falls_is_a_reason() -> None:
    known = KnownEffect(26, 4, 43, 7, 4, 13)
    assert not known.in_favour
    assert known.fewer_worse
    assert effect_text(known, "Moderate", Words("patient", "week", "High")) == (
        'Patients in "Moderate" were better off the next week 4 of 26 times with help (15 %) and '
        "7 of 43 times without help (16 %). They were worse off 4 of 26 times with help (15 %) and "
        "13 of 43 times without help (30 %)."
    )
    one_way = effect_text(KnownEffect(9, 1, 0, 0, 2), "Moderate", Words("patient", "week", "High"))
    assert one_way.endswith(
        "They were worse off 2 of 9 times with help (22 %). "
        'Nobody in "Moderate" has been seen without help yet.'
    )


@pytest.mark.parametrize(("states", "noun"), [(CLASS, "student"), (PATIENTS, "patient")])
@pytest.mark.parametrize("seed", [0, 1])
def test_after_help_for_all_30_the_list_says_that_nobody_was_seen_without(
    sqlite_store: Store, states: tuple[str, ...], noun: str, seed: int
) -> None:
    config = cohort(30, states, seed, noun=noun, budget=7, answers=0)
    study = studies.create_study(sqlite_store, config)
    studies.advance(sqlite_store, study)
    everybody = list(studies.present_states(sqlite_store, study))
    report_from(sqlite_store, study, np.random.default_rng(seed), helped=everybody)
    studies.advance(sqlite_store, study)
    week = studies.read_lists(sqlite_store, study)[-1]
    assert week.week == 2
    for one in week.listed:
        why = studies.why_listed(one, week)
        assert one.state != states[-1]
        assert f'Nobody in "{one.state}" has been seen without help yet.' in why
        assert "without help (" not in why
        assert "sure" not in why
    found = assessment.assess(sqlite_store, study)
    assert found.forecast is None
    assert not found.places
    assert assessment_text.advice(found) == []
    assert "Too early to tell" in assessment_text.headline(found)[0]
    data = assessment_text.effect_by_state_finding(found).data
    assert data[["difference", "within"]].isna().all(axis=None)


def test_list_csv_sheet_and_insights_show_the_same_shares_in_every_week(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assessment, "_draw_count", lambda visits: 20)  # faster
    monkeypatch.setattr(assessment, "MOST_PEOPLE", 0)
    config = cohort(45, PATIENTS, 3, noun="patient", budget=9, by_lot=1, answers=0)
    study = studies.create_study(sqlite_store, config)
    rng = np.random.default_rng(3)
    for number in range(1, 11):
        studies.advance(sqlite_store, study)
        week = studies.read_lists(sqlite_store, study)[-1]
        assert week.week == number
        found = assessment.assess(sqlite_store, study)
        data = assessment_text.effect_by_state_finding(found).data.set_index("state")
        rows = [row for row in studies.list_rows(week) if not row[-1]]  # who waits is by lot
        whys = [row[studies.list_columns(week).index("why")] for row in rows]
        printed = unescape(print_sheet.sheet("Clinic", config, week))
        for one, why in zip(week.everybody, whys, strict=True):
            assert one.known_effect == tuple(data.loc[one.state, list(KnownEffect._fields)])
            assert one.by_lot or finds_all_out(one) or data.observed[one.state] in why
            if one.reserve:  # the title of their rows says that they are next in line
                assert why.removeprefix("Next in line. ") in printed
            else:
                assert f">{why}</td></tr>" in printed
            assert "quite sure" not in why
            assert one.reserve or one.by_lot or one.state != PATIENTS[-1]
        seen = data[["seen_with_help", "seen_without"]].min(axis=1)
        assert data.difference.notna().equals(seen >= 5)  # no figure without observations
        assert (found.forecast is not None) == seen.any()
        moves = data[["seen_with_help", "seen_without"]].to_numpy().sum()
        assert moves == 45 * (number - 1)
        report_from(sqlite_store, study, rng)


def test_page_csv_sheet_and_insights_agree_where_people_come_go_and_are_not_seen(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assessment, "_draw_count", lambda visits: 20)  # faster
    monkeypatch.setattr(assessment, "MOST_PEOPLE", 0)
    rng = np.random.default_rng(8)
    rows = [f"p{n},{rng.choice([*PATIENTS, ''])},{rng.integers(20, 90)}" for n in range(45)]
    arms = studies.read_roster("\n".join(["id,state,age", *rows]).encode(), PATIENTS)
    rules = {"noun": "patient", "budget": 9, "sitting": 0, "answers": 0, "practice": False}
    config = studies.from_roster(arms, PATIENTS, title="Clinic", **rules)
    study = studies.create_study(sqlite_store, config)
    for number in range(1, 7):
        studies.advance(sqlite_store, study)
        [week] = studies.read_lists(sqlite_store, study, last=1)
        found = assessment.assess(sqlite_store, study)
        said = assessment_text.effect_by_state_finding(found).data.set_index("state").observed
        places = [unescape(list_table(week, str)), unescape(print_sheet.sheet("C", config, week))]
        why = studies.list_columns(week).index("why")
        for one, row in zip(week.everybody, studies.list_rows(week), strict=True):
            silent = one.last_seen is None or finds_all_out(one)
            assert silent or said[one.last_seen] in row[why]
            shown = row[why].removeprefix("Next in line.").strip()  # the title says the rest
            assert all(shown in place for place in places)
            explained = studies.explain(sqlite_store, study, one.id).because
            assert one.last_seen is None or said[one.last_seen] in explained
        present = studies.present_states(sqlite_store, study)
        after = {arm: rng.choice([*PATIENTS, None], p=[0.2, 0.4, 0.3, 0.1]) for arm in present}
        helped = [one.id for one in week.listed if rng.random() < 0.8]
        studies.join(sqlite_store, study, [studies.Arm(f"new{number}", "New", state="Low")])
        studies.leave(sqlite_store, study, [str(rng.choice([*present]))])
        studies.observe(sqlite_store, study, after, helped=helped)
    studies.replay_study(sqlite_store, study)


def test_a_list_within_a_plan_counts_the_weeks_since_the_plan(sqlite_store: Store) -> None:
    config = cohort(12, PATIENTS, 5, budget=4, horizon=3, answers=0)
    study = studies.create_study(sqlite_store, config)
    studies.advance(sqlite_store, study)
    rng = np.random.default_rng(5)
    for _ in range(2):
        report_from(sqlite_store, study, rng)
        listed = studies.read_lists(sqlite_store, study)[-1].listed
        known = known_effects(studies.load_learner(sqlite_store, study).visits)
        assert [one.known_effect for one in listed] == [
            known[config.state_number(one.state or "")] for one in listed
        ]
    studies.replay_study(sqlite_store, study)
