"""A study log without names: nothing in it says who patients and annotators are.

People become "person 1", groups "group 1", annotators "annotator 1" and so on. Columns of the
roster and of reports are left out, unless the owner keeps them; so is all free text except title,
question, and the names and descriptions of states. States, times, answers and the number of people
stay, and so do the people of simulated worlds, who are nobody.

The learner may have used columns that are left out. So plans are marked, and replay follows the
record; see replay/replay.py. Groups and annotators keep their order, on which the learner relies.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import structs, to_builtins

from dopl_core.studies.model import event_bodies as bodies
from dopl_core.studies.model import past_answers, past_records
from dopl_core.studies.model.config_json import digest_of, read_arms, to_json
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import NAMES_REMOVED
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import Epoch, Event, Impression, Person
from dopl_core.studies.model.study_config import Arm, StudyConfig
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store import about
from dopl_core.studies.store.inserts import to_text

_BLANK = ("instructions", "why", "consent", "completion_code")  # free text, or a secret
_OF_COLUMNS = ("hidden_columns", "unused_columns", "list_columns")
_FAIR = ("fair_column", "fair_shares")


@dataclass(frozen=True)
class _Names:
    """New names by old ones; keep: the columns that stay as they are.

    columns: those by which places are shared out, unless they are kept. Who is in which of their
        groups stays, as the list depends on it
    values: the texts in each kept column;  consents: by version of the consent text
    """

    arms: dict[str, str]
    groups: dict[str, str]
    columns: dict[str, str]
    annotators: dict[str, str]
    participants: dict[str, str]
    links: dict[str, str]
    keep: frozenset[str]
    values: dict[str, set[str]]
    consents: dict[str, str]


def without_names(log: StudyLog, keep: Collection[str] = ()) -> StudyLog:
    """The same log without names; keep: the columns that it still has."""
    known = _columns_in(log)
    if unknown := [name for name in keep if name not in known]:
        raise StudyError(
            f'column "{unknown[0][:80]}" is not in this study: choose from '
            f"{', '.join(known)[:800] or 'none, it has no columns'}"
        )
    names = _names(log, frozenset(keep))
    now = {name: getattr(log.config, name) for name in (*_BLANK, *_OF_COLUMNS, *_FAIR)}
    arms = log.config.arms
    if log.config.world == "observed":
        arms = tuple(_arm(arm, names) for arm in arms)
    config = replace(log.config, arms=arms, **_settings(now, now, names))
    epochs = [_epoch(epoch, names) for epoch in log.epochs]
    people = (_person(person, names) for person in log.annotators)
    return replace(
        log,
        config=config,
        config_text=to_json(config),
        annotators=sorted(people, key=lambda one: (one.joined_at, one.name)),  # as they are read
        impressions=[_impression(shown, names) for shown in log.impressions],
        epochs=epochs,
        events=list(_events(log, config, epochs, names)),
    )


def _columns_in(log: StudyLog) -> list[str]:
    """All columns that the study ever had, in the roster or in reports."""
    in_roster = (name for arm in _arms_ever(log) for name in arm.columns)
    reported = (n for e in log.epochs for cells in (e.columns or {}).values() for n in cells)
    return list(dict.fromkeys([*in_roster, *reported]))


# --- new names


def _names(log: StudyLog, keep: frozenset[str]) -> _Names:
    arms = _arms_ever(log)
    settings = [body_of(e).settings for e in log.events if e.kind == "settings_changed"]
    shared = [log.config.fair_column, *(one.get("fair_column") for one in settings)]
    own = [c for c in shared if c not in keep and any(c in arm.columns for arm in arms)]
    values = [arm.group for arm in arms] + [arm.columns.get(c, "") for c in own for arm in arms]
    in_log = (event.annotator for event in log.events)
    people = (person.name for person in log.annotators)
    seen = (shown.participant for shown in log.impressions)
    ids = [arm.id for arm in log.coming.arms]
    return _Names(
        arms=_numbered("person", ids) if log.config.world == "observed" else {i: i for i in ids},
        groups=_group_names(set(values)),
        columns=_numbered("fair column", own),
        # The learner knows annotators by their order; those of past answers come first.
        annotators=_numbered("annotator", [*log.past_annotators, *in_log, *people]),
        participants=_numbered("participant", [*(p.participant for p in log.annotators), *seen]),
        links=_numbered("link", (person.link for person in log.annotators)),
        keep=keep,
        values={name: {arm.columns.get(name, "") for arm in arms} for name in keep},
        consents=_numbered(
            "text", (body_of(e).version for e in log.events if e.kind == "consented")
        ),
    )


def _numbered(word: str, names: Iterable[str | None]) -> dict[str, str]:
    found = dict.fromkeys(name for name in names if name)
    return {name: f"{word} {number}" for number, name in enumerate(found, start=1)}


def _group_names(groups: set[str]) -> dict[str, str]:
    """Numbered names in the same order; "" and "all", which stand for no group, stay."""
    found = sorted(groups - {"", "all"})
    width = len(str(len(found)))
    new = {  # a capital letter comes before "all"
        name: f"{'Group' if name < 'all' else 'group'} {number:0{width}}"
        for number, name in enumerate(found, start=1)
    }
    return {"": "", "all": "all"} | new


def _arms_ever(log: StudyLog) -> list[Arm]:
    """Everybody as they joined, and again where they came back."""
    joined = (body_of(event).arms for event in log.events if event.kind == "arms_joined")
    return [*log.config.arms, *(arm for some in joined for arm in read_arms(some))]


# --- the configuration


def _arm(arm: Arm, names: _Names) -> Arm:
    name = names.arms[arm.id]
    shared = {
        new: names.groups[arm.columns[old]]
        for old, new in names.columns.items()
        if old in arm.columns
    }
    columns = _kept(arm.columns, names) | shared
    return replace(arm, id=name, label=name, group=names.groups[arm.group], columns=columns)


def _kept(cells: dict[str, str], names: _Names) -> dict[str, str]:
    return {name: text for name, text in cells.items() if name in names.keep}


def _settings(settings: dict[str, Any], now: dict[str, Any], names: _Names) -> dict[str, Any]:
    """Settings without names; now: all settings of fairness as they are then."""
    new = settings | dict.fromkeys(settings.keys() & _BLANK, "")
    for name in settings.keys() & _OF_COLUMNS:
        columns = (column.strip() for column in settings[name].split(","))
        some = (names.columns.get(c, c if c in names.keep else "") for c in columns)
        new[name] = ", ".join(filter(None, some))
    if settings.keys() & _FAIR:
        column = now["fair_column"]
        new["fair_shares"] = ", ".join(_shares(now["fair_shares"], column, names))
        if "fair_column" in settings:
            new["fair_column"] = names.columns.get(column, column)
    return new


def _shares(text: str, column: str, names: _Names) -> Iterator[str]:
    """The parts of a text like "North 30, South 20" that are about a group of the column."""
    new = names.groups
    if column in names.keep:
        new = {value: value for value in names.values[column]}
    for part in text.split(",") if column else ():
        name, _, percent = part.strip().rstrip("% ").rpartition(" ")
        if (name := name.strip(" =:")) in new and percent.replace(".", "", 1).isdecimal():
            yield f"{new[name]} {percent}".strip()


# --- annotators and epochs


def _person(person: Person, names: _Names) -> Person:
    link, participant = _panel(person, names)
    name = names.annotators[person.name]
    agreed = names.consents.get(person.consented, "")
    renamed = replace(person, name=name, link=link, participant=participant, code="")
    return replace(renamed, consented=agreed)


def _panel(one: Person | bodies.Joined, names: _Names) -> tuple[str, str]:
    return names.links.get(one.link, ""), names.participants.get(one.participant, "")


def _impression(shown: Impression, names: _Names) -> Impression:
    participant = names.participants[shown.participant] if shown.participant else None
    return replace(shown, annotator=names.annotators[shown.annotator], participant=participant)


def _epoch(epoch: Epoch, names: _Names) -> Epoch:
    known = {names.arms[arm]: _kept(cells, names) for arm, cells in (epoch.columns or {}).items()}
    return replace(epoch, columns={arm: cells for arm, cells in known.items() if cells} or None)


# --- events


def _events(
    log: StudyLog, config: StudyConfig, epochs: list[Epoch], names: _Names
) -> Iterator[Event]:
    """The events without names; config, epochs: without names."""
    reported = {(epoch.episode, epoch.epoch): epoch for epoch in epochs}
    fair = {name: getattr(log.config, name) for name in _FAIR}
    for event in log.events:
        if event.kind in _WITH_NAMES:
            body = body_of(event)
            if event.kind == "settings_changed":
                fair |= {name: body.settings[name] for name in body.settings.keys() & _FAIR}
                body.settings = _settings(body.settings, fair, names)
            elif event.kind in _COMPUTED:
                _mark(body, config, reported)
            else:
                _IN_BODY[event.kind](body, names)
            event = replace(event, body=to_text(to_builtins(body)))
        yield replace(event, annotator=event.annotator and names.annotators[event.annotator])


def _mark(
    body: bodies.Computed, config: StudyConfig, reported: dict[tuple[int, int], Epoch]
) -> None:
    """Say that names were removed, so that replay follows the record; bring digests up to date."""
    if isinstance(body, bodies.Made):
        body.config = digest_of(to_json(config))
    elif config.world == "simulated":
        return  # nothing that its plans depend on was removed
    elif isinstance(body, bodies.Observed):
        body.report = ""
        if body.about:  # the epoch of a report that was undone may be gone
            epoch = reported.get((body.episode, body.epoch))
            body.about = "" if epoch is None else about.of_report(epoch)
    body.arithmetic = NAMES_REMOVED


def _join(body: bodies.Joined, names: _Names) -> None:
    (body.link, body.participant), body.code = _panel(body, names), ""


def _agree(body: bodies.Consented, names: _Names) -> None:
    body.version = names.consents[body.version]


def _flag(body: bodies.Flagged, names: _Names) -> None:
    body.comment, body.arm = "", names.arms.get(body.arm, "")


def _list(body: bodies.Listed | bodies.ListChanged, names: _Names) -> None:
    body.entries = [structs.replace(one, id=names.arms[one.id]) for one in body.entries]


def _change_list(body: bodies.ListChanged, names: _Names) -> None:
    _list(body, names)
    body.removed, body.added = ([names.arms[i] for i in ids] for ids in (body.removed, body.added))
    body.because = ""


def _correct(body: bodies.Corrected, names: _Names) -> None:
    body.states = {names.arms[arm]: states for arm, states in body.states.items()}
    body.helped = {names.arms[arm]: helped for arm, helped in body.helped.items()}


def _add_history(body: bodies.HistoryAdded, names: _Names) -> None:
    body.records = past_records.renamed(body.records, names.arms)


def _add_answers(body: bodies.AnswersAdded, names: _Names) -> None:
    body.answers = past_answers.renamed(body.answers, names.annotators, names.arms)


def _join_arms(body: bodies.ArmsJoined | bodies.ReportUndone, names: _Names) -> None:
    body.arms = [asdict(_arm(arm, names)) for arm in read_arms(body.arms)]


def _leave(body: bodies.ArmsLeft, names: _Names) -> None:
    body.arms = [names.arms[arm] for arm in body.arms]


def _add_photos(body: bodies.PhotosAdded, names: _Names) -> None:
    body.photos = {}


_IN_BODY: dict[str, Callable[[Any, _Names], None]] = {
    "joined": _join,
    "consented": _agree,
    "flagged": _flag,
    "listed": _list,
    "list_changed": _change_list,
    "corrected": _correct,
    "history_added": _add_history,
    "answers_added": _add_answers,
    "arms_joined": _join_arms,
    "arms_left": _leave,
    "report_undone": _join_arms,
    "photos_added": _add_photos,
}
_COMPUTED = ("made", "planned", "observed")
_WITH_NAMES = {*_IN_BODY, *_COMPUTED, "settings_changed"}  # bodies of other kinds have no names
