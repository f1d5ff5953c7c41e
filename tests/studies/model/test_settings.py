"""A setting is one entry of the table: pages, commands, codebook and checks derive from it."""

import pytest

from dopl_core.studies import SECTIONS, SETTINGS, StudyConfig, StudyError, parse_setting
from dopl_core.studies.model.setting_rows import CHANGEABLE, Setting, check_changes

EVERY = pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))


@EVERY
def test_every_setting_has_a_label_a_help_text_a_section_and_a_rule(setting: Setting) -> None:
    assert setting.about.label
    assert setting.about.help.endswith(".")
    assert setting.about.section in SECTIONS
    assert setting.rule or setting.choices or setting.kind is bool
    assert setting.name in StudyConfig.__dataclass_fields__


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.items() if one.kind is bool])
@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("on", True),
        ("yes", True),
        ("TRUE", True),
        ("1", True),
        ("off", False),
        ("No", False),
        ("false", False),
        ("0", False),
    ],
)
def test_a_switch_is_typed_as_on_or_off(name: str, content: str, value: bool) -> None:
    assert parse_setting(name, content) is value


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("hide_state", "maybe", 'hide_state is "maybe": on or off needed'),
        ("hide_state", "", 'hide_state is "": on or off needed'),
        ("hide_state", "2", 'hide_state is "2": on or off needed'),
        ("budget", "five", 'budget is "five": a whole number from 0 to 100000 needed'),
        ("budget", "2.5", 'budget is "2.5": a whole number'),
        (
            "find_out",
            "few",
            'find_out is "few": a whole number from 0 to 100000, or default needed',
        ),
        ("lease_seconds", "long", 'lease_seconds is "long": a number above 0 and at most'),
        ("wrong", "1", '"wrong" is not a setting; these can be changed: title, noun'),
    ],
)
def test_a_typed_value_that_does_not_fit_is_refused(name: str, content: str, reason: str) -> None:
    with pytest.raises(StudyError, match=reason):
        parse_setting(name, content)


def test_numbers_and_texts_are_read_as_what_they_are() -> None:
    assert parse_setting("budget", "5") == 5
    assert parse_setting("lease_seconds", "0.5") == 0.5
    assert parse_setting("title", "1") == "1"


def test_only_a_setting_that_the_learner_has_a_default_for_can_be_set_to_it() -> None:
    assert parse_setting("find_out", "2") == 2
    assert parse_setting("find_out", " Default ") is None
    assert [name for name, one in SETTINGS.items() if one.may_be_none] == ["find_out"]
    with pytest.raises(StudyError, match='budget is "default": a whole number from 0 to 100000 n'):
        parse_setting("budget", "default")


def test_only_some_settings_may_change_and_the_budget_only_in_observed_worlds() -> None:
    check_changes("observed", dict.fromkeys(CHANGEABLE))
    with pytest.raises(StudyError, match='"sitting" cannot be changed; these can be changed: '):
        check_changes("observed", {"sitting": 5})
    with pytest.raises(StudyError, match="the budget of a simulated world is part of it"):
        check_changes("simulated", {"budget": 5})
