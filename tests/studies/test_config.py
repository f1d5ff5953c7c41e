"""What a study may be: every rule of it is checked before anything is written."""

from dataclasses import fields

import pytest
from playing import STATES, cpap

from dopl_core.learning.bandit import State
from dopl_core.studies import config, service
from dopl_core.studies.service import Arm, Store, StudyError


def test_the_engine_is_chosen_by_size_and_kept_with_each_plan(sqlite_store: Store) -> None:
    assert service.engine_for(20, 3) == "cbc"
    assert service.engine_for(10_000, 3) == "lagrangian"
    small = service.from_environment("cpap", budget=4, confidence="paper")
    assert small.engine == "cbc"
    study = service.create_study(sqlite_store, small)
    assert service.plans(sqlite_store, study).engine.tolist() == ["cbc"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"budget": 1}, "budget is 1"),
        ({"budget": 99}, "budget is 99"),
        ({"horizon": 0}, "horizon is 0"),
        ({"ratings": 0}, "ratings is 0"),
        ({"lease_seconds": 0}, "lease_seconds is 0"),
        ({"lease_seconds": float("nan")}, "lease_seconds is nan"),
        ({"confidence": "none"}, 'confidence is "none"'),
        ({"design": "all"}, 'design is "all"'),
        ({"engine": "glpk"}, 'engine is "glpk"'),
        ({"title": " "}, "title is empty"),
        ({"title": "a\0b"}, "title has a character"),
        ({"seed": -1}, "seed is -1"),
        ({"episodes": 1.5}, "episodes is 1.5"),
        ({"pays": "none"}, 'pays is "none"'),
    ],
)
def test_rules_that_cannot_be_played_are_refused(rules: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cpap(**rules)


def test_arms_and_states_of_a_roster_are_checked() -> None:
    arms = [service.Arm("a", "A", state="Low"), service.Arm("b", "B", state="Up")]
    with pytest.raises(StudyError, match='arm "b": state "Up" is not one of Low, Moderate, High'):
        service.from_roster(arms, STATES, title="T", budget=2)
    twice = [service.Arm("a", "A", state="Low"), service.Arm("a", "B", state="Low")]
    with pytest.raises(StudyError, match='arm id "a" is given twice'):
        service.from_roster(twice, STATES, title="T", budget=2)
    with pytest.raises(StudyError, match="budget is missing"):
        service.from_roster(arms, STATES, title="T")
    with pytest.raises(StudyError, match="1 states given"):
        service.from_roster([service.Arm("a", "A", state="Low")] * 1, ["Low"], title="T", budget=2)


def test_every_field_of_a_configuration_has_a_rule() -> None:
    for kind, rules in ((config.StudyConfig, config.RULES), (Arm, config._ARM)):
        assert [f.name for f in fields(kind)] == list(rules)
    assert [f.name for f in fields(State)] == list(config._STATE)
