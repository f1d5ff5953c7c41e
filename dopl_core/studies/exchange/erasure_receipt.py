"""The receipt of an erasure, in words: what went, what stays, and what it could not reach."""

from dopl_core.studies.exchange.bundle_csv import iso
from dopl_core.studies.exchange.erasing import Erasure

_WHAT = {
    "person": "One person, who is called {} from now on",
    "annotator": "One annotator, who is called {} from now on",
    "everybody": "All people and all annotators; the study is closed and keeps no names",
}
_GONE = {
    "person": "id, name, group, facts on cards, photo, flags, reasons and comments about them",
    "annotator": "name, link, participant id, flags and comments",
    "everybody": "all ids, names, groups, facts on cards, photos, links, reasons and free text",
}
_STAYS = {
    "person": "Their states and the answers about them stay, without their name.",
    "annotator": "Their answers stay, without their name.",
    "everybody": "States, times and answers stay. An export of this study is anonymous.",
}
_LEAVES = {
    "person": "Answers about them and their states no longer count from the next list on.",
    "annotator": "Their answers no longer count from the next list on.",
}


def receipt_text(done: Erasure) -> str:
    """The receipt, one fact a line; it does not say who was erased."""
    counted = _LEAVES if done.answers else _STAYS
    when = (iso(done.at) or "")[:19].replace("T", " ")
    lines = [
        f"Study: {done.study}",
        f"Erased: {_WHAT[done.what].format(done.name)}",
        f"When: {when} UTC, event {done.event} of the study's history",
        f"Removed: {_GONE[done.what]} ({done.events} events rewritten)",
        counted[done.what],
        "The history still verifies, and earlier seals still hold.",
        _files(done),
        "Not reached: other studies (rehearsals too), backups and exports made before, and your "
        "own files and prints. Erase there as well.",
    ]
    return "\n".join(lines)


def _files(done: Erasure) -> str:
    if not done.scrubbed:
        return (
            "The files of the database may still hold old bytes, because another program was "
            "reading. Run `dopl retain` later to clear them."
        )
    if done.on_server:
        return (
            "The tables were written anew without the old bytes. The server's own write-ahead log "
            "and its archive may hold them until they are recycled."
        )
    return "The files of the database were written anew and hold no old bytes."
