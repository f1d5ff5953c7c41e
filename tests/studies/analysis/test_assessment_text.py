"""The sentences of "Is it working?": true to their numbers, and no gain claimed without proof."""

from dataclasses import replace

import numpy as np
import pytest
from playing import clinic

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.analysis import assessment, assessment_text
from dopl_core.studies.analysis.assessment import AnswersChanged, Assessment, Place
from dopl_core.studies.analysis.effect_of_help import (
    UNKNOWN_ESTIMATE,
    EffectByLot,
    EffectInState,
    EffectWithin,
    Estimate,
)
from dopl_core.studies.analysis.forecast import Forecast
from dopl_core.studies.operate.known_effects import KnownEffect

GAIN, NONE = Estimate(0.2, 0.08, 0.31, 0.999), Estimate(0.02, -0.06, 0.1, 0.7)
HARM = Estimate(-0.2, -0.3, -0.1, 0.001)
LESS, SAME, MORE = (Estimate(m, m - 1, m + 1, 1.0) for m in (9.0, 10.0, 12.0))
NO_LOTS = EffectByLot(0, UNKNOWN_ESTIMATE)


def by_state(with_help, without, reach):
    """Effects in states: people better off of 20 with help and of 40 without."""
    found = []
    for helped, unhelped in zip(with_help, without, strict=True):
        gain = helped / 20 - unhelped / 40
        estimate = Estimate(gain, gain - reach, gain + reach, 0.99)
        found.append(EffectInState(KnownEffect(20, helped, 40, unhelped), estimate))
    return found


PROVEN = Assessment(
    config=clinic(horizon=1, noun="patient"),
    weeks=12,
    state_counts=np.array([[[2, 0, 0], [0, 0, 2]]] * 12),
    effect_by_state=by_state([16, 10, 14], [12, 16, 36], 0.15),
    effect=EffectWithin(GAIN, [GAIN, NONE, UNKNOWN_ESTIMATE]),
    effect_by_lot=EffectByLot(12, GAIN),
    sceptical_effect=GAIN,
    targeting_gain=Estimate(0.1, 0.02, 0.2, 0.99),
    forecast=Forecast(MORE, MORE, SAME, LESS, Estimate(2.0, 0.4, 3.1, 0.99), NONE),
    places=[Place("p1", "Ada", "Low", False, 0.9), Place("p4", "Di", None, True, 0.3)],
    places_changed=0.2,
    answers_changed=AnswersChanged(3, 8, True),
)


def with_effect(estimate: Estimate) -> Assessment:
    return replace(
        PROVEN, effect=PROVEN.effect._replace(overall=estimate), sceptical_effect=estimate
    )


UNPROVEN = with_effect(NONE)


def all_sentences(found: Assessment) -> str:
    sentences = [
        *assessment_text.headline(found),
        *assessment_text.by_lot_text(found),
        *assessment_text.advice(found),
        *assessment_text.earlier_help_text(found),
        assessment_text.trend_text(found),
    ]
    findings = (
        assessment_text.states_finding,
        assessment_text.effect_by_state_finding,
        assessment_text.forecast_finding,
        assessment_text.places_finding,
    )
    shown = [finding(found) for finding in findings]
    return "\n".join([*sentences, *(f"{one.title}\n{one.note}" for one in shown)])


def test_proven_help_is_claimed_in_every_section():
    text = all_sentences(PROVEN)
    assert "Yes: help works." in text
    assert "Help improves 20 more patients in 100 (90 % interval 8 to 31)." in text
    finding = assessment_text.effect_by_state_finding(PROVEN)
    assert finding.title == 'Help works in "Low"'  # what was observed stands below it, once
    assert finding.data.observed[0] == (
        'Patients in "Low" were better off the next week 16 of 20 times with help (80 %) and 12 of '
        "40 times without help (30 %)."
    )
    assert "Random places confirm it" in text
    assert "The list is expected to do better than help at random: 2.0 more patients" in text


@pytest.mark.parametrize(
    "found",
    [
        UNPROVEN,
        replace(PROVEN, weeks=7),
        with_effect(UNKNOWN_ESTIMATE),
        replace(PROVEN, sceptical_effect=NONE),
    ],
)
def test_no_gain_is_claimed_without_proof(found):
    text = all_sentences(found)
    for claim in (
        "help works.",
        "Help improves",
        "Help works in",
        "Random places confirm",
        "is expected to do better",
        "estimated to do more",
    ):
        assert claim not in text


def test_harm_is_reported_as_harm():
    text = all_sentences(with_effect(HARM))
    assert "No: people do worse with help than without" in text
    assert (
        "20 fewer patients in 100 (90 % interval 10 to 30) are better off the next week with"
        in text
    )


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ((0.15, 0.06, 0.24), "15 more mothers in 100 (90 % interval 6 to 24)"),
        ((0.02, -0.06, 0.1), "2 more mothers in 100 (90 % interval 6 fewer to 10 more)"),
        ((-0.02, -0.1, 0.06), "2 fewer mothers in 100 (90 % interval 10 fewer to 6 more)"),
        ((-0.2, -0.3, -0.1), "20 fewer mothers in 100 (90 % interval 10 to 30)"),
        ((-0.001, -0.03, 0.001), "0 more mothers in 100 (90 % interval 3 fewer to 0 more)"),
        ((0.001, -0.001, 0.03), "0 more mothers in 100 (90 % interval 0 to 3)"),
    ],
)
def test_differences_are_people_in_100_with_their_interval(estimate, text):
    assert assessment_text.more_in_100(Estimate(*estimate, 0.5), "mother") == text


def test_a_state_in_which_help_does_harm_is_not_named_as_a_gain():
    worse = replace(PROVEN, effect_by_state=by_state([2, 4, 6], [24, 28, 32], 0.1))
    title = assessment_text.effect_by_state_finding(worse).title
    assert title == "Help is not proven yet in any single state"


def test_a_state_is_not_claimed_where_the_shares_contradict_the_estimate():
    against = [EffectInState(KnownEffect(20, 4, 40, 12), GAIN)] * 3
    title = assessment_text.effect_by_state_finding(replace(PROVEN, effect_by_state=against)).title
    assert title == "Help is not proven yet in any single state"


def test_a_state_that_was_seen_one_way_only_has_no_estimate():
    one_way = [EffectInState(KnownEffect(20, 12, 0, 0), UNKNOWN_ESTIMATE)] * 3
    found = assessment_text.effect_by_state_finding(replace(PROVEN, effect_by_state=one_way))
    assert found.title == "Too few moves with help and without for an estimate in any state"
    assert found.data.observed[0] == (
        'Patients in "Low" were better off the next week 12 of 20 times with help (60 %). Nobody '
        'in "Low" has been seen without help yet.'
    )


def test_people_in_the_best_state_stay_there():
    best = replace(PROVEN, effect_by_state=by_state([10, 10, 18], [20, 20, 16], 0.1))
    finding = assessment_text.effect_by_state_finding(best)
    assert finding.title == 'Help works in "High"'
    assert finding.data.observed[2].startswith('Patients in "High" were still there the next')


def test_before_the_eighth_week_it_is_too_early():
    none = replace(PROVEN, weeks=0, state_counts=np.zeros((0, 2, 3), dtype=int))
    assert "no week has been reported" in all_sentences(none)
    assert "Too early to tell: 4 of the first 8 weeks" in all_sentences(replace(PROVEN, weeks=4))


def test_reported_weeks_without_known_states_are_handled():
    unseen = replace(PROVEN, weeks=2, state_counts=np.zeros((2, 2, 3), dtype=int))
    assert "is known yet" in assessment_text.states_finding(unseen).title
    counts = np.array([[[0, 0, 0]] * 2, [[0, 0, 1], [0, 0, 0]]])
    some = assessment_text.states_finding(replace(PROVEN, weeks=2, state_counts=counts))
    assert some.title == '1 of 1 patients (100 %) was in "High" at the end of week 2'


@pytest.mark.parametrize(
    ("effect", "better", "text"),
    [
        (GAIN, (3, 1), "Help works, and yet fewer patients than at first are in the better half."),
        (GAIN, (1, 3), ""),
        (GAIN, (2, 2), ""),
        (NONE, (1, 3), "A rise alone does not prove that help works"),
        (NONE, (3, 1), ""),
        (HARM, (1, 3), "Help does harm, and yet more patients than at first"),
        (HARM, (3, 1), ""),
    ],
)
def test_a_trend_against_the_answer_is_explained(effect, better, text):
    counts = np.zeros((12, 2, 3), int)
    for week, people in ((slice(1), better[0]), (slice(1, None), better[1])):
        counts[week, 0, 2], counts[week, 1, 0] = people, 4 - people
    said = assessment_text.trend_text(replace(with_effect(effect), state_counts=counts))
    assert said.startswith(text)
    assert bool(said) == bool(text)
    if "yet" in text:
        assert "at most 2 of 4 patients are helped" in said


def test_shares_that_round_to_the_same_number_are_no_rise():
    counts = np.zeros((3, 2, 3), int)
    counts[0, 0], counts[1:, 0] = (11, 0, 18), (9, 0, 15)
    found = replace(UNPROVEN, state_counts=counts)
    assert "15 of 24 patients (62 %)" in assessment_text.states_finding(found).title
    assert "week 1: 18 of 29 (62 %)" in assessment_text.states_finding(found).title
    assert assessment_text.trend_text(found) == ""


def test_states_are_counted_for_everybody_and_for_those_helped():
    found = assessment_text.states_finding(PROVEN)
    assert found.title == (
        '2 of 4 patients (50 %) were in "High" at the end of week 12; week 1: 2 of 4 (50 %)'
    )
    helped = found.data[(found.data.group == "helped") & (found.data.week == 3)]
    assert helped.people.tolist() == [0, 0, 2]
    assert set(helped.better_half) == {1.0}


@pytest.mark.parametrize(
    ("weeks", "text"), [(1, "1 of the first 8 weeks is"), (2, "2 of the first 8 weeks are")]
)
def test_verbs_agree_with_the_number_of_weeks(weeks, text):
    assert text in all_sentences(replace(PROVEN, weeks=weeks))


@pytest.mark.parametrize(
    ("places", "text"), [(1, "1 place of every list is"), (2, "2 places of every list are")]
)
def test_random_places_are_recommended_only_if_the_study_has_none(places, text):
    none = replace(PROVEN, effect_by_lot=NO_LOTS)
    with_lots = replace(none, config=clinic(budget=3, by_lot=places))
    title, basis = assessment_text.by_lot_text(with_lots)
    assert title.startswith(text)
    assert "setting" not in basis
    assert "setting" in assessment_text.by_lot_text(none)[1]


def test_too_few_random_places_are_not_compared():
    few = replace(PROVEN, effect_by_lot=EffectByLot(1, UNKNOWN_ESTIMATE))
    assert "1 random choice so far: too few to compare" in all_sentences(few)
    none = replace(PROVEN, effect_by_lot=NO_LOTS)
    assert "No places have been chosen at random yet" in all_sentences(none)


def test_advice_says_how_many_places_more_answers_would_change():
    """Only the text beside the reliability says whether to go on asking."""
    none = "40 more answers would change almost none of the 1 place not chosen at random."
    assert assessment_text.advice(PROVEN)[-1] == none
    some = assessment_text.advice(replace(PROVEN, places_changed=1.2, places=PROVEN.places[:1]))
    assert some[-1] == "40 more answers would change about 1 of the 1 place."
    assert not assessment_text.advice(replace(PROVEN, places_changed=None, answers_changed=None))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ((3, 8, True), "All your answers changed 3 of the 8 places on the list, compared with"),
        ((0, 8, False), "All your answers changed none of the 8 places on the list"),
        ((1, 1, True), "All your answers changed the one place on the list"),
        ((0, 1, False), "All your answers did not change the one place on the list"),
    ],
)
def test_advice_says_what_answers_changed(changed, text):
    said = assessment_text.advice(replace(PROVEN, answers_changed=AnswersChanged(*changed)))[0]
    assert said.startswith(text)
    little = "People in one state differ little: your order of states says nearly everything."
    assert (little in said) is not changed[2]


def test_the_order_does_not_say_nearly_everything_where_answers_changed_most_places():
    said = assessment_text.answers_text(AnswersChanged(6, 8, False), listed=8)
    assert said.endswith("6 of the 8 places on the list, compared with your order of states alone.")


def test_an_interval_that_is_shown_with_an_end_of_zero_claims_nothing():
    near = Estimate(2.3, 0.04, 5.2, 0.99)
    shown = replace(PROVEN, forecast=PROVEN.forecast._replace(over_random=near))
    assert assessment_text.forecast_finding(shown).title == (
        "It is not known yet whether the list does better than help at random"
    )
    lots = EffectByLot(12, Estimate(0.25, 0.004, 0.51, 0.96), 6)
    title, basis = assessment_text.by_lot_text(replace(PROVEN, effect_by_lot=lots))
    assert "(90 % interval 0 to 51)" in basis
    assert title == "Random places alone do not prove an effect yet."


def test_random_places_are_not_said_to_show_nothing_beside_an_interval_above_zero():
    above = replace(UNPROVEN, effect_by_lot=EffectByLot(12, Estimate(0.36, 0.13, 0.58, 0.99), 6))
    title, basis = assessment_text.by_lot_text(above)
    assert "(90 % interval 13 to 58)" in basis
    assert title == "Random places alone do not prove an effect yet."


@pytest.mark.parametrize(
    ("effect", "title"),
    [
        (HARM, "Random places confirm it: people did worse with a place than without."),
        (NONE, "Random places alone do not prove an effect yet."),
    ],
)
def test_random_places_claim_harm_only_where_the_page_does(effect, title):
    found = replace(with_effect(effect), effect_by_lot=EffectByLot(12, HARM))
    assert assessment_text.by_lot_text(found)[0] == title


@pytest.mark.parametrize("rules", [{"once_in": 2}, {"most_times": 3}, {"fair_column": "group"}])
def test_a_forecast_says_that_it_leaves_out_the_owners_rules(rules):
    assert assessment_text.rules_text(PROVEN.config) == ""
    fair = {"fair_rule": "roster"} if "fair_column" in rules else {}
    assert "are left out" in assessment_text.rules_text(clinic(**rules, **fair))


def test_places_that_the_order_of_states_says_nothing_about_are_not_counted():
    said = assessment_text.answers_text(AnswersChanged(1, 9, True), listed=10)
    assert said.startswith("All your answers changed 1 of 9 places on the list, compared with")
    assert "Not counted: people chosen at random, to find out, or with an unknown state." in said


def test_no_week_needs_a_probability_of_100_percent():
    early = assessment_text.headline(replace(UNPROVEN, weeks=8))[1]
    assert "a claim needs a probability of 99.97 %" in early


def test_the_list_is_weighed_against_worst_first():
    coming = PROVEN.forecast
    assert coming is not None
    finding = assessment_text.forecast_finding(PROVEN)
    assert finding.data.help.tolist() == [
        "this list",
        "worst off first",
        "help at random",
        "no help",
    ]
    assert finding.data.people.tolist() == [12, 12, 10, 9]
    worst = "helping the worst off first"
    assert finding.note == f"It is not known yet whether the list does better than {worst}."
    for gain, text in ((GAIN, "better"), (Estimate(-2, -3, -1, 0), "worse")):
        known = replace(PROVEN, forecast=coming._replace(over_worst_first=gain))
        assert f"do {text} than {worst}:" in assessment_text.forecast_finding(known).note


def test_the_interval_of_a_number_of_people_is_from_0_to_all():
    coming = PROVEN.forecast
    assert coming is not None
    wide = coming._replace(no_help=Estimate(1.0, -0.04, 9.0, 1.0))
    data = assessment_text.forecast_finding(replace(PROVEN, forecast=wide)).data
    assert data[["low", "high"]].iloc[-1].tolist() == [0, 4]


def test_only_people_chosen_by_the_plan_count_as_belonging():
    one = "The person chosen for the list belongs there with 90 % probability"
    assert assessment_text.places_finding(PROVEN).title == one
    by_lot, finds_out = PROVEN.places[1:], Place("p9", "P 9", "Low", False, 0.1, True)
    seven = [Place(f"p{n}", f"P {n}", "Low", False, 0.7) for n in range(7)]
    assert assessment_text.places_finding(
        replace(PROVEN, places=[*seven, finds_out, *by_lot])
    ).title == ("About 5 of the 7 patients chosen for the list belong there (90 % interval 3 to 7)")
    drawn = assessment_text.places_finding(replace(PROVEN, places=by_lot))
    assert drawn.title == "All places on the list were chosen at random"
    assert assessment_text.places_finding(PROVEN).data.random.tolist() == ["", "yes"]


def test_an_assessment_is_reproducible_and_survives_unknown_states_and_leavers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assessment, "_draw_count", lambda visits: 100)  # faster
    config = clinic(horizon=1, confidence="calibrated", budget=3, by_lot=1, answers=4)
    study = studies.create_study(store, config)
    assert assessment.assess(store, study).weeks == 0
    for week in range(3):
        states = dict.fromkeys(studies.present_states(store, study), "Low") | {"p1": None}
        studies.observe(store, study, states)
        studies.advance(store, study)
        if week == 1:
            assert assessment_text.advice(assessment.assess(store, study)) == []  # no answer yet
            ask = studies.next_duel(store, study, "Ann")
            studies.answer(store, ask.impression, "left", response_ms=900, too_fast_ms=0)
    listed = {one.id for one in studies.read_lists(store, study)[-1].listed}
    studies.leave(store, study, [*{"p1", "p2", "p3", "p4"} - listed])
    found, again = assessment.assess(store, study), assessment.assess(store, study)
    assert found.weeks == 3
    assert found.effect_by_lot.drawn <= 6
    assert len(found.places) == 3
    assert [place.by_lot for place in found.places].count(True) == 1
    assert (found.effect, found.forecast, found.places_changed) == (
        again.effect,
        again.forecast,
        again.places_changed,
    )
    assert found.places_changed is not None
    assert "Too early" in all_sentences(found)
    assert assessment.assess(store, studies.create_study(store, clinic())).forecast is None
