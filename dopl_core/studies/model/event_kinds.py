"""Every kind of event: its fields, its rules, and its effect.

A new kind is an entry of KINDS; its fields are a class in event_bodies.py. If it can name people,
exchange/renaming.py takes the names out. If it must agree with other events or with rows,
replay/consistency.py compares them. Earlier programs cannot read it: raise VERSION in
exchange/bundle.py, and first keep a bundle and a database in tests/data/kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from dopl_core.studies.model import event_bodies as bodies
from dopl_core.studies.model.config_changes import CHANGES
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.log_values import Event
from dopl_core.studies.model.outcomes import ANSWERS
from dopl_core.studies.model.progress import Progress
from dopl_core.validation import convert

Apply = Callable[[Progress, Event, Any], None]


@dataclass(frozen=True)
class Kind:
    """One kind of event.

    effect: what it does to the configuration, the learner and the epochs; None for nothing.
        The next plan depends on every event that has an effect
    body: the fields of its JSON;  of_impression: it is about an impression
    outcomes: those that it may carry
    """

    effect: Apply | None = None
    body: type[Struct] = bodies.Empty
    of_impression: bool = False
    outcomes: tuple[str | None, ...] = (None,)


KINDS: dict[str, Kind] = {
    "made": Kind(body=bodies.Made),
    "protocol_fixed": Kind(body=bodies.ProtocolFixed),
    "paused": Kind(),
    "reopened": Kind(),
    "closed": Kind(),
    "joined": Kind(body=bodies.Joined),
    "consented": Kind(body=bodies.Consented),
    "practice_skipped": Kind(),
    "shown": Kind(body=bodies.About, of_impression=True),
    "expired": Kind(of_impression=True),
    "answered": Kind(Progress.count_answer, bodies.About, of_impression=True, outcomes=ANSWERS),
    "refused": Kind(of_impression=True, outcomes=ANSWERS),
    "undone": Kind(Progress.count_answer, of_impression=True, outcomes=(*ANSWERS, None)),
    "flagged": Kind(body=bodies.Flagged, of_impression=True),
    "flag_done": Kind(of_impression=True),
    "reason_asked": Kind(of_impression=True),
    "reasoned": Kind(body=bodies.Reasoned, of_impression=True),
    "first_round_drawn": Kind(Progress.draw_first_round, bodies.FirstRoundDrawn),
    "duels_closed": Kind(body=bodies.DuelsClosed),
    "listed": Kind(body=bodies.Listed),
    "list_changed": Kind(Progress.change_list, bodies.ListChanged),
    "observed": Kind(Progress.finish_epoch, bodies.Observed),
    "corrected": Kind(Progress.correct, bodies.Corrected),
    "report_undone": Kind(Progress.change_config, bodies.ReportUndone),
    "planned": Kind(Progress.begin_episode, bodies.Planned),
    "history_added": Kind(Progress.add_history, bodies.HistoryAdded),
    "answers_added": Kind(Progress.add_answers, bodies.AnswersAdded),
    "settings_changed": Kind(Progress.change_config, bodies.SettingsChanged),
    "arms_joined": Kind(Progress.change_config, bodies.ArmsJoined),
    "arms_left": Kind(Progress.change_config, bodies.ArmsLeft),
    "person_excluded": Kind(Progress.exclude),
    "person_included": Kind(Progress.include),
    "photos_added": Kind(body=bodies.PhotosAdded),
    "photos_removed": Kind(),
    "erased": Kind(Progress.erase, bodies.Erased),
}
EFFECTIVE = tuple(kind for kind, one in KINDS.items() if one.effect)
SAID = ("answered", "undone")  # events that change what was answered
COUNTED = (*SAID, "answers_added")  # events whose answers a snapshot holds
REVISIONS = ("corrected", "list_changed")  # events that change epochs as they were recorded
UNDONE_WITH_REPORT = ("observed", "planned", "listed", *REVISIONS)
EXCLUSIONS = ("person_excluded", "person_included")
assert set(EFFECTIVE) >= CHANGES.keys()  # noqa: S101


def apply(progress: Progress, event: Event) -> None:
    """Let an event take effect."""
    effect = KINDS[event.kind].effect
    if effect is not None:
        effect(progress, event, body_of(event))


def body_of(event: Event) -> Any:
    """The fields of an event, checked; of the class that its kind has."""
    return read_body(event.kind, event.body)


def read_body(kind: str, body: str | None) -> Any:
    """The fields in the JSON text of a kind of event."""
    try:
        return msgspec.json.decode(body or "{}", type=KINDS[kind].body)
    except msgspec.ValidationError:
        return convert(msgspec.json.decode(body or "{}"), KINDS[kind].body, kind, LogError)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise LogError(f"{kind}: the body is not JSON: {error}") from None


Numbered = tuple[int, Event]  # an event and its number in the log, from 1


def standing(events: Iterable[Numbered]) -> list[Numbered]:
    """The events that count, in order: without what undone reports had led to.

    All other events count, answers that came after an undone report too.
    """
    found = list(events)
    undone = [(body_of(event), seq) for seq, event in found if event.kind == "report_undone"]
    return [(seq, event) for seq, event in found if not _is_undone(seq, event, undone)]


def _is_undone(seq: int, event: Event, undone: list[tuple[bodies.ReportUndone, int]]) -> bool:
    """undone: with the number of each event that undid a report"""
    return event.kind in UNDONE_WITH_REPORT and any(
        body.since <= seq < until
        and (event.kind != "corrected" or body_of(event).week >= body.week)
        for body, until in undone
    )


def in_plan_order(events: Iterable[Event]) -> list[Numbered]:
    """The events that count, with their numbers, each plan after the last event that it knows of.

    Answers that came while a plan was being made stand before it in the log and count after it.
    """
    order: list[Numbered] = []
    for seq, event in standing(enumerate(events, start=1)):
        late: list[Numbered] = []
        if event.kind == "planned":
            heard = body_of(event).heard
            while order and heard is not None and order[-1][0] > heard:
                late.append(order.pop())
        order.append((seq, event))
        order += reversed(late)
    return order
