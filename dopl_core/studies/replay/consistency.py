"""Whether a study log fits together, checked before it is played; names places as bundles do."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from dopl_core.studies.model import protocol
from dopl_core.studies.model.config_json import digest_of
from dopl_core.studies.model.errors import LogError
from dopl_core.studies.model.event_bodies import (
    Erased,
    ListChanged,
    Listed,
    Made,
    Observed,
    Planned,
    ProtocolFixed,
)
from dopl_core.studies.model.event_kinds import (
    EFFECTIVE,
    EXCLUSIONS,
    KINDS,
    SAID,
    Numbered,
    body_of,
    in_plan_order,
)
from dopl_core.studies.model.log_values import Epoch, Event, Impression, Place, Shown, Sides
from dopl_core.studies.model.outcomes import ANSWERS, CREDIT, LEARNT
from dopl_core.studies.model.past_answers import rows_in
from dopl_core.studies.model.study_log import StudyLog, log_digest
from dopl_core.studies.replay import annotator_checks
from dopl_core.studies.store import about

OTHER_CONFIG = "the configuration (roster, names, settings) is not what the study had"


def check(log: StudyLog) -> None:
    """Refuse a log whose parts contradict each other."""
    _check_events(log)
    _check_config(log)
    _check_protocol(log)
    _check_undone_reports(log)
    _check_plans_know_enough(log)
    _check_past_records(log)
    _check_lists(log)
    annotator_checks.check_exclusions(log)
    annotator_checks.check_participants(log)
    annotator_checks.check_consent(log)
    annotator_checks.check_reasons(log)
    _check_epochs(log)
    _check_impressions(log)
    _check_outcomes(log)
    _check_times(log)
    _check_answers_used(log)
    _check_about(log)
    _check_erased(log)
    if not 0 <= log.given <= log.asked:
        raise LogError(f"study.json: {log.given} answers given of {log.asked} asked")


def _rows(log: StudyLog, *kinds: str) -> Iterator[tuple[str, int, Event]]:
    """Events of some kinds, or all, with their place in a bundle and their number."""
    yield from _placed(enumerate(log.events, start=1), kinds)


def _standing(log: StudyLog, *kinds: str) -> Iterator[tuple[str, int, Event]]:
    """The same, without what undone reports had led to."""
    yield from _placed(log.standing, kinds)


def _placed(events: Iterable[Numbered], kinds: tuple[str, ...]) -> Iterator[tuple[str, int, Event]]:
    for seq, event in events:
        if not kinds or event.kind in kinds:
            yield f"events.csv row {seq + 1}", seq, event


def _check_events(log: StudyLog) -> None:
    """Each event has the impression, the outcome and the body that its kind has."""
    for where, _, event in _rows(log):
        kind = KINDS[event.kind]
        if (event.impression is not None) != kind.of_impression:
            raise LogError(f"{where}: {event.kind} is about an impression, or should not be")
        if event.impression is not None and not 0 <= event.impression < len(log.impressions):
            raise LogError(f"{where}: impression {event.impression + 1} is not in duels.csv")
        if event.outcome not in kind.outcomes:
            raise LogError(f'{where}: {event.kind} with the outcome "{event.outcome or ""}"')
        try:
            body_of(event)
        except LogError as error:
            raise LogError(f"{where}: {error}") from None


def _check_undone_reports(log: StudyLog) -> None:
    """Only the latest report of an owner is undone."""
    reports: list[int] = []
    for where, seq, event in _rows(log, "observed", "report_undone"):
        body = body_of(event)
        if isinstance(body, Observed):
            reports.append(seq)
            continue
        if log.config.world != "observed" or (body.since, body.week) != (
            reports.pop() if reports else 0,
            len(reports) + 1,
        ):
            raise LogError(f"{where}: the report of week {body.week} is not the latest one")


def _check_config(log: StudyLog) -> None:
    """The configuration is that of the log, whose events have digests since schema 11."""
    for _, _, event in _rows(log, "made"):
        body: Made = body_of(event)
        if body.about and body.config != digest_of(log.config_text):
            raise LogError(f"study.json: {OTHER_CONFIG}")


def _check_protocol(log: StudyLog) -> None:
    """A protocol was fixed once, before the first plan, for this study, and is as it was then."""
    before = [event.kind for _, _, event in _rows(log, "planned", "protocol_fixed")]
    if "protocol_fixed" in before[1:]:
        raise LogError("events.csv: a protocol, which is fixed once and before the first plan")
    for where, _, event in _rows(log, "protocol_fixed"):
        body: ProtocolFixed = body_of(event)
        if body.digest != protocol.digest(body.protocol):
            raise LogError(f"{where}: the protocol is not what it was when it was fixed")
        protocol.check_fits(body.protocol, log.config)


def _check_plans_know_enough(log: StudyLog) -> None:
    """A plan knows of all events with an effect before it; late answers may miss it."""
    late = SAID if log.config.world == "observed" else ()
    needed = 0
    for where, seq, event in _rows(log):
        if event.kind == "planned":
            body: Planned = body_of(event)
            heard = seq - 1 if body.heard is None else body.heard
            if not 0 <= heard < seq:
                raise LogError(f"{where}: heard is {heard}: the number of an earlier event needed")
            if heard < needed:
                raise LogError(f"{where}: the plan does not know of event {needed}")
        if event.kind in EFFECTIVE and event.kind not in late:
            needed = seq


def _check_past_records(log: StudyLog) -> None:
    """Past records and past answers come once each, and before the first plan."""
    for kind, what in (("history_added", "past records"), ("answers_added", "past answers")):
        before = [event.kind for _, _, event in _rows(log, "planned", kind)]
        if kind in before[1:]:
            raise LogError(f"events.csv: {what}, which come once and before the first plan")


def _check_lists(log: StudyLog) -> None:
    """A list is of a week that there is, and of arms that were there; some find something out."""
    for where, _, event in _standing(log, "listed", "list_changed"):
        body: Listed | ListChanged = body_of(event)
        if not 1 <= body.week <= len(log.epochs):
            raise LogError(f"{where}: a list of week {body.week}, which transitions.csv lacks")
        for entry in body.entries:
            if log.coming.arm_number(entry.id) >= len(log.epochs[body.week - 1].states):
                raise LogError(
                    f'{where}: "{entry.id}" is on the list of week {body.week}, before they joined'
                )
            if entry.to_find_out and (entry.by_lot or entry.reserve or entry.left_out):
                raise LogError(
                    f'{where}: "{entry.id}" is there to find out what help does, and is not on the '
                    "list by the plan"
                )


def _check_epochs(log: StudyLog) -> None:
    config, episode, epochs = log.config, log.episode, log.epochs
    most = episode * config.horizon
    least = most if config.world == "simulated" else max(most - config.horizon + 1, 0)
    places = [divmod(number, config.horizon) for number in range(len(epochs))]
    if [(e.episode - 1, e.epoch) for e in epochs] != places or not least <= len(epochs) <= most:
        raise LogError(
            f"transitions.csv: the epochs are not those of {episode} plans with {config.horizon} "
            "epochs each, in order"
        )
    source = "simulated" if config.world == "simulated" else "owner"
    for number, epoch in enumerate(epochs, start=1):
        where = f"transitions.csv: epoch ({epoch.episode}, {epoch.epoch})"
        if epoch.next_states is None and (number < len(epochs) or source == "simulated"):
            raise LogError(f"{where} has no next states")
        if epoch.next_states is not None and epoch.source != source:
            raise LogError(f'{where} has the source "{epoch.source}", not "{source}"')
        if epoch.helped is not None and source == "simulated":
            raise LogError(f"{where}: arms are helped that are not on the list")
        for arm in epoch.columns or ():
            log.coming.arm_number(arm)
    if len(log.configs) != episode:
        raise LogError(f"events.csv: {len(log.configs)} plans were made, plans.csv has {episode}")


def _check_impressions(log: StudyLog) -> None:
    epochs = {(epoch.episode, epoch.epoch): epoch for epoch in log.epochs}
    names = {person.name for person in log.annotators}
    sides: dict[tuple[Place, str], Sides] = {
        (duel.place, duel.purpose): duel.sides for duel in log.queue or ()
    }
    people: set[tuple[Place, str, str]] = set()
    for number, duel in enumerate(log.queue or (), start=2):
        _check_purpose(f"queue.csv row {number}", duel, log)
    for number, shown in enumerate(log.impressions, start=2):
        where = f"duels.csv row {number}"
        key = (shown.place, shown.purpose)
        if shown.annotator not in names:
            raise LogError(f'{where}: annotator "{shown.annotator[:80]}" is not in study.json')
        if sides.setdefault(key, shown.sides) != shown.sides:
            raise LogError(f"{where}: the duel has other sides than before")
        _check_purpose(where, shown, log)
        if shown.place[0] and not log.was_undone(shown.place):
            _check_sides(where, shown, epochs.get(shown.place[:2]), log)
        if shown.outcome != "undone":
            if (*key, shown.annotator) in people:
                raise LogError(f"{where}: shown to the same person before")
            people.add((*key, shown.annotator))
    _check_ratings(log)


def _check_ratings(log: StudyLog) -> None:
    """No duel has more answers than it asked for."""
    most = max(c.ratings for c in (log.config, log.now, *log.configs.values()))
    wanted = {duel.place: duel.ratings for duel in log.queue or () if duel.purpose in LEARNT}
    ratings: Counter[tuple[Place, str]] = Counter()
    for number, shown in enumerate(log.impressions, start=2):
        if shown.purpose in LEARNT and shown.outcome in ANSWERS:
            key = (shown.place, shown.purpose)
            ratings[key] += 1
            allowed = wanted.get(shown.place, most)
            if ratings[key] > allowed:
                raise LogError(f"duels.csv row {number}: the duel has more than {allowed} ratings")


def _check_purpose(where: str, shown: Shown, log: StudyLog) -> None:
    """Duels before the first plan are about the arms of the beginning."""
    first = shown.purpose in ("practice", "sitting")
    if (first and shown.place[0]) or (shown.purpose == "policy" and not shown.place[0]):
        raise LogError(f"{where}: a duel of episode {shown.place[0]} for {shown.purpose}")
    if not shown.place[0] and max(shown.sides[0], shown.sides[2]) >= log.config.n_arms:
        raise LogError(f"{where}: an arm that was not there yet")


def _check_sides(where: str, shown: Impression, epoch: Epoch | None, log: StudyLog) -> None:
    if epoch is None:
        raise LogError(f"{where}: the epoch is not in transitions.csv")
    config = log.configs[epoch.episode]
    only_listed = config.answers < config.budget and not config.limited_pairs
    left_arm, left_state, right_arm, right_state = shown.sides
    for arm, state in ((left_arm, left_state), (right_arm, right_state)):
        there = arm < len(epoch.states) and epoch.states[arm] == state
        if not there or (only_listed and arm not in epoch.arms):
            raise LogError(f"{where}: transitions.csv has no such arm helped in that state then")


# The outcome of an impression after an event; that of an answer is its own.
_OUTCOME = {"shown": None, "answered": None, "expired": "expired", "undone": "undone"}


def _check_outcomes(log: StudyLog) -> None:
    """The log and the impressions agree on every answer."""
    known: dict[int, str | None] = {}
    for where, _, event in _rows(log, *_OUTCOME):
        if event.impression is None:
            continue
        if event.annotator != log.impressions[event.impression].annotator:
            raise LogError(f"{where}: the impression of another person")
        before = known.get(event.impression)
        twice = event.kind == "answered" and before in ANSWERS
        if twice or (event.kind == "undone" and event.outcome not in (None, before)):
            raise LogError(
                f'{where}: {event.kind} "{event.outcome}", when the answer was "{before or ""}"'
            )
        after = event.outcome if event.kind == "answered" else _OUTCOME[event.kind]
        known[event.impression] = after
    for place, shown in enumerate(log.impressions):
        if shown.purpose != "practice" and known.get(place) != shown.outcome:
            raise LogError(
                f'duels.csv row {place + 2}: outcome is "{shown.outcome or ""}", the log has '
                f'"{known.get(place) or ""}"'
            )


_ABOUT = ("made", "shown", "answered", "planned", "listed", "observed")
_NOBODY = np.empty(0, dtype=np.int64)
_NO_EPOCH = Epoch(0, 0, _NOBODY, _NOBODY)  # where there is none that was reported


def _check_about(log: StudyLog) -> None:
    """What events are about is what it was when they were written, by the digests they carry."""
    plans = iter(log.plans)
    epochs = {(epoch.episode, epoch.epoch): epoch for epoch in log.epochs}
    for where, _, event in _standing(log, *_ABOUT):
        body = body_of(event)
        if event.impression is not None:
            found = about.of_impression(event.kind, log.impressions[event.impression])
        elif event.kind == "made":
            found = about.about(log.study, log.made_at)
        elif event.kind == "planned":
            found = about.of_plan(next(plans))
        elif event.kind == "listed":
            found = about.of_list(log.epochs[body.week - 1])
        else:
            found = about.of_report(epochs.get((body.episode, body.epoch), _NO_EPOCH))
        if body.about not in ("", found):
            raise LogError(f"{where}: what was {event.kind} is not what it was then")


def _check_erased(log: StudyLog) -> None:
    """Only erasures rewrite events, and what stands there is what the last one has left."""
    last, _, body = log.erasures[-1] if log.erasures else (0, 0, Erased(what="everybody"))
    before = log.events[: last - 1] if body.stands else []
    if any(event.sealed for event in log.events[len(before) :]):
        raise LogError("events.csv: an event says that it was erased, and no erasure says so")
    if body.stands and body.stands != log_digest(before):
        raise LogError("events.csv: what stands in place of erased data is not what was written")


_STATUS = {"made": "running", "reopened": "running", "paused": "paused", "closed": "closed"}


def _check_times(log: StudyLog) -> None:
    """What was shown, answered, joined and paused is dated and stands as the log says."""
    times: dict[tuple[str, int | None], int] = {}
    joined: dict[str | None, int] = {}
    status = "running"
    for _, _, event in _rows(log):
        times[event.kind, event.impression] = event.at
        status = _STATUS.get(event.kind, status)
        if event.kind == "joined":
            joined[event.annotator] = event.at
    for place, shown in enumerate(log.impressions):
        for kind, at in (("shown", shown.shown_at), ("answered", shown.answered_at)):
            if times.get((kind, place), at) != at:
                raise LogError(f"duels.csv row {place + 2}: {kind} at another time than in the log")
    for person in log.annotators:
        if joined.get(person.name, person.joined_at) != person.joined_at:
            raise LogError(f'study.json: "{person.name[:80]}" joined at another time in the log')
    if status != log.status:
        raise LogError(f"study.json: the study is {log.status}, by the log it is {status}")


def _check_answers_used(log: StudyLog) -> None:
    """Each plan says how many answers came before it."""
    said: Counter[tuple[str | None, int, int]] = Counter()  # by annotator and arms
    out: set[str | None] = set()
    forgotten: set[int] = set()
    plans = iter(enumerate(log.plans, start=2))
    for _, event in in_plan_order(log.events):
        if event.kind == "planned":
            number, plan = next(plans)
            counts = (
                n
                for (name, *arms), n in said.items()
                if forgotten.isdisjoint(arms) and name not in out
            )
            count = sum(counts)
            if plan.answers != count:
                raise LogError(
                    f"plans.csv row {number}: made with {plan.answers} answers, duels.csv has "
                    f"{count} from before it"
                )
        elif event.kind in SAID and event.outcome in CREDIT and event.impression is not None:
            shown = log.impressions[event.impression]
            times = 1 if event.kind == "answered" else -1
            left, _, right, _ = shown.sides
            said[event.annotator, left, right] += times * (shown.purpose in LEARNT)
        elif event.kind == "answers_added":
            for name, won, lost, _ in rows_in(body_of(event).answers):
                said[name, log.coming.arm_number(won), log.coming.arm_number(lost)] += 1
        elif event.kind == "erased":
            body: Erased = body_of(event)
            if body.what == "person" and body.answers:
                forgotten.add(log.coming.arm_number(body.name))
        elif event.kind in EXCLUSIONS:
            out ^= {event.annotator}
