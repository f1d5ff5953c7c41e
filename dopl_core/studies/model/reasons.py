"""Reasons for answers, from the events that ask for them, give them and take answers back."""

from collections.abc import Iterable

from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import Event, Reason

REASON_KINDS = ("reason_asked", "reasoned", "undone")


def reasons_in(events: Iterable[Event]) -> dict[int, Reason]:
    """By impression, the last reason for each answer that stands and for which one was asked."""
    found: dict[int, Reason] = {}
    for event in events:
        if event.kind not in REASON_KINDS or event.impression is None:
            continue
        if event.kind == "reason_asked":
            found[event.impression] = Reason()
        elif event.kind == "undone":
            found.pop(event.impression, None)
        elif event.impression in found:
            said = body_of(event)
            found[event.impression] = Reason(tuple(said.tags), said.text)
    return found
