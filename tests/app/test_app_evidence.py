"""Evidence to publish: the reliability of answers on Insights, and the design of a trial."""

import json

import pytest
from page_words import words
from playing import clinic

from dopl_core import studies
from dopl_core.studies import assessment_text
from pages.shared.markdown import plain

PEOPLE = "How people answer"


def test_a_chart_on_insights_shows_the_reliability_now_and_with_more_answers(visit, store):
    config = studies.from_environment("cpap", practice=False, horizon=1, answers=40)
    study = studies.create_study(store, config)
    studies.rehearse(store, study, annotators=2, answers=120)
    enough = studies.reliability.measure_enough(store, study)
    finding = studies.reliability_text.finding(enough)
    app = visit("insights", study=study, look=PEOPLE)
    assert not app.exception
    assert plain(finding.title) in words(app)
    assert plain(finding.note) in words(app)
    chart = json.loads(app.get("vega_lite_chart")[0].proto.spec)
    line = next(one["encoding"]["x"] for one in chart["layer"] if one["mark"]["type"] == "line")
    assert line["axis"]["values"] == finding.data.answers.tolist()
    assert line["axis"]["format"] == "d"  # one point alone would be 397.000000
    heights = [one["encoding"].get("y") for one in chart["layer"]]
    assert {"datum": studies.reliability.ENOUGH} in heights
    [measures] = [one for one in app.dataframe if "measure" in one.value]
    assert enough.found is not None
    shown = studies.reliability_text.measures(enough.found).measure.tolist()
    assert measures.value.measure.tolist() == shown
    assert shown[0] == "scale separation"
    assert any("infit: rehearsal 2" in one for one in shown)


def test_insights_says_where_help_wears_off_below_what_help_does(visit, store, monkeypatch):
    less = "Help does less for cases who were helped in the 4 weeks before."
    monkeypatch.setattr(assessment_text, "earlier_help_text", lambda found: [less])
    study = studies.create_study(store, clinic(horizon=1, confidence="calibrated"))
    for week in range(12):
        states = {f"p{n}": ("Low", "High")[(n + week) % 2] for n in range(1, 5)}
        helped = ["p1", "p2"] if week % 4 < 2 else ["p3", "p4"]
        studies.observe(store, study, states, helped=helped)
        studies.advance(store, study)
    app = visit("insights", study=study)
    assert not app.exception
    assert plain(less) in words(app)


@pytest.fixture
def planned(visit, monkeypatch):
    """The form for a new study of twelve people, with the power of a trial in it."""
    monkeypatch.setattr("dopl_core.studies.analysis.power.CLINICS", 4)
    monkeypatch.setattr("dopl_core.studies.analysis.power.WEEKS", (6, 13))
    roster = "id,state\n" + "".join(f"p{n},{'abc'[n % 3]}\n" for n in range(12))
    app = visit("studies")
    app.file_uploader(key="roster").set_value(("ward.csv", roster.encode(), "text/csv")).run()
    order = next(one for one in app.multiselect if one.key.startswith("order of"))
    order.set_value(["a", "b", "c"]).run()
    app.number_input(key="budget roster").set_value(4).run()
    app.checkbox(key="publish").check().run()
    app.button(key="compute-power").click().run()
    assert "Power: how likely" in words(app)
    return app


def test_the_power_of_another_order_of_states_is_not_taken_over(planned):
    app = planned
    order = next(one for one in app.multiselect if one.key.startswith("order of"))
    order.set_value(["c", "b", "a"]).run()
    assert not app.exception
    assert app.checkbox(key="publish").value
    assert "Power: how likely" not in words(app)


def test_a_trial_can_have_more_analyses_than_the_shortest_usual_one_has_weeks(planned):
    planned.number_input(key="publish-looks").set_value(8).run()
    planned.button(key="compute-power").click().run()
    assert not planned.error
    assert list(planned.dataframe[-1].value.columns[1:]) == ["13 weeks", "26 weeks"]


def test_the_expected_effect_is_refused_in_the_words_of_its_field(planned):
    planned.number_input(key="publish-effect").set_value(150).run()
    [error] = [one.value for one in planned.error]
    assert "at most 100 needed" in error
