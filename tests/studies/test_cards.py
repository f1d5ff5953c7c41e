"""Evidence on duel cards fits the state, is the same for everybody, and runs nothing."""

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.studies import cards, service
from dopl_core.studies.cards import Chart, Fact
from dopl_core.studies.replies import side_of

DRAWS = range(200)
CPAP = ("Low adherence", "Moderate adherence", "High adherence")


def labels(environment):
    return [state.label for state in environments.load(environment).states]


def draws(environment, state):
    names = labels(environment)
    return [
        cards.draw(environment, names, state, seed=7, arm=arm, episode=3, epoch=2) for arm in DRAWS
    ]


@pytest.mark.parametrize("name", environments.names())
def test_every_state_of_the_shipped_environments_has_evidence(name):
    names = labels(name)
    for state in range(len(names)):
        evidence = cards.draw(name, names, state)
        assert evidence.facts or evidence.charts


def test_evidence_is_the_same_for_everybody_who_sees_the_arm_in_an_epoch():
    one = cards.draw("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=1)
    assert one == cards.draw("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=1)
    assert one != cards.draw("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=2)
    assert one != cards.draw("cpap", CPAP, 1, seed=4, arm=5, episode=2, epoch=1)


def test_studies_of_the_first_edition_keep_the_evidence_that_they_had():
    old = cards.draw("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=1, edition=1)
    assert old.charts[0].values == (5.6, 5.0, 2.7, 1.5, 0.0, 2.1, 3.4)


def test_cpap_nights_fit_the_words_of_the_state():
    nights = [[np.array(e.charts[0].values) for e in draws("cpap", state)] for state in range(3)]
    assert all((hours < 4).all() and 1 <= (hours > 0).sum() <= 3 for hours in nights[0])
    assert all(2 <= (hours >= 4).sum() <= 3 and (hours > 0).sum() >= 5 for hours in nights[1])
    assert all((hours >= 4).all() for hours in nights[2])


def test_app_use_fits_the_words_of_the_state():
    for state, days in ((0, range(32, 61)), (1, range(8, 29))):
        for evidence in draws("app_marketing", state):
            assert set(evidence.charts[0].values) == {0.0}
            assert int(evidence.facts[0].value.split()[0]) in days
    for evidence in draws("app_marketing", 2):
        minutes = evidence.charts[0].values
        assert 2 <= np.count_nonzero(minutes) <= 4
        assert (evidence.facts[0].value == "today") == (minutes[-1] > 0)
    assert all(min(e.charts[0].values) > 0 for e in draws("app_marketing", 3))


def test_calls_are_listened_to_as_the_state_says():
    mean = [[np.mean(e.charts[0].values) for e in draws("armman", state)] for state in range(3)]
    assert min(mean[0]) > 50
    assert min(mean[1]) >= 5
    assert max(mean[1]) <= 50
    assert max(mean[2]) < 5


def test_a_players_four_conditions_are_those_of_the_state():
    words = [("Slept", "Tired"), ("fed", "underfed"), ("sharp", "dull"), ("fast", "slow")]
    for state, label in enumerate(labels("sports")):
        facts = cards.draw("sports", labels("sports"), state).facts
        said = ", ".join(pair[not fact.holds] for pair, fact in zip(words, facts, strict=True))
        assert said == label


def test_an_environment_without_a_picture_shows_none():
    assert cards.draw("my_clinic", CPAP, 0) == cards.Evidence()


@pytest.mark.parametrize(
    "states", [(*CPAP, "Full adherence"), CPAP[:2], CPAP[::-1], ("Schwach", "Mittel", "Stark")]
)
def test_a_picture_is_not_drawn_for_states_that_it_was_not_made_for(states):
    for state in range(len(states)):
        assert cards.draw("cpap", states, state) == cards.Evidence()


def test_a_side_of_a_simulated_duel_is_drawn_and_one_of_a_roster_read():
    simulated = service.from_environment("cpap", seed=7)
    side = side_of(simulated, 4, 2, {})
    drawn = cards.draw("cpap", CPAP, 2, seed=7, arm=4, episode=3, epoch=1)
    assert cards.evidence(simulated, side, 3, 1) == drawn
    arms = [service.Arm(f"p{n}", "Ann", state="Low", columns={"age": "61"}) for n in range(3)]
    observed = service.from_roster(arms, ["Low", "High"], title="Ward", budget=2)
    side = side_of(observed, 0, 0, {"p0": {"age": "62"}})
    assert cards.evidence(observed, side, 3, 1) == cards.Evidence((Fact("Age", "62"),))


def test_a_rosters_lists_of_numbers_become_charts_and_the_rest_facts():
    evidence = cards.read(
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
    assert cards.describe(evidence.charts[0]) == "3 values: 5.5, –, 7"
    assert evidence.charts[1].values == (1.0, 2.0, 3.0)


def test_two_numbered_columns_or_words_among_numbers_stay_facts():
    evidence = cards.read({"line 1": "5", "line 2": "6", "visits": "1 2 x", "phone": "nan nan nan"})
    assert [fact.label for fact in evidence.facts] == ["Line 1", "Line 2", "Visits", "Phone"]
    assert not evidence.charts


def test_a_photo_in_the_roster_is_shown():
    photo = "data:image/png;base64,aGk="
    assert cards.read({"Photo": photo}) == cards.Evidence(photo=photo)


def test_a_photo_on_the_web_is_fetched_only_if_the_owner_says_so():
    photo = "https://clinic.example/7.jpg"
    told = cards.Evidence((Fact("Photo", "on the web, not shown"),))
    assert cards.read({"Photo": photo}) == told
    assert cards.read({"Photo": photo}, from_web=True) == cards.Evidence(photo=photo)


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "../dopl.db", "javascript:alert(1)", "data:text/html,<b>", "http://x/y"]
)
def test_anything_else_in_the_photo_column_is_shown_as_text(text):
    assert cards.read({"photo": text}) == cards.Evidence((Fact("Photo", text),))


def test_facts_face_each_other_and_what_is_missing_is_not_known():
    left = cards.read({"age": "54", "note": "", "steps": "1 2 3", "mood": "", "hours": "7"})
    right = cards.read({"age": "", "note": "", "steps": "", "mood": "low", "hours": "1 2 9"})
    one, other = cards.facing(left, right)
    assert one.facts == (Fact("Age", "54"), Fact("Mood", "not known"))
    assert other.facts == (Fact("Age", "not known"), Fact("Mood", "low"))
    assert [c.caption for c in one.charts] == [c.caption for c in other.charts]
    said = {(n, c.caption): c.words for n, e in enumerate((one, other)) for c in e.charts}
    assert said == {
        (0, "Steps"): "",
        (1, "Steps"): "not known",
        (0, "Hours"): "7",
        (1, "Hours"): "",
    }


def test_why_one_is_better_is_said_by_what_the_cards_show_and_not_by_a_hidden_state():
    config = service.from_environment("cpap", seed=7)
    better, worse = side_of(config, 4, 2, {}), side_of(config, 5, 0, {})
    seen = [cards.evidence(config, side, 0, 0) for side in (better, worse)]
    said = cards.why_better(better, worse, seen, state_shown=False)
    assert said.startswith("Hours of CPAP, last seven nights: ")
    assert "adherence" not in said
    assert "High adherence" in cards.why_better(better, worse, seen, state_shown=True)


def test_the_two_sides_of_a_duel_are_drawn_on_one_scale():
    sides = [cards.read({"hours": hours, "steps": "1 2 3"}) for hours in ("1 2 4", "5 8 2")]
    left, right = cards.on_one_scale(*sides)
    assert [chart.top for chart in left.charts] == [chart.top for chart in right.charts] == [8, 3]
    assert "height:50.0%" in cards.html(left.charts[0])


def test_a_drawn_chart_holds_no_word_of_the_roster():
    chart = cards.read({"<img src=x onerror=alert(1)>": "1 2 3"}).charts[0]
    drawn = cards.html(chart)
    assert "alert" not in drawn
    assert "img" not in drawn.replace('role="img"', "")


def test_a_chart_is_described_in_words():
    chart = cards.draw("cpap", CPAP, 2).charts[0]
    assert cards.describe(chart).startswith("7 values in h: ")
    assert cards.describe(chart).endswith("7 of them reach 4 h")
    assert f'aria-label="{cards.describe(chart)}"' in cards.html(chart)


@pytest.mark.parametrize(
    "values", [(0.0, 0.0, 0.0), (float("nan"),) * 3, (-3.0, 2.0, 1e9), (0.04, 12.0, 7.0)]
)
def test_any_numbers_can_be_drawn(values):
    assert cards.html(Chart("x", values)).count("<i ") == 3
