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
