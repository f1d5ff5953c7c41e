"""The log of a bundle that has none: as far as its other files tell it (versions 1 and 2)."""

from dopl_core.studies.history import Event, History, Move
from dopl_core.studies.rows import to_text
from dopl_core.studies.vocabulary import ANSWERS


def log_of_old(history: History) -> list[Event]:
    """Events in order: a plan, its simulated moves, then epoch by epoch its duels and its report.

    All answers of an episode came before the next plan; what was undone has no outcome any more.
    """
    log: list[tuple[tuple[int, int, int, int], Event]] = []

    def add(place: tuple[int, int], part: int, event: Event) -> None:
        log.append(((*place, part, event.at if part == _ASKED else 0), event))

    add((0, 0), _MADE, Event(history.made_at, "made"))
    for person in history.annotators:
        add((0, 0), _ASKED, Event(person.joined_at, "joined", person.name))
    for plan in history.plans:
        body = to_text({"plan": plan.plan, "engine": plan.engine})
        add((plan.plan, 0), _MADE, Event(plan.made_at, "planned", body=body))
    for move in history.moves:
        if move.next_states is not None:
            simulated = move.source == "simulated"
            about = {"episode": move.episode, "epoch": move.epoch, "source": move.source}
            report = Event(_known_at(history, move), "observed", body=to_text(about))
            place = (move.episode, 0 if simulated else move.epoch)
            add(place, _MOVED if simulated else _REPORTED, report)
    for number, shown in enumerate(history.impressions):
        add(shown.place[:2], _ASKED, Event(shown.shown_at, "shown", shown.annotator, number))
        if shown.outcome is not None:
            answered = shown.outcome in ANSWERS
            kind = "answered" if answered else shown.outcome
            at = shown.answered_at or shown.shown_at
            said = Event(at, kind, shown.annotator, number, shown.outcome if answered else None)
            add(shown.place[:2], _ASKED, said)
    return [event for _, event in sorted(log, key=lambda entry: entry[0])]


_MADE, _MOVED, _ASKED, _REPORTED = range(4)  # parts of an epoch


def _known_at(history: History, move: Move) -> int:
    """When an owner reported was not kept: at the latest when the next plan was made."""
    if move.source == "simulated":
        return history.plans[move.episode - 1].made_at
    if move.episode < history.episode:
        return history.plans[move.episode].made_at
    return max(plan.made_at for plan in history.plans)
