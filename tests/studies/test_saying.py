"""The words of the page: true of their numbers, never a loss as a gain, never "1 answers"."""

from dataclasses import replace

import numpy as np
import pytest
from playing import clinic

from dopl_core.studies import saying, service, verdict
from dopl_core.studies.believed import Worth
from dopl_core.studies.service import Store
from dopl_core.studies.verdict import Belongs, Verdict
from dopl_core.studies.working import NOTHING, Estimate, Lots, Pairs

GAIN, NONE = Estimate(0.2, 0.08, 0.31, 0.999), Estimate(0.02, -0.06, 0.1, 0.7)
NAN = np.full(3, np.nan)
LESS, SAME, MORE = (Estimate(m, m - 1, m + 1, 1.0) for m in (9.0, 10.0, 12.0))


def pairs(with_help, without, reach):
    gain = np.array(with_help) - np.array(without)
    shares = np.array(with_help), np.array(without)
    return Pairs(*shares, gain, gain - reach, gain + reach, np.full(3, 9.0))


KNOWN = Verdict(
    config=clinic(horizon=1),
    weeks=12,
    course=np.array([[[2, 0, 0], [0, 0, 2]]] * 12),
    pairs=pairs([0.8, 0.5, 0.7], [0.3, 0.4, 0.9], 0.15),
    lots=Lots(12, 90, 0.7, 0.5, GAIN),
    effect=GAIN,
    doubted=GAIN,
    over_lots=Estimate(0.1, 0.02, 0.2, 0.99),
    worth=Worth(MORE, SAME, LESS, Estimate(2.0, 0.4, 3.1, 0.99), Estimate(3.0, 1, 5, 0.99)),
    belongs=[Belongs("p1", "Ada", "Low", False, 0.9), Belongs("p4", "Di", None, True, 0.3)],
    changing=0.2,
)
UNKNOWN = replace(KNOWN, effect=NONE, doubted=NONE)


def everything(found: Verdict) -> str:
    """All sentences of the page."""
    said = [*saying.headline(found), *saying.lots(found), saying.advice(found)]
    tables = (saying.course, saying.by_state, saying.worth, saying.belongs)
    return "\n".join([*said, *(table(found).title for table in tables)])


def test_a_claim_is_made_where_it_may_be_made():
    said = everything(KNOWN)
    assert "Yes: help works." in said
    assert "+20 (+8 to +31)" in said
    assert 'known to work in "Low": of 100, 80 are better off the next week with it, 30' in said
    assert "Lots say so, too" in said
    assert "The list is believed to do better than chance: 2.0 more" in said


@pytest.mark.parametrize(
    "found", [UNKNOWN, replace(KNOWN, weeks=7), replace(KNOWN, effect=NOTHING)]
)
def test_without_proof_there_is_no_good_news_at_all(found):
    said = everything(found)
    for claim in (
        "help works.",
        "known to work in",
        "Lots say so",
        "better than chance:",
        "do more",
    ):
        assert claim not in said


def test_harm_is_called_harm():
    harm = Estimate(-0.2, -0.3, -0.1, 0.001)
    said = everything(replace(KNOWN, effect=harm, doubted=harm))
    assert "No: with help, people do worse" in said
    assert "\N{MINUS SIGN}20 (\N{MINUS SIGN}30 to \N{MINUS SIGN}10)" in said


def test_a_state_that_help_makes_worse_is_never_named_as_a_gain():
    worse = replace(KNOWN, pairs=pairs([0.1, 0.2, 0.3], [0.6, 0.7, 0.8], 0.1))
    assert saying.by_state(worse).title.startswith("Of no single state")
    nothing = replace(KNOWN, pairs=Pairs(NAN, NAN, NAN, NAN, NAN, np.zeros(3)))
    assert saying.by_state(nothing).title == "Nothing can be said yet of single states"


def test_the_best_state_is_kept_not_bettered():
    best = replace(KNOWN, pairs=pairs([0.5, 0.5, 0.9], [0.5, 0.5, 0.4], 0.1))
    assert 'in "High": of 100, 90 are still there the next week' in saying.by_state(best).title


def test_before_reports_it_is_too_early():
    none = replace(KNOWN, weeks=0, course=np.zeros((0, 2, 3), dtype=int))
    assert "no week is reported" in everything(none)
    assert "4 of the first 8 weeks" in everything(replace(KNOWN, weeks=4))


def test_weeks_in_which_nobody_was_seen_are_reported_weeks():
    unseen = replace(KNOWN, weeks=2, course=np.zeros((2, 2, 3), dtype=int))
    assert "is not known yet" in saying.course(unseen).title
    some = replace(KNOWN, weeks=2, course=np.array([[[0, 0, 0]] * 2, [[0, 0, 1], [0, 0, 0]]]))
    assert saying.course(some).title == '100 % were in "High" when week 2 had ended'


def test_how_everybody_is_counts_all_and_marks_the_helped():
    found = saying.course(KNOWN)
    assert found.title == '50 % were in "High" when week 12 had ended, after 50 % in week 1'
    helped = found.data[(found.data.who == "helped") & (found.data.week == 3)]
    assert helped.people.tolist() == [0, 0, 2]
    assert set(helped.better_half) == {1.0}


@pytest.mark.parametrize(("weeks", "said"), [(1, "1 of the first 8 weeks is"), (2, "2 of the")])
def test_one_week_is_one(weeks, said):
    assert said in everything(replace(KNOWN, weeks=weeks))


@pytest.mark.parametrize(("places", "said"), [(1, "1 place of every list goes"), (2, "2 places")])
def test_lots_that_are_set_but_not_drawn_yet_are_no_advice_to_set_them(places, said):
    none = replace(KNOWN, lots=Lots(0, 0, 0, 0, NOTHING))
    title, words = saying.lots(replace(none, config=clinic(budget=3, by_lot=places)))
    assert title.startswith(said)
    assert "setting" not in words
    assert "setting" in saying.lots(none)[1]


def test_lots_say_how_few_they_are():
    few = replace(KNOWN, lots=Lots(1, 9, 1.0, 1.0, NOTHING))
    assert "1 lot drawn so far" in everything(few)
    assert "No places were drawn by lot" in everything(
        replace(KNOWN, lots=Lots(0, 0, 0, 0, NOTHING))
    )


def test_advice_says_when_to_stop_asking():
    assert "people can stop answering" in saying.advice(KNOWN)
    assert "change about 1 of the 1 place:" in saying.advice(replace(KNOWN, changing=1.2))
    assert saying.advice(replace(KNOWN, changing=None)) == ""


def test_how_many_belong_is_of_those_who_were_chosen():
    one = "The one chosen for the list belongs there with a chance of 90 %"
    assert saying.belongs(KNOWN).title == one
    more = [Belongs(f"p{n}", f"P {n}", "Low", False, chance) for n, chance in enumerate([0.7] * 7)]
    said = "About 5 of the 7 chosen for the list belong there, as far as is known (3 to 7)"
    assert saying.belongs(replace(KNOWN, belongs=KNOWN.belongs[1:] + more)).title == said
    drawn = replace(KNOWN, belongs=KNOWN.belongs[1:])
    assert saying.belongs(drawn).title == "All places of the list were drawn by lot"
    assert saying.belongs(KNOWN).data["by lot"].tolist() == ["", "by lot"]


def test_a_study_is_read_the_same_each_time_and_whatever_has_happened(store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", budget=3, by_lot=1, answers=4)
    study = service.create_study(store, config)
    assert verdict.read(store, study).weeks == 0
    for _ in range(3):
        states = dict.fromkeys(service.present_states(store, study), "Low") | {"p1": None}
        service.observe(store, study, states)
        service.advance(store, study)
    service.leave(store, study, ["p4"])
    found, again = verdict.read(store, study), verdict.read(store, study)
    assert found.weeks == 3
    assert found.lots.drawn <= 3
    assert len(found.belongs) == 3
    assert [one.by_lot for one in found.belongs].count(True) == 1
    assert (found.effect, found.worth, found.changing) == (
        again.effect,
        again.worth,
        again.changing,
    )
    assert "too early" in everything(found)
    paper = service.create_study(store, clinic(horizon=1))
    assert verdict.read(store, paper).worth is None
