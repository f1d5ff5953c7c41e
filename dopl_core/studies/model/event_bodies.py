"""The fields that events carry as JSON, one class for each kind that has some.

msgspec checks names and types when a body is read; what a value means is checked where it is used.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from dopl_core.studies.model.protocol import Protocol

NAMES_REMOVED = "names removed"  # in place of the arithmetic; see exchange/names_removed.py


class Empty(Struct, omit_defaults=True):
    """Kinds without fields of their own."""


class About(Struct, omit_defaults=True):
    """about: a digest of what the event is about, by which the chain covers it; see store/about.py.

    Events from before schema 11 have none.
    """

    about: str = ""


class Computed(Struct, kw_only=True, omit_defaults=True):
    """Something computed: the version of the maths, and the arithmetic of the machine.

    arithmetic: NAMES_REMOVED where columns are missing that it may have been computed from
    """

    about: str = ""
    maths: int | None = None
    arithmetic: str | None = None


class Made(Computed, kw_only=True, omit_defaults=True):
    """config: the digest of the configuration."""

    config: str


class ProtocolFixed(Struct):
    """The protocol of the trial, and its digest; see model/protocol.py."""

    protocol: Protocol
    digest: str


class Joined(Struct, omit_defaults=True):
    """Of a participant: the link they came by, their panel's id of them, their completion code."""

    link: str = ""
    participant: str = ""
    code: str = ""


class Consented(Struct):
    """An annotator agreed to the consent text; version: see StudyConfig.consent_version."""

    version: str


class Planned(Computed, kw_only=True, omit_defaults=True):
    """heard: the last event that the plan knows of.

    cold: the plan before was made with other maths or on another machine, so this one did not
    start from its numbers
    """

    plan: int
    engine: str
    heard: int | None = None
    cold: bool = False


class Observed(Computed, kw_only=True, omit_defaults=True):
    """The moves of an epoch are known; report: the digest of the owner's report."""

    episode: int
    epoch: int
    source: Literal["simulated", "owner"]
    report: str = ""


class Corrected(Struct):
    """What was wrong in a report: arm id -> [old, new]; week 0 is the roster."""

    week: int
    states: dict[str, tuple[str | None, str | None]]
    helped: dict[str, tuple[int, int]]


class ReportUndone(Struct, omit_defaults=True):
    """The latest report was undone, and its week is open again.

    since: the number of the report's event. From there on, the report, plans, lists and changes of
        lists do not count any more, nor do corrections of this week and of later ones
    arms: newcomers whose states the report said, as they were before it
    """

    week: int
    since: int
    arms: list[dict[str, Any]] = []


class HistoryAdded(Struct):
    """Past records as CSV text; moves: how many moves they hold."""

    records: str
    moves: int = 0


class AnswersAdded(Struct):
    """Past answers as CSV text; count: how many they are."""

    answers: str
    count: int = 0


class SettingsChanged(Struct):
    settings: dict[str, Any]


class ArmsJoined(Struct):
    arms: list[dict[str, Any]]


class ArmsLeft(Struct):
    arms: list[str]


class Flagged(Struct):
    """An annotator's comment on a duel; arm: the id of the arm that it is about, or ""."""

    comment: str
    arm: str


class Reasoned(Struct):
    """Why an annotator answered as they did: tags of the owner's, and a line of their own."""

    tags: list[str]
    text: str


class FirstRoundDrawn(Computed, kw_only=True, omit_defaults=True):
    """The pairs of the first round were chosen anew; first_duel: the number of the first of them.

    The pairs before it are no longer asked, except those that somebody was shown just then.
    """

    first_duel: Annotated[int, Meta(ge=0)]


class DuelsClosed(Struct):
    """missing: how many answers the round no longer waits for."""

    missing: int


class ListEntry(Struct, frozen=True):
    """Somebody on a list, next in line or left out by lot, and what was known of them then.

    state: its label; None if unknown, then last_seen and weeks_ago say when it was last known
    with_help, without: estimated probability to be better off next time: in a better state than
        now, or still in the best one; kept in the log, not shown
    sure: posterior probability that help is better than no help; kept in the log, not shown
    equal: tied with people off the list; the tie was broken at random
    badly_off: nobody off the list is in a worse state
    by_lot: the place was drawn by lot
    left_out: not on the list: drawn by lot to wait
    to_find_out: on the list to find out what help does in the state
    seen_with_help, better_with_help, seen_without, better_without: observed moves from the state
        last seen, see known_effects.KnownEffect; None if never seen, and in lists of older versions
    worse_with_help, worse_without: likewise; 0 if never seen, and in lists of older versions
    reserve: not on the list, but among the next in line
    """

    id: str
    state: str | None
    last_seen: str | None
    weeks_ago: int
    with_help: float
    without: float
    sure: float
    equal: bool
    badly_off: bool = False
    by_lot: bool = False
    seen_with_help: int | None = None
    better_with_help: int | None = None
    seen_without: int | None = None
    better_without: int | None = None
    reserve: bool = False
    left_out: bool = False
    worse_with_help: int = 0
    worse_without: int = 0
    to_find_out: bool = False


class Listed(Struct, omit_defaults=True):
    """empty: places that the study's rules left empty.

    by_answers: how many places, without those by lot, the answers since the last plan changed;
        None if there are no answers
    first_duel: the number of its first duel; not 0 where the week had a list before, which was
        made after a report that was undone
    """

    week: int
    entries: list[ListEntry] = field(name="list")
    empty: int = 0
    by_answers: int | None = None
    about: str = ""
    first_duel: int = 0


class ListChanged(Struct):
    """The owner took people off a list, or put people on it.

    removed, added: ids;  entries: the whole list as it is then, with the next in line
    """

    week: int
    removed: list[str]
    added: list[str]
    because: str
    entries: list[ListEntry] = field(name="list")


class Erased(Struct, omit_defaults=True):
    """Personal data were erased: of a person, of an annotator, or of everybody.

    name: the pseudonym that took the place of their id or name; "" if of everybody
    events: how many events were rewritten
    stands: a digest of all events before, as they stand since; "" in exports without names
    answers: what is known of the person or by the annotator no longer counts in plans
    """

    what: Literal["person", "annotator", "everybody"]
    name: str = ""
    events: int = 0
    stands: str = ""
    answers: bool = False


class PhotosAdded(Struct):
    """Arm id -> digest of the photo."""

    photos: dict[str, str]
