"""What people are told of a setting, and the sections and times that a setting may name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dopl_core.studies.model.annotator_limits import LIMITS_HELP

World = Literal["simulated", "observed"]
Section = Literal["words", "list", "rules", "cards", "more"]
Changes = Literal[
    "never", "at once", "from the next list on", "in observed worlds, from the next list on"
]

SECTIONS: dict[Section, str] = {
    "words": "What annotators read",
    "list": "The list",
    "rules": "Your rules",
    "cards": "What annotators see",
    "more": "More choices",
}


@dataclass(frozen=True)
class About:
    """What people are told of a setting, and where it is offered.

    section: of the New study form and the Settings tab;  changes: when it may change
    world: the only world for which it is offered, None for both
    offered: the value that the form and `dopl new` begin with, None for the default
    lines: of a text on pages;  choices: value -> its name on pages
    """

    section: Section
    label: str
    help: str
    changes: Changes = "from the next list on"
    world: World | None = None
    offered: Any = None
    lines: int = 1
    choices: Mapping[str, str] | None = None


# Those of model/settings.py that are long.
CONSENT = About(
    "words",
    "Consent text (empty: none)",
    "Annotators agree to it before they begin, and again if it changes. It holds at once.",
    "at once",
    lines=6,
)
LANGUAGE = About(
    "words",
    "Language of pages for annotators and readers of the list",
    "Everybody can choose another one on the page. A link may name one: &lang=hi.",
    choices={
        "browser": "The language of each person's browser",
        **{"ar": "العربية", "de": "Deutsch", "en": "English", "es": "Español", "fr": "Français"},
        **{"hi": "हिन्दी", "pt": "Português"},
    },
)
TRANSLATIONS = About(
    "words",
    "Your texts in other languages",
    "One part for each language: [de] on a line, then lines such as question = Wem geht es besser? "
    "Left of = stands the name of a setting, or a text such as a state's name.",
    lines=3,
)
HELP_KIND = About(
    "list",
    "What kind of help is it?",
    "The learner begins with what trials of this kind of help found. Your reports soon count more.",
    world="observed",
    choices={
        "message": "a message",
        "call": "a call",
        "visit": "a visit",
        "treatment": "a treatment",
        "money": "money",
        "other": "other",
    },
)
FIND_OUT = About(
    "list",
    "Most places to find out what help does (0: none, empty: by default)",
    "A few places can go to people in a state where nobody knows yet what help does. The list "
    "marks them. By default it is one place in eight, over time. Random places find out too, so "
    "there are fewer of these.",
    world="observed",
)
LIST_COLUMNS = About(
    "list",
    "Columns that the list shows",
    "For example phone, note. Readers of the list see them too. Cards show "
    "them as well, unless you also choose them in *Columns that cards do not show*.",
    world="observed",
)
HIDDEN_COLUMNS = About(
    "cards",
    "Columns that cards do not show",
    "It holds at once. The learner may still use them.",
    "at once",
    world="observed",
)
ANNOTATOR_LIMITS = About("cards", "Who judges whom", LIMITS_HELP, "at once", lines=3)
LIMITED_PAIRS = About(
    "cards",
    "Ask only what they may judge",
    "Ask only about pairs that one of the annotators above may judge. For teams where everybody "
    "who answers is limited. Until the first answer, it holds for the first round at once.",
    world="observed",
)
REASON_EVERY = About(
    "more",
    "Ask for a reason after one in this many answers (0: never)",
    "A button below the next comparison lets annotators say why they answered the last one so. "
    "Answering on skips it. Insights and duels.csv have the reasons. Nothing is learnt from them.",
)
REASON_UNSURE = About(
    "more",
    "Ask for a reason when somebody seems unsure",
    "After an equal pair, and after an answer that took twice as long as usual for this person.",
)
REASON_TAGS = About(
    "more",
    "Reasons to choose from",
    "For example: recent nights, the trend. Separated by commas, at most 8. Annotators can also "
    "write a line.",
)
KEEP_WEEKS = About(
    "more",
    "Weeks to keep personal data after the end (0: no limit)",
    "After a study is closed, or a person has left, `dopl retain` erases what is older.",
)
