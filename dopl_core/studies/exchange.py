"""Studies that leave and come in as bundles, and the proof that they can be played again."""

from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from dopl_core.environments import brief
from dopl_core.learning.dopl import Dopl
from dopl_core.studies import archive, bundle, codebook, csvtext, lists
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.episode import plan_arrays
from dopl_core.studies.fitting import check
from dopl_core.studies.history import History
from dopl_core.studies.lists import Listed
from dopl_core.studies.pseudonyms import pseudonymous
from dopl_core.studies.replay import replay, with_arrays
from dopl_core.studies.store import Store


def export_bundle(store: Store, study: str, pseudonyms: bool = False) -> bytes:
    """The zip of a study as it is now, with its lists and what every column means.

    pseudonyms: "annotator 1" and so on in place of the names of those who answer
    """
    history = with_arrays(archive.read(store, study))
    if pseudonyms:
        history = pseudonymous(history)
    table = csvtext.write(lists.EVERY_LIST, lists.every_list(history))
    return bundle.write(history, {"lists.csv": table, "codebook.md": codebook.text()})


def import_bundle(store: Store, source: Path | bytes) -> str:
    """Put the study of a bundle into the database, all of it or nothing; its id.

    It is replayed first: what does not come out as recorded is not taken in.
    """
    history = _read(source)
    learner = replay(history)
    if history.plans and history.arrays is None:
        history = replace(history, arrays=plan_arrays(learner))
    archive.write(store, history)
    return history.study


def replay_bundle(source: Path | bytes, tell: Callable[[str], None] = lambda how: None) -> Dopl:
    """The learner of a bundle, computed from the start and compared with it at every step.

    tell: is told how it came out, in a few words
    """
    return replay(_read(source), tell)


def _read(source: Path | bytes) -> History:
    history = bundle.read(source)
    for seq, event in enumerate(history.events, start=1):
        if event.kind == "listed":
            try:
                _check_list(history, event.content)
            except ValueError as error:
                raise CsvError(f"events.csv row {seq + 1}: {error}") from None
    return history


# What the log has of an entry of a list; the rest is known from elsewhere (lists.read_lists).
_ELSEWHERE = ("label", "group", "helped", "then")
_LISTED = {f.name: f for f in fields(Listed) if f.name not in _ELSEWHERE}
_KINDS = get_type_hints(Listed)


def _check_list(history: History, content: dict[str, Any]) -> None:
    """Refuse a list that could not be shown: it is the one part of the log that no replay makes."""
    week, entries = content.get("week"), content.get("list")
    if type(week) is not int or not 1 <= week <= len(history.moves):
        raise ValueError(f"the list of week {brief(week)}, of which transitions.csv has nothing")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"the list is {brief(entries)}: a list of objects needed")
    there = len(history.moves[week - 1].states)
    for entry in entries:
        needed = {name for name, f in _LISTED.items() if f.default is MISSING}
        if not needed <= entry.keys() <= _LISTED.keys():
            raise ValueError(f"an entry of the list does not have {', '.join(sorted(needed))}")
        for name, value in entry.items():
            kind = int | float if _KINDS[name] is float else _KINDS[name]
            if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
                raise ValueError(f"an entry of the list: {name} is {brief(value)}")
        if history.coming.arm_number(entry["id"]) >= there:
            raise ValueError(f'"{entry["id"]}" is on the list of week {week}, before it came')


def replay_study(store: Store, study: str, tell: Callable[[str], None] = lambda how: None) -> Dopl:
    """The same for a study in the database, whose rows must also agree with its log."""
    archive.check_chain(store, study)
    history = archive.read(store, study)
    check(history)
    return replay(history, tell)
