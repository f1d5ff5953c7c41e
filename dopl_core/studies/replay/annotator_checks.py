"""Whether what a study log says of its annotators fits together; see consistency.py."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_bodies import Consented, Joined, SettingsChanged
from dopl_core.studies.model.event_kinds import EXCLUSIONS, body_of
from dopl_core.studies.model.log_values import Event
from dopl_core.studies.model.reasons import reasons_in
from dopl_core.studies.model.study_log import StudyLog


def check_exclusions(log: StudyLog) -> None:
    """Only annotators of the study are excluded, and only excluded ones included again."""
    names = {person.name for person in log.annotators} | log.past_annotators.keys()
    out: set[str] = set()
    for where, event in _rows(log, *EXCLUSIONS):
        name = event.annotator or ""
        if name not in names or (name in out) == (event.kind == "person_excluded"):
            raise LogError(f'{where}: "{name[:80]}" is unknown, or already {event.kind[7:]}')
        out ^= {name}


def check_participants(log: StudyLog) -> None:
    """Participants are whom the log says; each has one name, and no other id on what they saw."""
    joined = {event.annotator: body_of(event) for _, event in _rows(log, "joined")}
    pairs = Counter((one.link, one.participant) for one in log.annotators if one.participant)
    ids = {one.name: one.participant for one in log.annotators if one.participant}
    for person in log.annotators:
        said: Joined = joined.get(person.name, Joined())
        known = (person.link, person.participant, person.code)
        if known != (said.link, said.participant, said.code):
            raise LogError(f'study.json: "{person.name[:80]}" is another participant in the log')
        if pairs[person.link, person.participant] > 1:
            raise LogError(f'study.json: participant "{person.participant[:80]}" is there twice')
    for number, shown in enumerate(log.impressions, start=2):
        if shown.annotator in ids and shown.participant != ids[shown.annotator]:
            raise LogError(f"duels.csv row {number}: the id of another participant")


def check_consent(log: StudyLog) -> None:
    """People agreed to texts that the study had by then; exports without names have no texts."""
    texts = {log.config.consent_version} - {""}
    agreed: dict[str, str] = {}
    for where, event in _rows(log, "settings_changed", "consented"):
        body: SettingsChanged | Consented = body_of(event)
        if isinstance(body, Consented):
            if texts and body.version not in texts:
                raise LogError(f"{where}: no consent text had the version {body.version[:80]}")
            agreed[event.annotator or ""] = body.version
        elif text := body.settings.get("consent"):
            texts.add(replace(log.config, consent=text).consent_version)
    for person in log.annotators:
        if person.consented != agreed.get(person.name, ""):
            raise LogError(f'study.json: "{person.name[:80]}" agreed to another consent text')


def check_reasons(log: StudyLog) -> None:
    """Reasons are those of the log, given by the person who was asked."""
    for where, event in _rows(log, "reason_asked", "reasoned"):
        if event.annotator != log.impressions[event.impression or 0].annotator:
            raise LogError(f"{where}: the reason of another person")
    given = reasons_in(log.events)
    for place, shown in enumerate(log.impressions):
        if shown.reason != given.get(place):
            raise LogError(f"duels.csv row {place + 2}: not the reason that the log has")


def _rows(log: StudyLog, *kinds: str) -> Iterator[tuple[str, Event]]:
    """Events of some kinds, with their place in a bundle."""
    for row, event in enumerate(log.events, start=2):
        if event.kind in kinds:
            yield f"events.csv row {row}", event
