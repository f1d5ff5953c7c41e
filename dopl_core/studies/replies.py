"""What a person gets back: a duel to show, a wait, an end, a receipt for a click."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dopl_core.studies.config import Arm, StudyConfig

Status = Literal["saved", "late", "already", "taken", "too_fast"]

_MESSAGES = {
    "saved": "Saved.",
    "late": "Saved, although it was a while.",
    "already": "This one was already answered; your first answer stands.",
    "taken": "Others have answered this one meanwhile.",
    "too_fast": "That was too quick to be meant for this pair.",
}


@dataclass(frozen=True)
class Side:
    """One of the two arms of a duel, as a card shows it.

    arm: the owner's id;  number: the arm's number;  state_number: 0 for the worst state
    columns: the roster's other columns, as text: what cards.read makes evidence of
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
class Ask:
    """A duel to show. The same one comes back until it is answered or its lease has run out.

    impression: what `answer` wants to know;  duel: number of the duel
    purpose: policy, sitting, repeat, gold or practice
    expected: the plain answer to a practice duel, else ""
    episode, epoch: that the duel is about, from 1 (0 before the first plan) and from 0
    done, total: ratings that this round (see Study.asked) has and wants
    own: the person's answers so far, practice aside;  can_undo: there is one to take back
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
    """Nothing to show now, but there will be.

    reason: others (they hold what is left), plan (it is being made, or due), owner (is to report
            states), paused
    plan_due: nobody is making the plan that is due: call `advance`
    """

    reason: Literal["others", "plan", "owner", "paused"]
    plan_due: bool
    done: int
    total: int
    own: int
    can_undo: bool


@dataclass(frozen=True)
class Finished:
    """There will be nothing more to show.

    reason: over (the study is closed, or has all the episodes that it wanted), quota (the person
            has given all that is asked of each)
    """

    own: int
    reason: Literal["over", "quota"] = "over"


@dataclass(frozen=True)
class Receipt:
    """What became of a click, on disk by now.

    status: saved; late (saved after its lease ran out); already (a second answer to one
            impression, ignored); taken (too late: others have answered); too_fast (nothing done)
    plan_due: the round is complete: call `advance`, in another process if clicks go on in this one
    """

    status: Status
    plan_due: bool

    @property
    def saved(self) -> bool:
        return self.status in ("saved", "late")

    @property
    def message(self) -> str:
        return _MESSAGES[self.status]


def name_of(config: StudyConfig, arm: Arm) -> str:
    """What people call an arm; with its id where others are called the same."""
    shared = arm.label.strip().casefold() in config.shared_names
    return f"{arm.label} ({arm.id})" if shared else arm.label


def side_of(
    config: StudyConfig, arm: int, state: int, reported: Mapping[str, dict[str, str]]
) -> Side:
    """What a card may show of an arm in a state; what was reported since replaces the roster's."""
    known, here = config.arms[arm], config.states[state]
    return Side(
        arm=known.id,
        number=arm,
        label=name_of(config, known),
        group=known.group,
        state=here.label,
        description=here.description,
        state_number=state,
        columns=known.columns | reported.get(known.id, {}),
    )
