"""Evidence on cards: from rosters, aligned on both sides, and safe as HTML."""

import pytest

from dopl_core import studies
from dopl_core.studies.collect import cards
from dopl_core.studies.collect.demo_evidence import demo_evidence
from dopl_core.studies.collect.views import Chart, Evidence, Fact, side_of

CPAP = ("Low adherence", "Moderate adherence", "High adherence")


def test_evidence_is_made_up_in_simulated_worlds_and_from_the_roster_in_observed_ones():
    simulated = studies.from_environment("cpap", seed=7)
    side = side_of(simulated, 4, 2, {}, ())
    drawn = demo_evidence("cpap", CPAP, 2, seed=7, arm=4, episode=3, epoch=1)
    assert cards.evidence(simulated, side, 3, 1) == drawn
    arms = [studies.Arm(f"p{n}", "Ann", state="Low", columns={"age": "61"}) for n in range(3)]
    observed = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=2)
    side = side_of(observed, 0, 0, {"p0": {"age": "62"}}, ())
    assert cards.evidence(observed, side, 3, 1) == Evidence((Fact("Age", "62"),))


def test_lists_of_numbers_become_charts_and_other_columns_facts():
    evidence = cards.from_roster(
        {
            "age": "54",
            "hours_1": "5.5",
            "hours_2": "",
            "hours_3": "7",
            "steps": "1; 2; 3",
            "note": "",
        }
    )
    assert evidence.facts == (Fact("Age", "54"), Fact("Note", ""))
    assert [chart.caption for chart in evidence.charts] == ["Hours", "Steps"]
    assert cards.describe_chart(evidence.charts[0]) == "3 values: 5.5, –, 7."
    assert evidence.charts[1].values == (1.0, 2.0, 3.0)


def test_two_numbered_columns_or_texts_among_numbers_stay_facts():
    evidence = cards.from_roster(
        {"line 1": "5", "line 2": "6", "visits": "1 2 x", "phone": "nan nan nan"}
    )
    assert [fact.label for fact in evidence.facts] == ["Line 1", "Line 2", "Visits", "Phone"]
    assert not evidence.charts


def test_a_photo_in_the_roster_is_shown():
    photo = "data:image/png;base64,aGk="
    assert cards.from_roster({"Photo": photo}) == Evidence(photo=photo)


def test_a_photo_on_the_web_is_shown_only_if_the_owner_allows_it():
    photo = "https://clinic.example/7.jpg"
    told = Evidence((Fact("Photo", "on the web, not shown"),))
    assert cards.from_roster({"Photo": photo}) == told
    assert cards.from_roster({"Photo": photo}, from_web=True) == Evidence(photo=photo)


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "../dopl.db", "javascript:alert(1)", "data:text/html,<b>", "http://x/y"]
)
def test_anything_else_in_the_photo_column_is_shown_as_text(text):
    assert cards.from_roster({"photo": text}) == Evidence((Fact("Photo", text),))


def test_both_sides_have_the_same_facts_and_missing_ones_are_not_known():
    left = cards.from_roster({"age": "54", "note": "", "steps": "1 2 3", "mood": "", "hours": "7"})
    right = cards.from_roster({"age": "", "note": "", "steps": "", "mood": "low", "hours": "1 2 9"})
    one, other = cards.aligned(left, right)
    assert one.facts == (Fact("Age", "54"), Fact("Mood", "not known"))
    assert other.facts == (Fact("Age", "not known"), Fact("Mood", "low"))
    assert [c.caption for c in one.charts] == [c.caption for c in other.charts]
    words = {(n, c.caption): c.words for n, e in enumerate((one, other)) for c in e.charts}
    assert words == {
        (0, "Steps"): "",
        (1, "Steps"): "not known",
        (0, "Hours"): "7",
        (1, "Hours"): "",
    }


def test_the_explanation_of_a_practice_duel_does_not_reveal_a_hidden_state():
    config = studies.from_environment("cpap", seed=7)
    better, worse = side_of(config, 4, 2, {}, ()), side_of(config, 5, 0, {}, ())
    seen = [cards.evidence(config, side, 0, 0) for side in (better, worse)]
    said = cards.why_better(better, worse, seen, state_shown=False)
    assert said.startswith("Hours of CPAP, last seven nights: ")
    assert "adherence" not in said
    assert "High adherence" in cards.why_better(better, worse, seen, state_shown=True)


def test_both_sides_of_a_duel_have_the_same_scale():
    sides = [cards.from_roster({"hours": hours, "steps": "1 2 3"}) for hours in ("1 2 4", "5 8 2")]
    left, right = cards.on_one_scale(*sides)
    assert [chart.top for chart in left.charts] == [chart.top for chart in right.charts] == [8, 3]
    assert "height:50.0%" in cards.chart_html(left.charts[0])


def test_the_html_of_a_chart_contains_no_text_of_the_roster():
    chart = cards.from_roster({"<img src=x onerror=alert(1)>": "1 2 3"}).charts[0]
    drawn = cards.chart_html(chart)
    assert "alert" not in drawn
    assert "img" not in drawn.replace('role="img"', "")


def test_a_chart_is_described_in_words():
    chart = demo_evidence("cpap", CPAP, 2).charts[0]
    assert cards.describe_chart(chart).startswith("7 values in h: ")
    assert cards.describe_chart(chart).endswith("7 of them reach 4 h.")
    assert f'aria-label="{cards.describe_chart(chart)}"' in cards.chart_html(chart)


@pytest.mark.parametrize(
    "values", [(0.0, 0.0, 0.0), (float("nan"),) * 3, (-3.0, 2.0, 1e9), (0.04, 12.0, 7.0)]
)
def test_any_numbers_can_be_drawn(values):
    assert cards.chart_html(Chart("x", values)).count("<i ") == 3


@pytest.mark.parametrize("text", ["+49 30 3136", "030 1234 567", "0049 30 3136"])
def test_a_telephone_number_is_a_fact_and_no_chart(text: str) -> None:
    found = cards.from_roster({"phone": text, "hours": "5 0 7.2"})
    assert [fact.value for fact in found.facts] == [text]
    assert [chart.caption for chart in found.charts] == ["Hours"]
