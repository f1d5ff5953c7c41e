"""A history in which nobody who answered can be told by name."""

import re
from collections.abc import Iterable
from dataclasses import replace

from dopl_core.studies.history import Event, History
from dopl_core.studies.rows import to_text


def pseudonymous(history: History) -> History:
    """The same history: annotator 1, 2, .. in the order of their first event, and panels' ids so.

    The learner knows people by their order only, so that it replays to the same bits. Names are
    replaced where comments on duels have them too; what owners wrote is left as it is.
    """
    in_log = (event.annotator for event in history.events)
    names = _numbered("annotator", [*in_log, *(person.name for person in history.annotators)])
    ids = _numbered("participant", (shown.participant for shown in history.impressions))
    return replace(
        history,
        annotators=[replace(person, name=names[person.name]) for person in history.annotators],
        impressions=[
            replace(
                shown,
                annotator=names[shown.annotator],
                participant=ids[shown.participant] if shown.participant else None,
            )
            for shown in history.impressions
        ],
        events=[_renamed(event, names, ids) for event in history.events],
    )


def _numbered(word: str, names: Iterable[str | None]) -> dict[str, str]:
    found = dict.fromkeys(name for name in names if name)
    return {name: f"{word} {number}" for number, name in enumerate(found, start=1)}


def _renamed(event: Event, names: dict[str, str], ids: dict[str, str]) -> Event:
    if event.annotator is None:
        return event
    event = replace(event, annotator=names[event.annotator])
    if event.kind != "flagged":
        return event  # no other body says who
    content = event.content
    return replace(event, body=to_text(content | {"comment": _said(content, ids | names)}))


def _said(content: dict[str, str], names: dict[str, str]) -> str:
    """A comment with names, where they stand as words of their own, replaced: the longest first."""
    some = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<!\w)({some})(?!\w)", lambda found: names[found[0]], content["comment"])
