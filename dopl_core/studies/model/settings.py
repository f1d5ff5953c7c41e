"""Every setting of a study, once: its rule, its words, its default, and when it may change.

The New study form, the Settings tab, `dopl new`, `dopl settings`, the codebook and the checks all
read this table. A new setting is a new field of `Settings`, a row in "Settings" of the owner's
guide if it can change, and the code that uses it. Its default is what earlier studies get. If it
is a text that can name somebody, BLANK in exchange/renaming.py leaves it out of exports without
names.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from dopl_core import environments
from dopl_core.learning.dopl import Confidence
from dopl_core.learning.effects import HelpKind
from dopl_core.learning.pairs.pair_designs import DESIGNS, DesignName
from dopl_core.studies.model import setting_about as abouts
from dopl_core.studies.model.setting_about import About
from dopl_core.validation import text, whole
from dopl_core.wording import gettext_noop

Places = Annotated[int, whole(0, environments.MOST_ARMS)]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A study's settings. One field, one setting; its annotation is its rule and its words."""

    title: Annotated[
        str, text(1_000, blank=False), About("words", "Title", "The study's name, on all pages.")
    ]
    noun: Annotated[
        str,
        text(200, blank=False),
        About("words", "One of them is called a", "For example patient.", offered="person"),
    ] = "case"
    question: Annotated[
        str, text(2_000, blank=False), About("words", "Question", "What is asked of each pair.")
    ] = gettext_noop("Which of these two is doing better?")
    instructions: Annotated[
        str,
        text(100_000),
        About("words", "How to judge", "Annotators can open it above each comparison.", lines=3),
    ] = ""
    why: Annotated[
        str,
        text(2_000),
        About(
            "words",
            "Why you ask, and what happens with the answers",
            "Annotators read it before they begin.",
            lines=3,
        ),
    ] = ""
    epoch_word: Annotated[
        str,
        text(200, blank=False),
        About(
            "words",
            "A list is made every",
            "Your word for the time from one list to the next: week, month, day, visit.",
            world="observed",
        ),
    ] = "week"
    consent: Annotated[str, text(20_000), abouts.CONSENT] = ""
    language: Annotated[
        Literal["browser", "ar", "de", "en", "es", "fr", "hi", "pt"], abouts.LANGUAGE
    ] = "browser"
    translations: Annotated[str, text(200_000), abouts.TRANSLATIONS] = ""
    budget: Annotated[
        int,
        whole(0, environments.MOST_ARMS),
        About(
            "list",
            "How many can be helped at a time",
            "The length of each list.",
            changes="in observed worlds, from the next list on",
        ),
    ]
    help_kind: Annotated[HelpKind, abouts.HELP_KIND] = "other"
    by_lot: Annotated[
        int,
        whole(0, environments.MOST_ARMS),
        About(
            "list",
            "Of these, chosen at random (0: none)",
            "For each such place, one person on the list, chosen at random, waits, and one person "
            "off the list, chosen at random, is helped. Comparing them with the people they were "
            "chosen from shows without bias what help does. One place in eight is enough.",
            world="observed",
        ),
    ] = 0
    find_out: Annotated[Places | None, abouts.FIND_OUT] = None
    sitting: Annotated[
        int,
        whole(0, 10_000),
        About(
            "list",
            "Answers in the first round (0: make the first list at once)",
            "Annotators compare everybody before the first list, so that it is not a guess. You "
            "can end the first round at any time.",
            changes="never",
            world="observed",
            offered=100,
        ),
    ] = 0
    answers: Annotated[
        int,
        whole(0, 10_000),
        About(
            "list",
            "Answers wanted for each list",
            "As many as your annotators have time for. Most people give about 80 in ten minutes. "
            "At least one fewer than the length of the list are asked.",
            world="observed",
            offered=30,
        ),
    ] = 0
    ratings: Annotated[
        int,
        whole(1, 1_000),
        About("list", "People who answer each comparison", "Each goes to this many people."),
    ] = 1
    list_columns: Annotated[str, text(2_000), abouts.LIST_COLUMNS] = ""
    unused_columns: Annotated[
        str,
        text(2_000),
        About(
            "list",
            "Columns that the learner must not use",
            "The learner uses columns of the roster that hold numbers or few different values, "
            "to see who moves alike. Name those that it must not use. Cards "
            "still show them.",
            world="observed",
        ),
    ] = ""
    once_in: Annotated[
        int,
        whole(0, 1_000),
        About(
            "rules",
            "Nobody is listed more than once in this many weeks (0: no limit)",
            "Everybody who was really helped counts, on the list or not. The list is shorter if "
            "too few people are left.",
            world="observed",
        ),
    ] = 0
    most_times: Annotated[
        int,
        whole(0, 10_000),
        About(
            "rules",
            "Nobody is listed more than this many times in all (0: no limit)",
            "Counted from the first list. The plan spreads these times over the next 26 lists.",
            world="observed",
        ),
    ] = 0
    wait_after_joining: Annotated[
        int,
        whole(0, 1_000),
        About(
            "rules",
            "Lists before somebody new can be listed (0: none)",
            "People in the first roster need not wait.",
            world="observed",
        ),
    ] = 0
    fair_column: Annotated[
        str,
        text(1_000),
        About(
            "rules",
            "Share places fairly by this column (empty: do not)",
            "A column of the roster with at most 12 different values, or group.",
            world="observed",
        ),
    ] = ""
    fair_rule: Annotated[
        Literal["roster", "shares", "even"],
        About(
            "rules",
            "What is fair",
            "Over time, within one place. The list shows what it costs.",
            world="observed",
            choices={
                "roster": "Each group gets at least its share of the roster",
                "shares": "Each group gets at least the share of places below",
                "even": "The group that is worst off is raised as far as possible",
            },
        ),
    ] = "roster"
    fair_shares: Annotated[
        str,
        text(1_000),
        About(
            "rules",
            "Least share of the places, in percent",
            "For example: North 30, South 20. Other groups have no least share.",
            world="observed",
        ),
    ] = ""
    hidden_columns: Annotated[str, text(2_000), abouts.HIDDEN_COLUMNS] = ""
    hide_state: Annotated[
        bool,
        About(
            "cards",
            "Hide the state on cards",
            "Annotators then judge everything else that is known. Their browsers do not receive "
            "the state or its description.",
        ),
    ] = False
    hide_description: Annotated[
        bool,
        About(
            "cards", "Hide the description of the state", "Cards then show the state's name only."
        ),
    ] = False
    show_id: Annotated[
        bool, About("cards", "Show the id on cards", "The id is the one in your roster.")
    ] = False
    tell_results: Annotated[
        bool,
        About(
            "cards",
            "Tell annotators what each round has changed",
            "They see how many places on the list changed, and who is on it now.",
        ),
    ] = False
    quota: Annotated[
        int,
        whole(0, 10**6),
        About(
            "cards",
            "Most answers from each person (0: no limit)",
            "After this many answers a person is thanked and asked nothing more.",
        ),
    ] = 0
    completion_code: Annotated[
        str,
        text(200),
        About(
            "cards",
            "Completion code, for a paid panel",
            "Participants see it when they have given all answers of the quota. At most 20 % of "
            "them may be “can't tell”. The panel adds each participant's id to your link, as "
            "participant or PROLIFIC_PID.",
        ),
    ] = ""
    own_codes: Annotated[
        bool,
        About(
            "cards",
            "Give each participant a completion code of their own",
            "Eight letters and digits are added to the code. The table of participants has them.",
        ),
    ] = False
    annotator_limits: Annotated[str, text(200_000), abouts.ANNOTATOR_LIMITS] = ""
    limited_pairs: Annotated[bool, abouts.LIMITED_PAIRS] = False
    ties_allowed: Annotated[
        bool,
        About("more", 'Allow "equal" as an answer', "An equal pair counts half for each of them."),
    ] = False
    practice: Annotated[
        bool,
        About(
            "more",
            "Begin with three practice comparisons",
            "New annotators see the right answer after each. Nothing is learnt from them.",
        ),
    ] = True
    repeat_every: Annotated[
        int,
        whole(0, 10**6),
        About(
            "more",
            "Repeat a comparison after this many answers (0: never)",
            "Annotators are asked one of their own comparisons again, with sides swapped, once "
            "several people answer. Nothing is learnt from it. Insights show how often each "
            "annotator gives the same answer.",
            offered=10,
        ),
    ] = 0
    gold_every: Annotated[
        int,
        whole(0, 10**6),
        About(
            "more",
            "Ask a plain comparison after this many answers (0: never)",
            "A pair whose states lie far apart. Nothing is learnt from it. Insights show how often "
            "each annotator chooses the better one, and so who pays attention.",
        ),
    ] = 0
    weigh_people: Annotated[
        bool,
        About(
            "more",
            "Weigh answers by how consistent each annotator is",
            "Answers that look random then count for little. Insights show each weight.",
        ),
    ] = True
    reason_every: Annotated[int, whole(0, 10**6), abouts.REASON_EVERY] = 0
    reason_unsure: Annotated[bool, abouts.REASON_UNSURE] = False
    reason_tags: Annotated[str, text(1_000), abouts.REASON_TAGS] = ""
    photos_from_web: Annotated[
        bool,
        About(
            "more",
            "Allow photos from the web on cards",
            "The web server of a photo sees who looks at it, and when.",
        ),
    ] = False
    lease_seconds: Annotated[
        float,
        Meta(gt=0, le=10**7),
        About(
            "more",
            "Seconds until an unanswered comparison goes to others",
            "An annotator who opens a comparison has this long to answer it.",
        ),
    ] = 120.0
    horizon: Annotated[
        int,
        whole(1, 100_000),
        About(
            "more",
            "Epochs between plans",
            "The simulated world moves on this many times before it is planned anew.",
            changes="never",
            world="simulated",
        ),
    ] = 5
    episodes: Annotated[
        int,
        whole(0, 10**9),
        About(
            "more",
            "Plans in all (0: until you close the study)",
            "The study ends by itself after this many plans.",
            changes="never",
            world="simulated",
        ),
    ] = 0
    confidence: Annotated[
        Confidence,
        About(
            "more",
            "Confidence",
            "Calibrated learns from hundreds of answers. The paper's method needs ten thousands.",
            changes="never",
        ),
    ] = "calibrated"
    design: Annotated[
        DesignName,
        About(
            "more",
            "Which pairs to ask",
            "How pairs are chosen among those who are on the list.",
            changes="never",
            choices={name: design.label for name, design in DESIGNS.items()},
        ),
    ] = "star"
    keep_weeks: Annotated[int, whole(0, 5_200), abouts.KEEP_WEEKS] = 0
    seed: Annotated[
        int,
        whole(0, 2**63 - 1),
        About(
            "more",
            "Seed",
            "Two studies with the same seed and the same answers make the same lists.",
            changes="never",
        ),
    ] = 0
