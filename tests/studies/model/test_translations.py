"""The owner's texts in several languages."""

import pytest

from dopl_core import studies
from dopl_core.studies import Arm, StudyError
from dopl_core.wording import LANGUAGE

TEXTS = """
# What annotators read
[de]
question = Wem geht es besser?
Low = Niedrig
instructions = Achten Sie auf die Nächte.
    Mehr = besser.

[hi]
question = किसकी हालत बेहतर है?
"""


def study(translations: str, **rules: object) -> studies.StudyConfig:
    arms = [Arm(f"p{n}", f"P{n}", state="Low") for n in range(3)]
    rules = {"title": "T", "budget": 1, "translations": translations} | rules
    return studies.from_roster(arms, ["Low", "High"], **rules)


def in_language(code: str, config: studies.StudyConfig, text: str) -> str:
    token = LANGUAGE.set(code)
    try:
        return config.own_words(text)
    finally:
        LANGUAGE.reset(token)


def test_a_text_is_translated_by_the_name_of_its_setting_or_by_itself() -> None:
    config = study(TEXTS, question="Who?", instructions="Look.")
    assert in_language("de", config, config.question) == "Wem geht es besser?"
    assert in_language("de", config, "Low") == "Niedrig"
    assert in_language("de", config, "Look.") == "Achten Sie auf die Nächte.\nMehr = besser."
    assert in_language("hi", config, config.question) == "किसकी हालत बेहतर है?"


def test_a_text_without_translation_stays_as_the_owner_wrote_it() -> None:
    config = study(TEXTS, question="Who?")
    assert in_language("fr", config, config.question) == "Who?"
    assert in_language("de", config, "High") == "High"
    assert in_language("de", config, "") == ""


def test_the_question_that_studies_begin_with_is_translated_by_itself() -> None:
    config = study("")
    assert in_language("de", config, config.question) == "Wem von diesen beiden geht es besser?"


def test_cards_show_states_and_columns_in_the_readers_language() -> None:
    config = study("[de]\nLow = Niedrig\nhours = Stunden\nlast_visit = letzter Besuch")
    token = LANGUAGE.set("de")
    try:
        columns = {"p0": {"hours_1": "1", "hours_2": "2", "hours_3": "3", "last_visit": "May"}}
        side = studies.side_of(config, 0, 0, columns, config.hidden)
        seen = studies.cards.evidence(config, side, 1, 0)
    finally:
        LANGUAGE.reset(token)
    assert side.state == "Niedrig"
    assert [fact.label for fact in seen.facts] == ["Letzter Besuch"]
    assert [chart.caption for chart in seen.charts] == ["Stunden"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("question = Wer?", "line 1: texts come after a line that names their language"),
        ("[de]\nquestion", "line 2: write a text, = and its translation"),
        ("[de]\nLow = a\nLow = b", 'line 3: "Low" is given twice'),
        ("[de]\n[de]", r"line 2: \[de\] is given twice"),
        ("[Deutsch]\nLow = a", r'"\[Deutsch\]" is not a language'),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(StudyError, match=f"^translations.*{complaint}"):
        study(text)


def test_every_language_with_a_catalogue_can_be_chosen_for_a_study() -> None:
    from dopl_core import wording

    assert studies.SETTINGS["language"].choices.keys() == {"browser", *wording.languages()}
