"""Findings: titles that say what the data show, and data that show it."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dopl_core.studies import findings
from dopl_core.studies.agreeing import Agreement, Range
from dopl_core.studies.insights import Helped


def helped(better_if_helped, better_if_not, advantage=0.2):
    chances = better_if_helped, better_if_not
    return Helped("p1", "Ann", "all", "Low", 1.0, advantage, {}, {}, *chances)


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


def test_a_reason_says_what_help_changes():
    why = findings.reason(helped(0.6, 0.25))
    assert why == "Help is believed to raise the chance to be better off next from 25 % to 60 %."


def test_a_reason_admits_that_nothing_is_known():
    assert "to find out" in findings.reason(helped(0.5, 0.5))
    assert "to find out" in findings.reason(helped(0.3, 0.5))  # a loss is never a reason


def test_a_reason_says_when_there_is_help_to_spare():
    why = findings.reason(helped(0.6, 0.5, -0.1))
    assert "to spare" in why


@pytest.mark.parametrize("of", [1, 2, 7, 60])
def test_intervals_are_wilsons(of):
    for hits in range(of + 1):
        known = binomtest(hits, of).proportion_ci(method="wilson")
        assert findings.interval(hits, of) == pytest.approx((known.low, known.high), abs=1e-4)
    assert findings.interval(0, 0) == (0, 1)


def test_a_habit_of_one_side_is_named_as_one_only_where_chance_cannot_explain_it():
    assert "no sign of a habit" in findings.sides(answers(["left", "right"] * 20)).title
    found = findings.sides(answers(["left"] * 40, ["Ann", "Bo"] * 20))
    assert "more than chance explains" in found.title
    assert list(found.data.person) == ["Everybody", "Ann", "Bo"]
    assert list(findings.sides(answers(["left"] * 4)).data.person) == ["Ann"]  # once is enough


def test_of_very_many_people_those_with_the_most_answers_are_drawn():
    frame = answers(["left"] * 6, ["Ann", "Bo", "Bo", "Cy", "Cy", "Cy"])
    data = findings.sides(frame).data
    assert findings.most_answers(data, 3).person.tolist() == ["Everybody", "Bo", "Cy"]
    found = findings.sides(frame.assign(narrow=1))
    assert findings.drawn_in_part(found, 4, 4) == found
    said = findings.drawn_in_part(found, 4000, 3).words
    assert said.startswith("On phones, ")
    assert said.endswith(". Drawn are the 3 with the most answers; the data have all 4,000.")


def test_skips_are_no_side():
    assert findings.sides(answers(["skip"] * 3)).title == "No side was chosen yet"


def test_many_answers_become_few_points_that_end_at_the_last():
    found = findings.over_time(answers(["left"] * 5000))
    assert len(found.data) <= 200
    assert found.data.answers.iloc[-1] == 5000
    assert found.title == "5,000 answers so far, by 1 person"
    assert findings.over_time(answers(["left"])).title == "1 answer so far, by 1 person"


def test_response_times_are_counted_once_each():
    found = findings.response_times(answers(["left"] * 50, seconds=1.5))
    assert found.data.answers.sum() == 50
    assert found.title == "Half of the answers took less than 1.5 s"
    assert findings.response_times(answers(["left"])).title == "The one answer took 1.0 s"
    assert findings.response_times(answers(["left"], seconds=np.nan)).data.empty


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0, 2.5, 7.0, 59.0, 3000.0, 90_000.0])
def test_bins_of_time_are_few_and_round_and_hold_everybody(seconds):
    data = findings.response_times(answers(["left"] * 9, seconds=seconds)).data
    assert data.answers.sum() == 9
    assert len(data) <= 25
    assert data["from"].iloc[0] == 0
    row = data[data.answers > 0].iloc[0]
    assert row["from"] <= seconds <= row["to"]


def test_all_that_people_have_answered_is_given_the_first_sitting_too():
    frame = answers(["left", "expired", "undone", "skip", "right", "right", "tie", "left"])
    frame.loc[4:, "purpose"] = ["practice", "sitting", "repeat", "gold"]
    assert list(findings.given(frame).outcome) == ["left", "skip", "right"]


def test_those_left_out_are_named_with_how_many_answers_they_gave():
    frame = answers(["left"] * 4, ["Ann", "Zed", "Bo", "Bo"])
    assert findings.left_out(frame, []) == findings.left_out(frame, ["Cy"]) == ""
    assert findings.left_out(frame, ["Zed"]) == "Without the 1 answer of those left out: Zed."
    said = findings.left_out(frame, ["Zed", "Bo"])
    assert said == "Without the 3 answers of those left out: Bo, Zed."


def test_strengths_say_which_state_wins():
    beliefs = pd.DataFrame(
        {
            **{"arm": ["1", "1"], "label": ["Ann"] * 2, "group": ["all"] * 2},
            **{"state": ["Low", "High"], "mean": [0.0, 1.0], "sd": [0.1, 0.1], "answers": [3, 3]},
        }
    )
    found = findings.strengths(beliefs)
    assert found.title == '"High" is believed to win 73 % of duels with "Low"'
    assert np.allclose(found.data.high - found.data.low, 2 * 1.96 * 0.1)
    sure = findings.strengths(beliefs.assign(mean=[0.0, 9.0]))
    assert sure.title == '"High" is believed to win more than 99 % of duels with "Low"'
    assert "No state" in findings.strengths(beliefs.assign(mean=0.0)).title


def test_arms_of_one_name_are_told_apart_and_the_most_compared_are_picked():
    beliefs = pd.DataFrame(
        {
            **{"arm": ["1", "2", "3"], "label": ["Ann", "Ann", "Bo"], "group": "all"},
            **{"state": "Low", "mean": 0.0, "sd": 0.1, "answers": [3, 1, 2]},
        }
    )
    data = findings.strengths(beliefs).data
    assert list(data.name) == ["Ann (1)", "Ann (2)", "Bo"]
    assert list(findings.most_compared(data, 2).arm) == ["1", "3"]


def test_changes_say_whether_the_plan_has_settled():
    plans = pd.DataFrame({"plan": [1, 2], "answers": [0, 10], "changed": [1.0, 0.25]})
    assert "25 %" in findings.changes(plans).title
    assert "settled" in findings.changes(plans.assign(changed=[1.0, 0.0])).title
    assert findings.changes(plans[:1]).data.empty


def test_moves_claim_nothing_and_are_parted_only_where_groups_differ():
    rows = [
        ("A", "Low", action, following, chance)
        for action, chances in (("wait", (0.8, 0.2)), ("act", (0.3, 0.7)))
        for following, chance in zip(("Low", "High"), chances, strict=True)
    ]
    names = ["group", "state", "action", "next_state", "chance"]
    one = pd.DataFrame(rows, columns=names).assign(sd=0.1, visits=2)
    found = findings.moves(one)
    assert "believed to go next" in found.title
    assert set(found.data.action) == {"left alone", "helped"}
    alike = pd.concat([one, one.assign(group="B", chance=one.chance + 0.05)])
    [(name, data)] = findings.by_group(alike)
    assert name == ""
    assert data.visits.tolist() == [4] * 4
    apart = pd.concat([one, one.assign(group="B", chance=one.chance[::-1].to_numpy())])
    assert [name for name, _ in findings.by_group(apart)] == ["A", "B"]


def test_arms_are_shown_one_by_one_only_where_they_differ():
    data = pd.DataFrame({"state": ["Low", "Low"], "mean": [0.0, 1.0], "answers": [1, 2]})
    data = data.assign(low=0.0, high=1.0)
    assert findings.arms_differ(data.assign(sd=0.1))
    assert not findings.arms_differ(data.assign(sd=2.0))
    assert findings.by_state(data.assign(sd=2.0))[["mean", "answers"]].values.tolist() == [[0.5, 3]]


def test_decisions_are_a_line_an_arm_and_a_column_a_state():
    beliefs = pd.DataFrame(
        {
            **{"arm": ["1", "1", "2", "2"], "label": ["a", "a", "b", "b"], "group": "all"},
            **{"state": ["Low", "High"] * 2, "index": [1.0, 0.0, 0.4, 0.0]},
        }
    )
    found = findings.decisions(beliefs)
    assert found.title == 'The plan helps most in "Low": 1 of 2'
    assert list(found.data.Low) == ["help", "help 40 % of the time"]
    assert list(found.data.High) == ["wait", "wait"]


def test_a_state_may_have_the_name_of_a_column():
    states = ["id", "name", "group", "id (state)"]
    beliefs = pd.DataFrame(
        {
            **{"arm": "1", "label": "a", "group": "all"},
            **{"state": states, "index": [1.0, 0.0, 0.0, 0.4]},
        }
    )
    table = findings.decisions(beliefs).data
    assert table.columns.is_unique
    assert table.iloc[0].tolist() == [
        "1",
        "a",
        "all",
        "help",
        "wait",
        "wait",
        "help 40 % of the time",
    ]


@pytest.mark.parametrize("many", [0, 1, 2, 3])
def test_no_title_says_1_answers(many):
    frame = answers(["left", "right", "skip"][:many])
    duels = Agreement(many, 2, 1.0, *[Range(0.5, 0.2, 0.8)] * 2)
    titles = [findings.sides(frame).title, findings.response_times(frame).title]
    titles += [findings.over_time(frame).title, findings.agreement(duels).title]
    titles += [findings.left_out(frame, ["Ann"]), findings.count(many, "place")]
    for title in titles:
        assert not re.search(r"\b1 (answers|pairs|people|places)\b", title), title
        assert not re.search(r"\b[^1] (answer|pair|person|place)\b", title), title
        assert "nan" not in title


def test_what_a_chart_says_is_on_one_line():
    data = pd.DataFrame({"state": ["Low\u2028often", "High"], "mean": [0.5, 1.0]})
    assert findings.charted(data).state.tolist() == ["Low often", "High"]
    assert findings.charted(data)["mean"].tolist() == [0.5, 1.0]
    assert data.state[0] == "Low\u2028often"


def agreement(duels=10, people=2, same=0.8, alpha=(0.62, 0.41, 0.8)):
    return findings.agreement(Agreement(duels, people, same, Range(*alpha), Range(0.6, 0.4, 0.8)))


def test_agreement_is_said_in_words_first():
    found = agreement()
    assert found.title == (
        "Two people say the same 80 % of the time (Krippendorff's alpha 0.62, 0.41 to 0.80)"
    )
    assert found.words.startswith(
        "By 10 pairs that two people have rated. Cohen's kappa 0.60, 0.40 to 0.80."
    )
    assert found.data.measure.tolist() == ["Krippendorff's alpha", "Cohen's kappa"]
    found = agreement(1200, 4, 0.5, (-0.001, -0.05, 0.05))
    assert found.title.endswith("alpha 0.00, \N{MINUS SIGN}0.05 to 0.05)")
    assert found.words.startswith("By 1,200 pairs that two or more of 4 people have rated.")
    assert found.data.measure.tolist()[1] == "Fleiss' kappa"


def test_nothing_is_said_of_agreement_where_few_share_a_pair():
    words = "how far they agree cannot be told."
    found = findings.agreement(None)
    assert found.title == f"No pair was rated by two people yet: {words}"
    assert found.data.empty
    assert agreement(1).title == f"Only 1 pair was rated by two people yet: {words}"
    assert agreement(4).title == f"Only 4 pairs were rated by two people yet: {words}"


def test_one_answer_all_over_is_no_measure_of_agreement():
    nothing = Range(np.nan, np.nan, np.nan)
    found = findings.agreement(Agreement(20, 2, 1.0, nothing, nothing))
    assert found.title == "Two people say the same 100 % of the time"
    assert "one and the same" in found.words
    assert found.data.empty


def test_the_upper_card_on_phones_has_a_line_where_there_were_phones():
    frame = answers(["left"] * 30 + ["right"] * 30)
    assert findings.sides(frame).words == ""
    frame.loc[:29, "narrow"] = 1
    assert findings.sides(frame).words == (
        "On phones, the upper card was chosen 100 % of the time (89 % to 100 %, of 30): "
        "more than chance explains."
    )
    frame["narrow"] = 1
    assert "50 % of the time (38 % to 62 %, of 60): no sign" in findings.phones(frame)


def test_people_asked_again_count_once_each_time():
    frame = pd.DataFrame(
        {
            **{"annotator": ["Ann", "Bo", "Cy"], "answers": 20, "skips": 0, "left_share": 0.5},
            **{"again": [1, 9, 0], "consistency": [0.0, 1.0, np.nan], "agreement": np.nan},
            **{"plain": [0, 4, 4], "right": [np.nan, 1.0, 0.25], "median_ms": 1260.0},
        }
    )
    found = findings.people(frame)
    assert found.title == (
        "Asked again, people give the same answer 90 % of the time (60 % to 98 %, of 10)"
    )
    assert found.data["asked again"].tolist() == [1, 9, 0]
    assert found.data["median (s)"].tolist() == [1.3] * 3
    assert found.data["right on plain pairs"].tolist()[1:] == [100, 25]
    found = findings.people(frame.assign(again=0, consistency=np.nan))
    assert found.title == "Nobody was asked the same pair twice yet"
    assert "asked again" not in found.data


def test_the_owner_hears_of_chance_of_one_side_and_of_haste_and_of_nobody_else():
    frame = pd.DataFrame(
        {
            "annotator": ["Ann", "Bo", "Cy", "Di", "Eve"],
            "answers": [50, 50, 50, 50, 3],
            "left_share": [0.5, 0.5, 0.95, 0.5, 1.0],
            "median_ms": [900.0, 900.0, 900.0, 200.0, 100.0],
        }
    )
    assert findings.warnings(frame, {"Ann": 1.0, "Bo": 0.1}) == [
        "Bo's answers look like chance and weigh 10 % of the usual.",
        "Cy has chosen the left 95 % of the time.",
        "Half of Di's answers took less than 0.2 s.",
    ]


def test_the_table_of_people_says_who_is_left_out_and_that_they_weigh_nothing() -> None:
    shares = {name: [0.5, 0.5] for name in ("left_share", "consistency", "agreement")}
    people = pd.DataFrame(
        {
            "annotator": ["Ann", "Zed"],
            "answers": [4, 8],
            "again": [2, 2],
            "plain": 0,
            "right": np.nan,
            "median_ms": 900.0,
            **shares,
        }
    )
    people.loc[0, "consistency"] = 1.0
    found = findings.people(people, {"Ann": 1.0}, ["Zed"])
    assert "100 % of the time (34 % to 100 %, of 2)" in found.title  # Ann's alone
    data = found.data
    assert data.counts.tolist() == ["yes", "left out"]
    assert data.weight.tolist() == [100, 0]
    assert "counts" not in findings.people(people, {"Ann": 1.0, "Zed": 1.0}).data
    nobody = findings.people(people, {}, ["Ann", "Zed"])
    assert nobody.title == "Everybody's answers are left out"
    assert nobody.data.person.tolist() == ["Ann", "Zed"]
