"""Findings: their titles say what the data show."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dopl_core.studies.analysis import chart_text
from dopl_core.studies.analysis.agreement import Agreement, Interval
from dopl_core.studies.operate.known_effects import KnownEffect
from dopl_core.studies.operate.present import Helped


def helped(known, advantage=0.2):
    seen = 'Patients in "Low" were seen.'
    return Helped("p1", "Ann", "all", "Low", 1.0, advantage, KnownEffect(*known), seen)


def answers(outcomes, people=None, seconds=1.0):
    count = len(outcomes)
    return pd.DataFrame(
        {
            "annotator": people or ["Ann"] * count,
            "purpose": "policy",
            "outcome": outcomes,
            "answered_at": pd.date_range("2026-01-01", periods=count, freq="min", tz="UTC"),
            "response_ms": seconds * 1000,
            "narrow": np.nan,
        }
    )


@pytest.mark.parametrize(
    ("known", "advantage", "why"),
    [
        ((10, 8, 10, 2), 0.2, ""),
        ((10, 2, 10, 8), 0.2, "Listed by the plan. "),
        ((10, 8, 0, 0), 0.2, "Listed by the plan. "),
        ((10, 8, 10, 2), -0.1, "Included to fill a free place. "),
    ],
)
def test_a_reason_says_what_was_seen_of_help(known, advantage, why):
    one = helped(known, advantage)
    assert chart_text.reason(one) == why + one.seen


@pytest.mark.parametrize("of", [1, 2, 7, 60])
def test_intervals_are_wilsons(of):
    for hits in range(of + 1):
        known = binomtest(hits, of).proportion_ci(method="wilson")
        assert chart_text.wilson_interval(hits, of) == pytest.approx(
            (known.low, known.high), abs=1e-4
        )
    assert chart_text.wilson_interval(0, 0) == (0, 1)


def test_a_habit_of_one_side_is_reported_only_if_chance_cannot_explain_it():
    assert "no sign of a habit" in chart_text.sides_finding(answers(["left", "right"] * 20)).title
    found = chart_text.sides_finding(answers(["left"] * 40, ["Ann", "Bo"] * 20))
    assert "more than chance explains" in found.title
    assert list(found.data.person) == ["Everybody", "Ann", "Bo"]
    assert list(chart_text.sides_finding(answers(["left"] * 4)).data.person) == [
        "Ann"
    ]  # without a row "Everybody"


def test_a_chart_of_many_people_shows_those_with_the_most_answers():
    frame = answers(["left"] * 6, ["Ann", "Bo", "Bo", "Cy", "Cy", "Cy"])
    data = chart_text.sides_finding(frame).data
    assert chart_text.most_answers(data, 3).person.tolist() == ["Everybody", "Bo", "Cy"]
    found = chart_text.sides_finding(frame.assign(narrow=1))
    assert chart_text.with_limit_note(found, 4, 4) == found
    note = chart_text.with_limit_note(found, 4000, 3).note
    assert note.startswith("On phones, ")
    assert note.endswith(
        ". The chart shows the 3 with the most answers; the CSV file has all 4,000."
    )


def test_skips_do_not_count_as_a_side():
    assert chart_text.sides_finding(answers(["skip"] * 3)).title == "Nobody has chosen a side yet"


def test_many_answers_become_few_points_that_end_at_the_last_answer():
    found = chart_text.answers_over_time_finding(answers(["left"] * 5000))
    assert len(found.data) <= 200
    assert found.data.answers.iloc[-1] == 5000
    assert found.title == "5,000 answers so far, by 1 person"
    assert (
        chart_text.answers_over_time_finding(answers(["left"])).title
        == "1 answer so far, by 1 person"
    )


def test_every_response_time_is_counted_once():
    found = chart_text.response_times_finding(answers(["left"] * 50, seconds=1.5))
    assert found.data.answers.sum() == 50
    assert found.title == "Half of the answers took at most 1.5 s"
    assert (
        chart_text.response_times_finding(answers(["left"])).title == "The only answer took 1.0 s"
    )
    assert chart_text.response_times_finding(answers(["left"], seconds=np.nan)).data.empty


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0, 2.5, 7.0, 59.0, 3000.0, 90_000.0])
def test_bins_of_response_times_are_few_and_contain_all_answers(seconds):
    data = chart_text.response_times_finding(answers(["left"] * 9, seconds=seconds)).data
    assert data.answers.sum() == 9
    assert len(data) <= 25
    assert data["from"].iloc[0] == 0
    row = data[data.answers > 0].iloc[0]
    assert row["from"] <= seconds <= row["to"]


def test_learnt_answers_include_the_first_sitting_and_not_practice_repeats_or_gold():
    frame = answers(["left", "expired", "undone", "skip", "right", "right", "tie", "left"])
    frame.loc[4:, "purpose"] = ["practice", "sitting", "repeat", "gold"]
    assert list(chart_text.learnt_answers(frame).outcome) == ["left", "skip", "right"]


def test_excluded_people_are_named_with_their_number_of_answers():
    frame = answers(["left"] * 4, ["Ann", "Zed", "Bo", "Bo"])
    assert chart_text.excluded_note(frame, []) == chart_text.excluded_note(frame, ["Cy"]) == ""
    assert chart_text.excluded_note(frame, ["Zed"]) == "Without 1 answer by excluded people: Zed."
    note = chart_text.excluded_note(frame, ["Zed", "Bo"])
    assert note == "Without 3 answers by excluded people: Bo, Zed."


def test_the_title_of_strengths_names_the_best_and_the_worst_state_and_how_many_answered():
    beliefs = pd.DataFrame(
        {
            "arm": ["1", "1"],
            "label": ["Ann"] * 2,
            "group": ["all"] * 2,
            "state": ["Low", "High"],
            "mean": [0.0, 1.0],
            "sd": [0.1, 0.1],
            "answers": [3, 3],
        }
    )
    found = chart_text.strengths_finding(beliefs)
    assert found.title == '"High" is estimated to win 73 % of comparisons with "Low" (3 answers)'
    assert np.allclose(found.data.high - found.data.low, 2 * 1.96 * 0.1)
    sure = chart_text.strengths_finding(beliefs.assign(mean=[0.0, 9.0]))
    assert sure.title.startswith('"High" is estimated to win more than 99 % of comparisons with')
    assert "No state" in chart_text.strengths_finding(beliefs.assign(mean=0.0)).title


def test_arms_with_the_same_name_get_their_id_and_the_most_compared_are_picked():
    beliefs = pd.DataFrame(
        {
            "arm": ["1", "2", "3"],
            "label": ["Ann", "Ann", "Bo"],
            "group": "all",
            "state": "Low",
            "mean": 0.0,
            "sd": 0.1,
            "answers": [3, 1, 2],
        }
    )
    data = chart_text.strengths_finding(beliefs).data
    assert list(data.name) == ["Ann (1)", "Ann (2)", "Bo"]
    assert list(chart_text.most_compared(data, 2).arm) == ["1", "3"]


def test_plan_changes_say_how_many_decisions_the_newest_plan_changed():
    plans = pd.DataFrame({"plan": [1, 2], "answers": [0, 10], "changed": [1.0, 0.25]})
    title = chart_text.plan_changes_finding(plans).title
    assert title == "The newest plan changed 25 % of its decisions"
    assert chart_text.plan_changes_finding(plans[:1]).data.empty
    assert chart_text.plan_changes_finding(plans, horizon=5).data.week.tolist() == [6]


def test_moves_make_no_claim_and_are_split_only_if_groups_differ():
    rows = [
        ("A", "Low", action, following, chance)
        for action, chances in (("wait", (0.8, 0.2)), ("act", (0.3, 0.7)))
        for following, chance in zip(("Low", "High"), chances, strict=True)
    ]
    names = ["group", "state", "action", "next_state", "chance"]
    one = pd.DataFrame(rows, columns=names).assign(sd=0.1, visits=3)
    found = chart_text.moves_findings(one)
    assert list(found) == [""]
    assert found[""].title == "Estimated next states, without and with help"
    assert set(found[""].data.action) == {"without help", "with help"}
    alike = pd.concat([one, one.assign(group="B", chance=one.chance + 0.05)])
    [(name, data)] = chart_text.moves_by_group(alike)
    assert name == ""
    assert data.visits.tolist() == [6] * 4
    apart = pd.concat([one, one.assign(group="B", chance=one.chance[::-1].to_numpy())])
    assert [name for name, _ in chart_text.moves_by_group(apart)] == ["A", "B"]
    past = apart.replace({"group": {"B": "all"}})  # people of past records are in no group
    assert [name for name, _ in chart_text.moves_by_group(past)] == ["A", "no group"]


@pytest.mark.parametrize("few", [0, 4])
def test_moves_that_nobody_or_hardly_anybody_made_are_not_estimated(few):
    names = ["group", "state", "action", "next_state", "visits"]
    rows = [("A", "Low", "wait", "Low", few), ("A", "Low", "wait", "High", 0)]
    rows += [("A", "Low", "act", "Low", 2), ("A", "Low", "act", "High", 3)]
    moves = pd.DataFrame(rows, columns=names).assign(chance=0.5, sd=0.1)
    found = chart_text.moves_findings(moves)[""]
    assert set(found.data.action) == {"with help"}
    assert found.note == (
        f'Not shown, because fewer than 5 moves were seen: "Low" without help ({few}).'
    )
    assert chart_text.moves_findings(moves.assign(visits=0))[""].data.empty


def test_arms_are_shown_one_by_one_only_if_they_differ():
    data = pd.DataFrame({"state": ["Low", "Low"], "mean": [0.0, 1.0], "answers": [1, 2]})
    data = data.assign(low=0.0, high=1.0)
    assert chart_text.arms_differ(data.assign(sd=0.1))
    assert not chart_text.arms_differ(data.assign(sd=2.0))
    assert chart_text.mean_strengths(data.assign(sd=2.0))[["mean", "answers"]].values.tolist() == [
        [0.5, 3]
    ]


def test_decisions_have_one_row_per_arm_and_one_column_per_state():
    beliefs = pd.DataFrame(
        {
            "arm": ["1", "1", "2", "2"],
            "label": ["a", "a", "b", "b"],
            "group": "all",
            "state": ["Low", "High"] * 2,
            "index": [1.0, 0.0, 0.4, 0.0],
        }
    )
    found = chart_text.decisions_finding(beliefs)
    assert found.title == 'The plan helps most often in "Low": 1 of 2 people (50 %)'
    assert list(found.data.Low) == ["help", "help 40 % of the time"]
    assert list(found.data.High) == ["wait", "wait"]
    assert "group" not in found.data  # everybody is in one


def test_a_state_may_have_the_name_of_a_column():
    states = ["id", "name", "group", "id (state)"]
    beliefs = pd.DataFrame(
        {
            "arm": "1",
            "label": "a",
            "group": "ward",
            "state": states,
            "index": [1.0, 0.0, 0.0, 0.4],
        }
    )
    table = chart_text.decisions_finding(beliefs).data
    assert table.columns.is_unique
    expected = ["1", "a", "ward", "help", "wait", "wait", "help 40 % of the time"]
    assert table.iloc[0].tolist() == expected


@pytest.mark.parametrize("many", [0, 1, 2, 3])
def test_titles_use_singular_and_plural_correctly(many):
    frame = answers(["left", "right", "skip"][:many])
    duels = Agreement(many, 2, 1.0, *[Interval(0.5, 0.2, 0.8)] * 2)
    titles = [chart_text.sides_finding(frame).title, chart_text.response_times_finding(frame).title]
    titles += [
        chart_text.answers_over_time_finding(frame).title,
        chart_text.agreement_finding(duels).title,
    ]
    titles += [chart_text.excluded_note(frame, ["Ann"]), chart_text.count(many, "place")]
    for title in titles:
        assert not re.search(r"(?<!of )\b1 (answers|pairs|people|places)\b", title), title
        assert not re.search(r"\b[^1] (answer|pair|person|place)\b", title), title
        assert "nan" not in title


def test_texts_of_charts_are_on_one_line():
    data = pd.DataFrame({"state": ["Low\u2028often", "High"], "mean": [0.5, 1.0]})
    assert chart_text.with_one_line_texts(data).state.tolist() == ["Low often", "High"]
    assert chart_text.with_one_line_texts(data)["mean"].tolist() == [0.5, 1.0]
    assert data.state[0] == "Low\u2028often"


def agreement(duels=10, people=2, same=0.8, alpha=(0.62, 0.41, 0.8)):
    return chart_text.agreement_finding(
        Agreement(duels, people, same, Interval(*alpha), Interval(0.6, 0.4, 0.8))
    )


def test_agreement_is_given_in_words_with_intervals():
    found = agreement()
    assert found.title == (
        "Two people give the same answer 80 % of the time "
        "(Krippendorff's alpha 0.62, 95 % interval 0.41 to 0.80)"
    )
    assert found.note.startswith(
        "Based on 10 pairs rated by two people. Cohen's kappa 0.60, 95 % interval 0.40 to 0.80."
    )
    assert found.data.measure.tolist() == ["Krippendorff's alpha", "Cohen's kappa"]
    found = agreement(1200, 4, 0.5, (-0.001, -0.05, 0.05))
    assert found.title.endswith("alpha 0.00, 95 % interval \N{MINUS SIGN}0.05 to 0.05)")
    assert found.note.startswith("Based on 1,200 pairs rated by two or more of 4 people.")
    assert found.data.measure.tolist()[1] == "Fleiss' kappa"


def test_agreement_of_few_shared_pairs_is_not_reported():
    found = chart_text.agreement_finding(None)
    assert found.title == "No pair has been rated by two people yet, so agreement is unknown"
    assert found.data.empty
    few = "been rated by two people: too few to measure agreement"
    assert agreement(1).title == f"Only 1 pair has {few}"
    assert agreement(4).title == f"Only 4 pairs have {few}"


def test_identical_answers_have_no_alpha_or_kappa():
    nothing = Interval(np.nan, np.nan, np.nan)
    found = chart_text.agreement_finding(Agreement(20, 2, 1.0, nothing, nothing))
    assert found.title == "Two people give the same answer 100 % of the time"
    assert "no alpha or kappa" in found.note
    assert found.data.empty


def test_the_upper_card_is_reported_if_phones_were_used():
    frame = answers(["left"] * 30 + ["right"] * 30)
    assert chart_text.sides_finding(frame).note == ""
    frame.loc[:29, "narrow"] = 1
    assert chart_text.sides_finding(frame).note == (
        "On phones, the upper card was chosen in 30 of 30 answers "
        "(100 %, 95 % interval 89 to 100 %): more than chance explains."
    )
    frame["narrow"] = 1
    assert "30 of 60 answers (50 %, 95 % interval 38 to 62 %): no sign" in chart_text.phone_note(
        frame
    )


def test_every_repeat_counts_once_in_consistency():
    frame = pd.DataFrame(
        {
            "annotator": ["Ann", "Bo", "Cy"],
            "answers": 20,
            "skips": 0,
            "left_share": 0.5,
            "again": [1, 9, 0],
            "consistency": [0.0, 1.0, np.nan],
            "agreement": np.nan,
            "gold": [0, 4, 4],
            "correct": [np.nan, 1.0, 0.25],
            "median_ms": 1260.0,
        }
    )
    found = chart_text.annotators_finding(frame)
    assert found.title == (
        "Asked again, people gave the same answer 9 of 10 times (90 %, 95 % interval 60 to 98 %)"
    )
    assert found.data["asked again"].tolist() == [1, 9, 0]
    assert found.data["median (s)"].tolist() == [1.3] * 3
    assert found.data["correct on obvious pairs"].tolist()[1:] == [100, 25]
    found = chart_text.annotators_finding(frame.assign(again=0, consistency=np.nan))
    assert found.title == "Nobody has been asked the same pair twice yet"
    assert "asked again" not in found.data


def test_random_one_sided_and_hasty_annotators_get_a_warning_and_no_others():
    frame = pd.DataFrame(
        {
            "annotator": ["Ann", "Bo", "Cy", "Di", "Eve"],
            "answers": [50, 50, 50, 50, 3],
            "left_share": [0.5, 0.5, 0.95, 0.5, 1.0],
            "median_ms": [900.0, 900.0, 900.0, 200.0, 100.0],
        }
    )
    assert chart_text.warnings(frame, {"Ann": 1.0, "Bo": 0.1}) == [
        "Bo's answers look random; weighted at 10 %.",
        "Cy chose the left card 95 % of the time.",
        "Half of Di's answers took at most 0.2 s.",
    ]


def test_excluded_annotators_are_marked_and_have_weight_0() -> None:
    shares = {name: [0.5, 0.5] for name in ("left_share", "consistency", "agreement")}
    people = pd.DataFrame(
        {
            "annotator": ["Ann", "Zed"],
            "answers": [4, 8],
            "again": [2, 2],
            "gold": 0,
            "correct": np.nan,
            "median_ms": 900.0,
            **shares,
        }
    )
    people.loc[0, "consistency"] = 1.0
    found = chart_text.annotators_finding(people, {"Ann": 1.0}, ["Zed"])
    assert "2 of 2 times (100 %, 95 % interval 34 to 100 %)" in found.title  # Ann's alone
    data = found.data
    assert data.counted.tolist() == ["yes", "no"]
    assert data.weight.tolist() == [100, 0]
    assert "counted" not in chart_text.annotators_finding(people, {"Ann": 1.0, "Zed": 1.0}).data
    nobody = chart_text.annotators_finding(people, {}, ["Ann", "Zed"])
    assert nobody.title == "Everybody is excluded"
    assert nobody.data.person.tolist() == ["Ann", "Zed"]
