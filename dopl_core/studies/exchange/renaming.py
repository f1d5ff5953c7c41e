"""A study log with other names: what every kind of event says when somebody's data goes.

names_removed.py takes everybody out of a copy of a log, erasing.py some or all out of the log
itself.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from msgspec import structs, to_builtins

from dopl_core.studies.model import event_bodies as bodies
from dopl_core.studies.model import past_answers, past_records
from dopl_core.studies.model.annotator_limits import Limit, read_limits, write_limits
from dopl_core.studies.model.config_json import digest_of, read_arms, to_json
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import NAMES_REMOVED
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import Epoch, Event, Impression, Person
from dopl_core.studies.model.names import looks_like
from dopl_core.studies.model.reasons import reasons_in
from dopl_core.studies.model.study_config import Arm, StudyConfig
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store import about
from dopl_core.studies.store.inserts import to_text

# Free text, or a secret.
BLANK = ("instructions", "why", "consent", "translations", "completion_code", "annotator_limits")
OF_COLUMNS = ("hidden_columns", "unused_columns", "list_columns")
FAIR = ("fair_column", "fair_shares")
_WORD = re.compile(r"\w{3,}")  # of a name
_SHORTEST_FACT = 5  # characters by which a fact on a card may be recognised


@dataclass(frozen=True)
class Names:
    """New names by old ones, and whose data goes.

    arms, annotators: the new name of everybody; the old one where nothing goes
    people, authors: the ids of arms, and the annotators, whose data goes
    everybody: settings, links and all free text go as well
    groups: new names of groups;  keep: the columns that stay
    columns: new names of those by which places are shared out, unless they are kept. Who is in
        which of their groups stays, as the list depends on it
    values: the texts in each kept column;  consents: new names of versions of the consent text
    """

    arms: dict[str, str]
    annotators: dict[str, str]
    people: frozenset[str]
    authors: frozenset[str]
    everybody: bool = False
    groups: dict[str, str] = field(default_factory=dict)
    keep: frozenset[str] = frozenset()
    columns: dict[str, str] = field(default_factory=dict)
    values: dict[str, set[str]] = field(default_factory=dict)
    participants: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    consents: dict[str, str] = field(default_factory=dict)


def renamed(log: StudyLog, names: Names) -> StudyLog:
    """The log with new names, and without the data that goes."""
    config, text = _config(log, names)
    epochs = [_epoch(epoch, names) for epoch in log.epochs]
    people = (_person(person, names) for person in log.annotators)
    events = list(_Events(log, text, epochs, names))
    reasons = reasons_in(events)
    return replace(
        log,
        config=config,
        config_text=text,
        annotators=sorted(people, key=lambda one: (one.joined_at, one.name)),  # as they are read
        impressions=[
            replace(_impression(shown, names), reason=reasons.get(place))
            for place, shown in enumerate(log.impressions)
        ],
        epochs=epochs,
        events=events,
    )


# --- the configuration


def _config(log: StudyLog, names: Names) -> tuple[StudyConfig, str]:
    """The configuration, and its text: as it was where nothing of it goes."""
    config = log.config
    arms = tuple(_arm(arm, names) for arm in config.arms)
    if names.everybody:
        now = {name: getattr(config, name) for name in (*BLANK, *OF_COLUMNS, *FAIR)}
        config = replace(config, arms=arms, **_settings(now, now, names))
    else:
        limits = _limits(config.annotator_limits, log, names)
        if arms != config.arms or limits != config.annotator_limits:
            config = replace(config, arms=arms, annotator_limits=limits)
    return config, log.config_text if config is log.config else to_json(config)


def _arm(arm: Arm, names: Names) -> Arm:
    if arm.id not in names.people:
        return arm
    name = names.arms[arm.id]
    shared = {
        new: names.groups[arm.columns[old]]
        for old, new in names.columns.items()
        if old in arm.columns
    }
    columns = _kept(arm.columns, names) | shared
    return replace(arm, id=name, label=name, group=names.groups[arm.group], columns=columns)


def _kept(cells: dict[str, str], names: Names) -> dict[str, str]:
    return {name: text for name, text in cells.items() if name in names.keep}


def _settings(settings: dict[str, Any], now: dict[str, Any], names: Names) -> dict[str, Any]:
    """Settings without names; now: all settings of fairness as they are then."""
    new = settings | dict.fromkeys(settings.keys() & BLANK, "")
    for name in settings.keys() & OF_COLUMNS:
        columns = (column.strip() for column in settings[name].split(","))
        some = (names.columns.get(c, c if c in names.keep else "") for c in columns)
        new[name] = ", ".join(filter(None, some))
    if settings.keys() & FAIR:
        column = now["fair_column"]
        new["fair_shares"] = ", ".join(_shares(now["fair_shares"], column, names))
        if "fair_column" in settings:
            new["fair_column"] = names.columns.get(column, column)
    return new


def _limits(text: str, log: StudyLog, names: Names) -> str:
    """Who judges whom, without annotators and people whose data goes.

    A value in a column goes as well if nobody else has it.
    """
    try:
        limits = read_limits(text)
    except StudyError:
        return ""  # a later change of the settings mended it
    theirs: set[str] = set()
    others: set[str] = set()
    for arm, cells in _facts(log):
        (theirs if arm in names.people else others).update(cell.strip() for cell in cells)
    kept = {
        name: Limit(
            {column: cells - (theirs - others) for column, cells in limit.only.items()},
            limit.never - names.people,
        )
        for name, limit in limits.items()
        if looks_like(name) not in {looks_like(author) for author in names.authors}
    }
    return text if kept == limits else write_limits(kept)


def _facts(log: StudyLog) -> Iterator[tuple[str, Iterable[str]]]:
    """Each arm's id with its group and what stood in its columns, in rosters and reports."""
    for arm in arms_ever(log):
        yield arm.id, [arm.group, *arm.columns.values()]
    for epoch in log.epochs:
        for name, cells in (epoch.columns or {}).items():
            yield name, cells.values()


def _shares(text: str, column: str, names: Names) -> Iterator[str]:
    """The parts of a text like "North 30, South 20" that are about a group of the column."""
    new = names.groups
    if column in names.keep:
        new = {value: value for value in names.values[column]}
    for part in text.split(",") if column else ():
        name, _, percent = part.strip().rstrip("% ").rpartition(" ")
        if (name := name.strip(" =:")) in new and percent.replace(".", "", 1).isdecimal():
            yield f"{new[name]} {percent}".strip()


# --- annotators and epochs


def _person(person: Person, names: Names) -> Person:
    if person.name not in names.authors:
        return person
    link, participant = _panel(person, names)
    name = names.annotators[person.name]
    agreed = names.consents.get(person.consented, person.consented)
    new = replace(person, name=name, link=link, participant=participant, code="")
    return replace(new, consented=agreed)


def _panel(one: Person | bodies.Joined, names: Names) -> tuple[str, str]:
    return names.links.get(one.link, ""), names.participants.get(one.participant, "")


def _impression(shown: Impression, names: Names) -> Impression:
    if shown.annotator not in names.authors:
        return shown
    participant = names.participants.get(shown.participant or "")
    return replace(shown, annotator=names.annotators[shown.annotator], participant=participant)


def _epoch(epoch: Epoch, names: Names) -> Epoch:
    if names.people.isdisjoint(epoch.columns or ()):
        return epoch
    known = {
        names.arms[arm]: _kept(cells, names) if arm in names.people else cells
        for arm, cells in (epoch.columns or {}).items()
    }
    return replace(epoch, columns={arm: cells for arm, cells in known.items() if cells} or None)


# --- events


class _Events:
    """The events of a log with new names; those of which nothing goes are as they were.

    text, epochs: of the configuration and the reports, with new names
    """

    def __init__(self, log: StudyLog, text: str, epochs: list[Epoch], names: Names) -> None:
        self.log, self.names = log, names
        self.config_digest = digest_of(text) if text != log.config_text else ""
        self.reported = {(epoch.episode, epoch.epoch): epoch for epoch in epochs}
        self.fair = {name: getattr(log.config, name) for name in FAIR}
        self.ids = [arm.id for arm in log.coming.arms]
        either = "|".join(map(re.escape, sorted(_words(log, names), key=len, reverse=True)))
        self.mentioned = re.compile(rf"(?<!\w)({either})(?!\w)", re.IGNORECASE)

    def __iter__(self) -> Iterator[Event]:
        for event in self.log.events:
            body = body_of(event)
            change = _IN_BODY.get(event.kind)
            if change is not None:
                before = to_builtins(body)
                change(self, event, body)
                after = to_builtins(body)
                if after != before:
                    event = replace(event, body=to_text(after))
            who = event.annotator and self.names.annotators[event.annotator]
            yield replace(event, annotator=who)

    def _goes(self, text: str) -> bool:
        """Whether a free text goes, as it names somebody whose data goes."""
        return self.names.everybody or self.mentioned.search(text) is not None

    def settings(self, event: Event, body: bodies.SettingsChanged) -> None:
        if self.names.everybody:
            self.fair |= {name: body.settings[name] for name in body.settings.keys() & FAIR}
            body.settings = _settings(body.settings, self.fair, self.names)
        elif limits := body.settings.get("annotator_limits"):
            body.settings["annotator_limits"] = _limits(limits, self.log, self.names)

    def computed(self, event: Event, body: bodies.Computed) -> None:
        """Bring digests up to date; where columns of everybody are gone, replay is told so."""
        if isinstance(body, bodies.Made):
            body.config = self.config_digest or body.config
        if not self.names.people and not self.names.everybody:
            return
        if self.log.config.world == "simulated" and not isinstance(body, bodies.Made):
            return  # nothing that its plans depend on was removed
        if isinstance(body, bodies.Observed):
            body.report = ""
            if body.about:  # the epoch of a report that was undone may be gone
                epoch = self.reported.get((body.episode, body.epoch))
                body.about = "" if epoch is None else about.of_report(epoch)
        if self.names.everybody:
            body.arithmetic = NAMES_REMOVED

    def joined(self, event: Event, body: bodies.Joined) -> None:
        if event.annotator in self.names.authors:
            (body.link, body.participant), body.code = _panel(body, self.names), ""

    def consented(self, event: Event, body: bodies.Consented) -> None:
        body.version = self.names.consents.get(body.version, body.version)

    def flagged(self, event: Event, body: bodies.Flagged) -> None:
        body.comment = self._comment(event, body.comment)
        body.arm = self.names.arms.get(body.arm, "")

    def reasoned(self, event: Event, body: bodies.Reasoned) -> None:
        body.text = self._comment(event, body.text)

    def _comment(self, event: Event, text: str) -> str:
        """What an annotator wrote about a pair, "" where it goes."""
        shown = self.log.impressions[event.impression or 0]
        cards = {self.ids[shown.sides[0]], self.ids[shown.sides[2]]}
        theirs = event.annotator in self.names.authors or not self.names.people.isdisjoint(cards)
        return "" if theirs or self._goes(text) else text

    def listed(self, event: Event, body: bodies.Listed | bodies.ListChanged) -> None:
        arms = self.names.arms
        body.entries = [structs.replace(one, id=arms[one.id]) for one in body.entries]

    def list_changed(self, event: Event, body: bodies.ListChanged) -> None:
        self.listed(event, body)
        changed = {*body.removed, *body.added}
        if self._goes(body.because) or not self.names.people.isdisjoint(changed):
            body.because = ""
        arms = self.names.arms
        body.removed, body.added = ([arms[i] for i in ids] for ids in (body.removed, body.added))

    def corrected(self, event: Event, body: bodies.Corrected) -> None:
        arms = self.names.arms
        body.states = {arms[arm]: states for arm, states in body.states.items()}
        body.helped = {arms[arm]: helped for arm, helped in body.helped.items()}

    def history(self, event: Event, body: bodies.HistoryAdded) -> None:
        if not self.names.people.isdisjoint(past_records.ids_in(body.records)):
            body.records = past_records.renamed(body.records, self.names.arms)

    def answers(self, event: Event, body: bodies.AnswersAdded) -> None:
        body.answers = past_answers.renamed(body.answers, self.names.annotators, self.names.arms)

    def arms(self, event: Event, body: bodies.ArmsJoined | bodies.ReportUndone) -> None:
        if any(arm.id in self.names.people for arm in read_arms(body.arms)):
            body.arms = [asdict(_arm(arm, self.names)) for arm in read_arms(body.arms)]

    def left(self, event: Event, body: bodies.ArmsLeft) -> None:
        body.arms = [self.names.arms[arm] for arm in body.arms]

    def photos(self, event: Event, body: bodies.PhotosAdded) -> None:
        kept = {arm: one for arm, one in body.photos.items() if arm not in self.names.people}
        body.photos = {} if self.names.everybody else kept

    def erased(self, event: Event, body: bodies.Erased) -> None:
        if self.names.everybody:
            new = self.names.arms if body.what == "person" else self.names.annotators
            body.name, body.stands = new.get(body.name, ""), ""


_IN_BODY: dict[str, Callable[[_Events, Event, Any], None]] = {
    "made": _Events.computed,
    "first_round_drawn": _Events.computed,
    "planned": _Events.computed,
    "observed": _Events.computed,
    "settings_changed": _Events.settings,
    "joined": _Events.joined,
    "consented": _Events.consented,
    "flagged": _Events.flagged,
    "reasoned": _Events.reasoned,
    "listed": _Events.listed,
    "list_changed": _Events.list_changed,
    "corrected": _Events.corrected,
    "history_added": _Events.history,
    "answers_added": _Events.answers,
    "arms_joined": _Events.arms,
    "arms_left": _Events.left,
    "report_undone": _Events.arms,
    "photos_added": _Events.photos,
    "erased": _Events.erased,
}  # bodies of other kinds have no names


def _words(log: StudyLog, names: Names) -> set[str]:
    """Words by which a free text names somebody whose data goes, and nobody else."""
    theirs: set[str] = {*names.people, *names.authors}
    others: set[str] = set()
    for arm in arms_ever(log):
        facts = {text for text in arm.columns.values() if len(text) >= _SHORTEST_FACT}
        said = {arm.label, *_WORD.findall(arm.label), *facts}
        (theirs if arm.id in names.people else others).update(said)
    for name in names.annotators:
        (theirs if name in names.authors else others).update(_WORD.findall(name))
    return theirs - others - {""}


def arms_ever(log: StudyLog) -> list[Arm]:
    """Everybody as they joined, and again where they came back."""
    joined = (body_of(event).arms for event in log.events if event.kind == "arms_joined")
    return [*log.config.arms, *(arm for some in joined for arm in read_arms(some))]
