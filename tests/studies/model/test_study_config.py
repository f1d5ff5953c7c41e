"""What a study may be: every rule of it is checked before anything is written."""

from typing import get_args, get_type_hints

import pytest
from msgspec import Meta
from playing import STATES, cpap

from dopl_core import studies
from dopl_core.studies import Arm, Store, StudyConfig, StudyError


def test_the_engine_is_chosen_by_size_and_kept_with_each_plan(sqlite_store: Store) -> None:
    assert studies.engine_for(20, 3) == "cbc"
    assert studies.engine_for(10_000, 3) == "lagrangian"
    small = studies.from_environment("cpap", budget=4, confidence="paper")
    assert small.engine == "cbc"
    study = studies.create_study(sqlite_store, small)
    assert studies.plans(sqlite_store, study).engine.tolist() == ["cbc"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"budget": 1}, "budget is 1"),
        ({"budget": 99}, "budget is 99: it must be from 1 to the number of people, 20"),
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
    arms = [studies.Arm("a", "A", state="Low"), studies.Arm("b", "B", state="Up")]
    with pytest.raises(StudyError, match='arm "b": state "Up" is not one of Low, Moderate, High'):
        studies.from_roster(arms, STATES, title="T", budget=2)
    twice = [studies.Arm("a", "A", state="Low"), studies.Arm("a", "B", state="Low")]
    with pytest.raises(StudyError, match='arm id "a" is given twice'):
        studies.from_roster(twice, STATES, title="T", budget=2)
    with pytest.raises(StudyError, match="budget is missing"):
        studies.from_roster(arms, STATES, title="T")
    with pytest.raises(StudyError, match="1 states given"):
        studies.from_roster([studies.Arm("a", "A", state="Low")] * 1, ["Low"], title="T", budget=2)


def test_every_number_and_text_of_a_configuration_has_limits() -> None:
    for kind in (StudyConfig, Arm):
        for name, hint in get_type_hints(kind, include_extras=True).items():
            limits = [note for note in get_args(hint) if isinstance(note, Meta)]
            is_free = (get_args(hint) or (hint,))[0] in (int, float, str, dict, tuple)
            assert limits or not is_free, f"{kind.__name__}.{name}"
