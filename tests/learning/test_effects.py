"""The table of trials: what it says, by kind of help, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dopl_core.learning import effects
from dopl_core.learning.effects import KINDS, BadEffectsError, TrialEffect, read, trials

ENTRY = """
[[trials]]
name = "reminders"
help = "message"
horizon = "1 day"
state = "worst"
effect = 0.2
error = 0.1
source = "somewhere"
"""


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], tuple[TrialEffect, ...]]:
    """The entries of a table with this content."""

    def written(content: str) -> tuple[TrialEffect, ...]:
        file = tmp_path / "effects.toml"
        file.write_text(content, encoding="utf-8")
        return read(file)

    return written


def test_the_table_has_trials_of_every_kind_but_other() -> None:
    assert KINDS == ("message", "call", "visit", "treatment", "money", "other")
    assert {one.help for one in trials()} == {*KINDS} - {"other"}


def test_the_table_has_what_the_housing_trial_found_in_each_state() -> None:
    found = [one for one in trials() if one.name == "housing voucher"]
    assert [(one.state, one.effect, one.error) for one in found] == [
        ("worst", 0.33, 0.10),
        ("middle", 0.68, 0.09),
        ("best", 0.63, 0.27),
    ]
    assert {(one.help, one.horizon, one.reached) for one in found} == {
        ("money", "6 months", "best")
    }


@pytest.mark.parametrize(
    ("name", "helped", "without", "error"),
    [
        ("HIV drugs taken, nurse's weekly messages", (168, 273), (132, 265), 0.0848),
        ("bowel screening, call before the kit is sent", (913, 1645), (810, 1595), 0.0356),
    ],
)
def test_published_counts_give_the_effect_on_those_who_would_not_have_got_better(
    name: str, helped: tuple[int, int], without: tuple[int, int], error: float
) -> None:
    [one] = [one for one in trials() if one.name == name]
    with_help, waiting = helped[0] / helped[1], without[0] / without[1]
    assert one.effect == pytest.approx((with_help - waiting) / (1 - waiting), abs=0.005)
    assert one.error == pytest.approx(error, abs=0.005)


def test_the_table_is_read_once() -> None:
    assert trials() is trials()


def test_an_entry_may_lack_its_error_and_speak_of_any_better_state(
    table: Callable[[str], tuple[TrialEffect, ...]],
) -> None:
    [one] = table(ENTRY.replace("error = 0.1", 'reached = "better"'))
    expected = TrialEffect("reminders", "message", "1 day", "worst", 0.2, "somewhere")
    assert one == TrialEffect(**(vars(expected) | {"reached": "better"}))
    assert one.error is None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            'help = "message"',
            'help = "letter"',
            'trial 1 "reminders": help is "letter": it must be one of call, message, money, '
            "other, treatment, visit",
        ),
        ('state = "worst"', 'state = "low"', "state is .*one of best, middle, worst"),
        ("effect = 0.2", "effect = 20", "effect is 20: a number from -1 to 1 needed"),
        ("effect = 0.2", 'effect = "big"', "effect is 'big': a number from -1 to 1 needed"),
        ("effect = 0.2", "effect = nan", "effect is nan: a number from -1 to 1 needed"),
        ("effect = 0.2", "", 'trial 1 "reminders": key "effect" is missing'),
        ("error = 0.1", "error = 0", "error is 0: a number above 0 and at most 1 needed"),
        ("error = 0.1", "sd = 0.1", 'key "sd" is unknown; known keys: name, help, horizon, state'),
        ('source = "somewhere"', 'source = " "', "source is empty"),
        ('name = "reminders"', "name = 3", "trial 1: name is 3: text needed"),
        ("[[trials]]", "[[trial]]", r"only \[\[trials\]\] tables, and at least one, are needed"),
        (ENTRY, "trials = [1]", r"trial 1 is 1: a \[\[trials\]\] table needed"),
        (ENTRY, "", r"at least one, are needed"),
        (ENTRY, f"{ENTRY}{ENTRY}", 'trial 2 "reminders": its worst state is there twice; remove'),
        (ENTRY, "=", "not a TOML file"),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused_with_the_entry_and_the_remedy(
    table: Callable[[str], tuple[TrialEffect, ...]], old: str, new: str, reason: str
) -> None:
    with pytest.raises(BadEffectsError, match=reason):
        table(ENTRY.replace(old, new))


def test_a_trial_may_have_several_states_between(
    table: Callable[[str], tuple[TrialEffect, ...]],
) -> None:
    between = ENTRY.replace("worst", "middle")
    assert [one.state for one in table(between + between)] == ["middle", "middle"]


def test_a_missing_table_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadEffectsError, match=r"none\.toml: file not found; install dopl again"):
        read(tmp_path / "none.toml")


def test_the_table_stands_beside_the_environments() -> None:
    assert effects.FILE.parent.joinpath("environments").is_dir()
