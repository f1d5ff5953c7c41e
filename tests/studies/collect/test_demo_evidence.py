"""Made-up evidence fits the state and is the same for everybody."""

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.studies.collect.demo_evidence import demo_evidence
from dopl_core.studies.collect.views import Evidence

DRAWS = range(200)
CPAP = ("Low adherence", "Moderate adherence", "High adherence")


def labels(environment):
    return [state.label for state in environments.load(environment).states]


def draws(environment, state):
    names = labels(environment)
    return [
        demo_evidence(environment, names, state, seed=7, arm=arm, episode=3, epoch=2)
        for arm in DRAWS
    ]


@pytest.mark.parametrize("name", environments.names())
def test_every_state_of_the_included_environments_has_evidence(name):
    names = labels(name)
    for state in range(len(names)):
        evidence = demo_evidence(name, names, state)
        assert evidence.facts or evidence.charts


def test_everybody_sees_the_same_evidence_of_an_arm_in_an_epoch():
    one = demo_evidence("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=1)
    assert one == demo_evidence("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=1)
    assert one != demo_evidence("cpap", CPAP, 1, seed=4, arm=3, episode=2, epoch=2)
    assert one != demo_evidence("cpap", CPAP, 1, seed=4, arm=5, episode=2, epoch=1)


def test_cpap_nights_fit_the_state():
    nights = [[np.array(e.charts[0].values) for e in draws("cpap", state)] for state in range(3)]
    assert all((hours < 4).all() and 1 <= (hours > 0).sum() <= 3 for hours in nights[0])
    assert all(2 <= (hours >= 4).sum() <= 3 and (hours > 0).sum() >= 5 for hours in nights[1])
    assert all((hours >= 4).all() for hours in nights[2])


def test_app_use_fits_the_state():
    for state, days in ((0, range(32, 61)), (1, range(8, 29))):
        for evidence in draws("app_marketing", state):
            assert set(evidence.charts[0].values) == {0.0}
            assert int(evidence.facts[0].value.split()[0]) in days
    for evidence in draws("app_marketing", 2):
        minutes = evidence.charts[0].values
        assert 2 <= np.count_nonzero(minutes) <= 4
        assert (evidence.facts[0].value == "today") == (minutes[-1] > 0)
    assert all(min(e.charts[0].values) > 0 for e in draws("app_marketing", 3))


def test_shares_of_calls_fit_the_state():
    mean = [[np.mean(e.charts[0].values) for e in draws("armman", state)] for state in range(3)]
    assert min(mean[0]) > 50
    assert min(mean[1]) >= 5
    assert max(mean[1]) <= 50
    assert max(mean[2]) < 5


def test_the_four_conditions_of_a_player_fit_the_state():
    words = [("Slept", "Tired"), ("fed", "underfed"), ("sharp", "dull"), ("fast", "slow")]
    for state, label in enumerate(labels("sports")):
        facts = demo_evidence("sports", labels("sports"), state).facts
        said = ", ".join(pair[not fact.holds] for pair, fact in zip(words, facts, strict=True))
        assert said == label


def test_an_environment_without_a_demo_has_no_evidence():
    assert demo_evidence("my_clinic", CPAP, 0) == Evidence()


@pytest.mark.parametrize(
    "states", [(*CPAP, "Full adherence"), CPAP[:2], CPAP[::-1], ("Schwach", "Mittel", "Stark")]
)
def test_a_demo_is_not_used_for_other_states(states):
    for state in range(len(states)):
        assert demo_evidence("cpap", states, state) == Evidence()
