"""Erasing personal data from a study: of a person, of an annotator, or of everybody.

Names, ids, card facts, photos, flags, reasons and free text go; what the learner counted stays
under a pseudonym. Events are rewritten in place: their chain covers salted digests of what they
said, and the salts go. An event says what was erased, and what stands in its place.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from dopl_core.studies.collect import duels
from dopl_core.studies.exchange import names_removed
from dopl_core.studies.exchange.renaming import Names, arms_ever, renamed
from dopl_core.studies.model.config_changes import leaving
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.event_bodies import Erased
from dopl_core.studies.model.event_kinds import body_of
from dopl_core.studies.model.log_values import Event
from dopl_core.studies.model.names import ERASED, ERASED_ANNOTATOR, is_erased
from dopl_core.studies.model.study_log import StudyLog, log_digest
from dopl_core.studies.operate.drafts import Draft
from dopl_core.studies.operate.list_changes import free_places
from dopl_core.studies.operate.roster_changes import append_changes, withdraw_people
from dopl_core.studies.replay.learner_from_log import excluded, keep_plan
from dopl_core.studies.store import inserts, tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.log_reader import log_of
from dopl_core.studies.store.scrub import note_unscrubbed, scrub
from dopl_core.studies.store.time_limits import slowly
from dopl_core.studies.store.transaction import StudyTransaction, write_study

What = Literal["person", "annotator", "everybody"]


@dataclass(frozen=True)
class Erasure:
    """The receipt of an erasure.

    name: the pseudonym that stands for the person or the annotator now; "" for everybody
    at: milliseconds since 1970;  event: its number in the log;  events: rewritten
    answers: what the learner counted does not count any more
    scrubbed: the files of the database hold no old bytes any more
    on_server: the database is a server, which has a log and backups of its own
    """

    study: str
    what: What
    name: str
    at: int
    event: int
    events: int
    answers: bool
    scrubbed: bool
    on_server: bool


@slowly()
def erase_person(store: Store, study: str, person: str, *, answers: bool = False) -> Erasure:
    """Erase a person (an arm) by the owner's id; they leave the study and the open list.

    answers: answers about them and their moves leave the next plans too
    """
    with write_study(store, study) as tx:
        if tx.config.world != "observed":
            raise StudyError(f'study "{study}" has a simulated world: its people are nobody')
        arm = tx.next_config.arms[tx.next_config.arm_number(person)]
        if is_erased(person, arm.label):
            raise StudyError(f'"{person}" was erased already')
        if arm.present:
            _let_leave(tx, person)
        free_places(tx, [person])
        log = log_of(tx)
        known = [*(arm.id for arm in log.coming.arms), *_annotators_in(log)]
        name = _new_name(ERASED, known)
        names = _one(log, people={person: name})
        done = _rewrite(tx, log, renamed(log, names), names, Erased("person", name), answers)
    return _finish(store, done)


@slowly()
def erase_annotator(store: Store, study: str, annotator: str, *, answers: bool = False) -> Erasure:
    """Erase an annotator by name; their link ends.

    answers: their answers leave the next plans too
    """
    with write_study(store, study) as tx:
        log = log_of(tx)
        known = _annotators_in(log)
        if annotator not in known and not _has_link(tx, annotator):
            raise StudyError(f'nobody called "{annotator[:80]}" has come to study "{study}"')
        if annotator.startswith(ERASED_ANNOTATOR):
            raise StudyError(f'"{annotator[:80]}" was erased already')
        open_ones = sa.and_(_i.study == study, _i.annotator == annotator, _i.outcome.is_(None))
        held = sa.select(_i.id, _i.duel, _i.annotator, _d.purpose).join_from(
            tables.impressions, tables.duels, _i.duel == _d.id
        )
        duels.release(tx, held.where(open_ones))
        if answers and annotator in known and annotator not in excluded(tx.connection, study):
            tx.append("person_excluded", annotator=annotator)
        log = log_of(tx)
        name = _new_name(ERASED_ANNOTATOR, [*known, *(arm.id for arm in log.coming.arms)])
        names = _one(log, authors={annotator: name})
        done = _rewrite(tx, log, renamed(log, names), names, Erased("annotator", name), answers)
    return _finish(store, done)


def withdraw(store: Store, study: str, annotator: str, *, answers: bool = False) -> Erasure:
    """An annotator takes themselves out; answers: theirs count no longer."""
    return erase_annotator(store, study, annotator, answers=answers)


@slowly()
def erase_everybody(store: Store, study: str) -> Erasure:
    """Erase all personal data of a study and close it; an anonymous study that replays stays."""
    with write_study(store, study) as tx:
        if tx.row.status != "closed":
            tx.row.status = "closed"
            tx.append("closed")
        log = log_of(tx)
        names = names_removed.everybody(log)
        done = _rewrite(tx, log, renamed(log, names), names, Erased("everybody"), False)
    return _finish(store, done)


def _let_leave(tx: StudyTransaction, person: str) -> None:
    withdraw_people(tx, [person])
    try:
        append_changes(tx, leaving(tx.next_config, [person]))
    except StudyError as error:
        if tx.row.status != "closed":  # then nobody is listed any more
            raise StudyError(
                f'"{person[:80]}" cannot leave ({error}): change that in the settings first; '
                "nothing was changed"
            ) from None


def _finish(store: Store, done: Erasure) -> Erasure:
    """After the transaction: clear the files, and keep what can be computed again."""
    keep_plan(store, done.study)
    return replace(done, scrubbed=scrub(store))


# --- new names


def _one(
    log: StudyLog,
    people: Mapping[str, str] | None = None,
    authors: Mapping[str, str] | None = None,
) -> Names:
    """New names for some; everybody else keeps theirs.

    The column by which places are shared out stays, and so does the group if it is that.
    """
    people, authors = people or {}, authors or {}
    settings = [body_of(e).settings for e in log.events if e.kind == "settings_changed"]
    fair = {log.config.fair_column, *(one.get("fair_column", "") for one in settings)} - {""}
    groups = {arm.group for arm in arms_ever(log)}
    return Names(
        arms={arm.id: people.get(arm.id, arm.id) for arm in log.coming.arms},
        annotators={name: authors.get(name, name) for name in _annotators_in(log)},
        people=frozenset(people),
        authors=frozenset(authors),
        groups={group: group if "group" in fair else "all" for group in groups},
        keep=frozenset(fair),
    )


def _annotators_in(log: StudyLog) -> list[str]:
    named = (event.annotator for event in log.events if event.annotator)
    people = (person.name for person in log.annotators)
    return list(dict.fromkeys([*log.past_annotators, *named, *people]))


def _new_name(word: str, taken: Iterable[str]) -> str:
    known = set(taken)
    return next(name for n in range(1, len(known) + 2) if (name := f"{word}{n}") not in known)


def _has_link(tx: StudyTransaction, annotator: str) -> bool:
    v = tables.invites.c
    query = sa.select(v.study).where(v.study == tx.id, v.annotator == annotator)
    return tx.connection.execute(query).first() is not None


# --- the rows

_e, _i, _d, _a = tables.events.c, tables.impressions.c, tables.duels.c, tables.annotators.c


def _rewrite(
    tx: StudyTransaction, log: StudyLog, new: StudyLog, names: Names, body: Erased, answers: bool
) -> Erasure:
    """Write what differs, and the event that says so."""
    events = _rewrite_events(tx, log, new)
    _rewrite_config(tx, log, new, names)
    _rewrite_epochs(tx, log, new)
    _rewrite_annotators(tx, new, names)
    _rewrite_rest(tx, log, names)
    body.events, body.answers = len(events), answers
    body.stands = log_digest(events.get(seq, e) for seq, e in enumerate(log.events, start=1))
    tx.append("erased", body)
    note_unscrubbed(tx.connection, tx.now)
    on_server = not tx.store.is_sqlite
    what = (tx.id, body.what, body.name, tx.now, tx.row.seq, body.events)
    return Erasure(*what, answers, scrubbed=False, on_server=on_server)


def _rewrite_events(tx: StudyTransaction, log: StudyLog, new: StudyLog) -> dict[int, Event]:
    """The events that differ, by their number, as they are now."""
    changed: dict[int, Event] = {}
    pairs = zip(log.events, new.events, strict=True)
    differ = {seq: b for seq, (a, b) in enumerate(pairs, start=1) if a != b}
    query = sa.select(tables.events).where(_e.study == tx.id).order_by(_e.seq)
    for row in tx.connection.execute(query).mappings().all() if differ else ():
        if row["seq"] in differ:
            sealed = inserts.sealed(dict(row))
            changed[row["seq"]] = replace(differ[row["seq"]], salt=None, sealed=sealed)
    here = sa.and_(_e.study == tx.id, _e.seq == sa.bindparam("at_seq"))
    names = ("annotator", "body", "salt", "sealed")
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in names}
    rows = [
        {"at_seq": seq} | {f"new_{name}": getattr(event, name) for name in names}
        for seq, event in changed.items()
    ]
    if rows:
        tx.connection.execute(sa.update(tables.events).where(here).values(values), rows)
    return changed


def _rewrite_config(tx: StudyTransaction, log: StudyLog, new: StudyLog, names: Names) -> None:
    """The configuration, and the key by which all processes know it: they read it again."""
    pairs = zip(log.events, new.events, strict=True)
    settings = any(a != b for a, b in pairs if a.kind == "settings_changed")
    if not names.people and not settings and new.config_text == log.config_text:
        return
    s, c = tables.studies.c, tables.configs.c
    content = {"content": new.config_text}
    tx.connection.execute(sa.update(tables.configs).where(c.study == tx.id).values(content))
    tx.row.config_digest = secrets.token_hex(32)
    digest = {"config_digest": tx.row.config_digest}
    tx.connection.execute(sa.update(tables.studies).where(s.id == tx.id).values(digest))
    tx.__dict__.pop("changes", None)


def _rewrite_epochs(tx: StudyTransaction, log: StudyLog, new: StudyLog) -> None:
    p = tables.epochs.c
    for old, epoch in zip(log.epochs, new.epochs, strict=True):
        if old is not epoch:
            here = sa.and_(p.study == tx.id, p.episode == epoch.episode, p.epoch == epoch.epoch)
            row = inserts.epoch(tx.id, epoch)
            known = {name: row[name] for name in ("columns", "digest")}
            tx.connection.execute(sa.update(tables.epochs).where(here).values(known))


def _rewrite_annotators(tx: StudyTransaction, new: StudyLog, names: Names) -> None:
    """Rename annotators in two steps, as some may get the old name of others."""
    people = {person.name: person for person in new.annotators}
    new_names = {old: to for old, to in names.annotators.items() if old in names.authors}
    came = [(old, to) for old, to in new_names.items() if to in people]
    for step in (0, 1):
        for number, (old, to) in enumerate(came):
            between = f"{ERASED_ANNOTATOR}between-{number}"
            was, name = (old, between) if step == 0 else (between, to)
            panel = {one: getattr(people[to], one) or None for one in ("link", "participant")}
            agreed = people[to].consented or None
            row = panel | {"name": name, "code": None, "consented": agreed}
            mine = sa.and_(_a.study == tx.id, _a.name == was)
            tx.connection.execute(sa.update(tables.annotators).where(mine).values(row))
            shown = {"annotator": name, "participant": panel["participant"]}
            seen = sa.and_(_i.study == tx.id, _i.annotator == was)
            tx.connection.execute(sa.update(tables.impressions).where(seen).values(shown))


def _rewrite_rest(tx: StudyTransaction, log: StudyLog, names: Names) -> None:
    """What bundles do not have: photos, drafts, links, browsers of participants, the audit."""
    photos, invites, seats, audit = tables.photos, tables.invites, tables.seats, tables.audit
    whole = (photos, invites, seats, tables.drafts, tables.mappings)
    gone: list[tuple[sa.Table, Any]] = [(table, sa.true()) for table in whole]
    if not names.everybody:
        gone = [
            (photos, photos.c.arm.in_(names.people)),
            (invites, invites.c.annotator.in_(names.authors)),
        ]
        mine = [one for one in log.annotators if one.name in names.authors]
        gone += [
            (seats, sa.and_(seats.c.link == one.link, seats.c.participant == one.participant))
            for one in mine
        ]
        _rewrite_draft(tx, names)
    for table, which in gone:
        tx.connection.execute(sa.delete(table).where(table.c.study == tx.id, which))
    for name in names.authors:  # people with a link to the list are named there
        new = names.annotators.get(name, ERASED_ANNOTATOR.rstrip("-"))
        by_link = sa.and_(audit.c.study == tx.id, audit.c.who == f"{name} (link)")
        tx.connection.execute(sa.update(audit).where(by_link).values(who=f"{new} (link)"))


def _rewrite_draft(tx: StudyTransaction, names: Names) -> None:
    """The report that is being written, without the people who are erased."""
    kept = tables.drafts.c
    query = sa.select(kept.content).where(kept.study == tx.id)
    content = tx.connection.execute(query).scalar()
    if content is None:
        return
    draft = msgspec.json.decode(content, type=Draft)
    for part in (draft.states, draft.helped, draft.columns):
        for arm in names.people:
            part.pop(arm, None)
    text = msgspec.json.encode(draft).decode()
    here = sa.update(tables.drafts).where(kept.study == tx.id)
    tx.connection.execute(here.values(content=text))
