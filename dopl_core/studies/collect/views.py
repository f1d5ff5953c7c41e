"""What an annotator gets, and the response times that the browser sends back."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dopl_core.studies.model.study_config import Arm, StudyConfig
from dopl_core.studies.store.queries import DuelRow, ImpressionRow
from dopl_core.studies.store.study_reader import StudyReader
from dopl_core.wording import LANGUAGE, gettext_noop

_LONGEST_MS = 24 * 3600 * 1000
_SLACK_MS = 250  # tolerance between the clocks of browser and server

WaitReason = Literal["others", "limits", "unjudged", "plan", "owner", "paused"]
Status = Literal["saved", "late", "already", "taken", "too_fast"]

RECEIPTS = {  # what people are told; translate it where it is shown
    "saved": gettext_noop("Saved."),
    "late": gettext_noop("Saved, although it took a while."),
    "already": gettext_noop("You have already answered this one; your first answer counts."),
    "taken": gettext_noop("Others have answered this one in the meantime."),
    "too_fast": gettext_noop("That click came too soon to be meant for this pair."),
}


@dataclass(frozen=True)
class Side:
    """One of the two arms of a duel, as a card shows it.

    arm: the owner's id;  number: the arm's number;  state_number: 0 for the worst state
    columns: the roster's other columns as text; cards.from_roster turns them into evidence
    """

    arm: str
    number: int
    label: str
    group: str
    state: str
    description: str
    state_number: int
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fact:
    """One fact about an arm; holds: whether it meets its target, None if it has none."""

    label: str
    value: str
    holds: bool | None = None


@dataclass(frozen=True)
class Chart:
    """Numbers over time, drawn as bars, with a target line if there is one.

    words: text to show if there are no numbers
    """

    caption: str
    values: tuple[float, ...]
    labels: tuple[str, ...] = ()
    unit: str = ""
    top: float = 0.0
    line: float | None = None
    words: str = ""


@dataclass(frozen=True)
class Evidence:
    """What a card shows of an arm: facts, charts, and the address of a photo."""

    facts: tuple[Fact, ...] = ()
    charts: tuple[Chart, ...] = ()
    photo: str = ""


@dataclass(frozen=True)
class Ask:
    """A duel to show. The same one comes back until it is answered or its lease expires.

    impression: id to pass to `answer`;  duel: id of the duel
    purpose: policy, sitting, repeat, gold or practice
    expected: the correct answer to a practice duel, else ""
    episode, epoch: of the duel; episodes count from 1 (0 before the first plan), epochs from 0
    done, total: ratings of this round (see Study.asked): given so far, and needed
    own: the annotator's answers so far that count for the quota;  can_undo: one can be undone
    """

    impression: int
    duel: int
    purpose: str
    left: Side
    right: Side
    episode: int
    epoch: int
    done: int
    total: int
    own: int
    can_undo: bool
    expected: str = ""


@dataclass(frozen=True)
class Waiting:
    """Nothing to show now; there will be more later.

    reason: others (other annotators hold the remaining duels), limits (others may judge the
            remaining duels, see annotator_limits), unjudged (nobody may judge some of them), plan
            (due or being made), owner (must report states), paused
    plan_due: a plan is due and no process is making it: call `advance`
    """

    reason: WaitReason
    plan_due: bool
    done: int
    total: int
    own: int
    can_undo: bool


@dataclass(frozen=True)
class Finished:
    """Nothing more to show.

    reason: over (the study is closed or has had all its episodes), quota (the annotator has given
            as many answers as the study asks of each), skips (twice as many, but a participant's
            skips do not count beyond a share)
    code: the completion code that a participant has earned, else ""
    """

    own: int
    reason: Literal["over", "quota", "skips"] = "over"
    code: str = ""


@dataclass(frozen=True)
class Consent:
    """Nothing is shown before this person agrees to the owner's text: call `agree`.

    again: they have agreed to an earlier version of it
    """

    text: str
    version: str
    again: bool


@dataclass(frozen=True)
class Receipt:
    """What happened to a click; it is on disk.

    status: saved; late (saved after its lease expired); already (a second answer to the same
            impression, ignored); taken (too late, others have answered); too_fast (ignored)
    plan_due: the round is complete: call `advance`, in another process if this one serves clicks
    asks_reason: the owner would like to know why: `give_reason`, or nothing
    """

    status: Status
    plan_due: bool
    asks_reason: bool = False

    @property
    def saved(self) -> bool:
        return self.status in ("saved", "late")


def name_of(config: StudyConfig, arm: Arm) -> str:
    """An arm's label, with its id where other arms have the same label."""
    shared = arm.label.strip().casefold() in config.shared_names
    return f"{arm.label} ({arm.id})" if shared else arm.label


def side_of(
    config: StudyConfig,
    arm: int,
    state: int,
    reported: Mapping[str, dict[str, str]],
    hidden: Container[str],
) -> Side:
    """What a card may show of an arm in a state; reported columns replace those of the roster.

    hidden: the columns that it does not show
    """
    known, here = config.arms[arm], config.states[state]
    columns = known.columns | reported.get(known.id, {})
    own = config.translated.get(LANGUAGE.get(), {})  # the owner's words in the reader's language
    return Side(
        arm=known.id,
        number=arm,
        label=name_of(config, known),
        group=known.group,
        state=own.get(here.label, here.label),
        description=own.get(here.description, here.description),
        state_number=state,
        columns={name: text for name, text in columns.items() if name not in hidden},
    )


def sides_of(reader: StudyReader, duel: DuelRow | ImpressionRow) -> tuple[Side, Side]:
    """What was known of the two sides of a duel when it was asked, less what is hidden now."""
    known: Mapping[str, dict[str, str]] = {}
    config = reader.config
    if config.world == "observed":
        known = reader.reported_columns(duel.episode, duel.epoch)
    if max(duel.left_arm, duel.right_arm) >= len(config.arms):  # asked before a report was undone
        config = reader.next_config
    hidden = reader.next_config.hidden
    return (
        side_of(config, duel.left_arm, duel.left_state, known, hidden),
        side_of(config, duel.right_arm, duel.right_state, known, hidden),
    )


@dataclass(frozen=True)
class Timing:
    """Times of an answer as in log_values.Impression; None where unknown."""

    response_ms: int
    trip_ms: int | None = None
    narrow: bool | None = None


def browser_times(sent: Any, impression: int, server_ms: int) -> Timing:
    """The times of an answer, from untrusted data that its browser sent.

    server_ms: time from drawing the cards to the click by the server's clock, network included.
        It is an upper bound of the response time, and the fallback
    """
    if not isinstance(sent, dict) or sent.get("impression") != impression:
        return Timing(max(0, server_ms))
    response, trip = (_milliseconds(sent.get(what)) for what in ("response", "trip"))
    narrow = sent.get("narrow")
    if response is None or response > server_ms + _SLACK_MS:
        return Timing(max(0, server_ms))
    return Timing(response, trip, narrow if isinstance(narrow, bool) else None)


def _milliseconds(value: Any) -> int | None:
    """The value as milliseconds if it is a number from 0 to one day, else None."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and 0 <= value <= _LONGEST_MS else None
