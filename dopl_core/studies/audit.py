"""The audit trail: who looked at what, changed what, or was refused, and when; never the data.

What changes something is recorded in its own transaction. Looks and refusals are a small
transaction of their own, before the data are given out; the same one again within some minutes is
not recorded again, because pages draw themselves anew at every click.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import BoundArguments
from typing import Any, NoReturn

import sqlalchemy as sa

from dopl_core.studies.exchange.bundle_csv import iso
from dopl_core.studies.model.actors import ALL_STUDIES, ROLES, Actor, RefusedError
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.roles import Call
from dopl_core.studies.store import tables
from dopl_core.studies.store.audit_entry import RECORD, make, to_record
from dopl_core.studies.store.database import Store

AUDIT_COLUMNS = ("time", "study", "who", "act", "about", "refused")
DEFAULT_DAYS = 3 * 365

AGAIN_SECONDS = 600.0  # the same look within these is one look
_MOST_NOTED = 10_000  # looks that a process remembers
_MOST_DAYS = 100 * 365
_DAY = 24 * 3600 * 1000
_KEPT = "time to keep the audit trail"
_audit = tables.audit.c


@dataclass(frozen=True)
class Act:
    """One row of the audit trail; at: milliseconds since 1970."""

    id: int
    at: int
    study: str
    who: str
    act: str
    about: str
    refused: bool


def who_acts(actor: Actor) -> str:
    """A person and how they came in; annotators with a link are not named here."""
    is_annotator = actor.came_by == "link" and set().union(*actor.roles.values()) == {"annotator"}
    name = "An annotator" if is_annotator else actor.name
    return f"{name} ({actor.came_by})"


def note(
    store: Store, study: str, who: str, act: str, about: str = "", refused: bool = False
) -> None:
    """Record a look or a refusal, unless the same was recorded some minutes ago."""
    what, now = (study, who, act, about, refused), time.monotonic()
    if what in store.noted and now - store.noted[what] < AGAIN_SECONDS:
        return
    with store.write() as connection:
        connection.execute(RECORD, make(store.now(), *what))
    if len(store.noted) >= _MOST_NOTED:
        store.noted.clear()
    store.noted[what] = now


def recorded(
    do: Callable[..., Any], given: BoundArguments, row: Call, actor: Actor, study: str
) -> Any:
    """Make a service call with its entry in the audit trail; given: its arguments."""
    store: Store = given.arguments["store"]
    if not row.act:
        result = do(*given.args, **given.kwargs)
        note(store, study, who_acts(actor), row.look, row.about(given.arguments, result))
        return result
    about = row.about(given.arguments, None)
    waiting = to_record.set(make(store.now(), study, who_acts(actor), row.act, about))
    try:
        return do(*given.args, **given.kwargs)
    finally:
        to_record.reset(waiting)


def refuse(store: Store, actor: Actor, study: str, row: Call, name: str) -> NoReturn:
    """Refuse a service call to somebody whose role does not allow it; name: of the call."""
    note(store, study, who_acts(actor), row.act or row.look or name, refused=True)
    where = "all studies" if study == ALL_STUDIES else "this study"
    needed = " or ".join(role for role in ROLES if role in row.may)
    raise RefusedError(f"This needs the role {needed} in {where}. Ask the owner for it.")


def download(store: Store, study: str, what: str) -> None:
    """Record that a file is downloaded; what: the name of the file."""
    with store.write():
        pass  # the gate's record is what is written


def print_list(store: Store, study: str, week: int) -> None:
    """Record that the list of a week is printed."""
    with store.write():
        pass  # as above


def read_audit(store: Store, study: str, most: int | None = None) -> list[Act]:
    """What is recorded of a study, or of everything (ALL_STUDIES), the newest first."""
    query = sa.select(*_audit).order_by(_audit.id.desc()).limit(most)
    if study != ALL_STUDIES:
        query = query.where(_audit.study == study)
    with store.read() as connection:
        return [Act(**row._mapping) for row in connection.execute(query)]


def audit_rows(found: Iterable[Act]) -> list[tuple[str, str, str, str, str, bool]]:
    """The cells of AUDIT_COLUMNS for each act; times are UTC, ISO 8601."""
    return [
        (iso(one.at) or "", one.study, one.who, one.act, one.about, one.refused) for one in found
    ]


def audit_days(store: Store) -> int:
    """For how many days the audit trail is kept."""
    query = sa.select(_audit.about).where(_audit.act == _KEPT).order_by(_audit.id.desc())
    with store.read() as connection:
        said: str | None = connection.execute(query.limit(1)).scalar()
    return DEFAULT_DAYS if said is None else int(said.split()[0])


def keep_audit(store: Store, days: int) -> None:
    """Set for how many days the audit trail is kept, which is itself recorded in it."""
    if not 1 <= days <= _MOST_DAYS:
        raise StudyError(f"the audit trail is kept for 1 to {_MOST_DAYS} days, not {days}")
    who = "Owner" if store.actor is None else who_acts(store.actor)
    with store.write() as connection:
        entry = make(store.now(), ALL_STUDIES, who, _KEPT, f"{days} days")
        connection.execute(RECORD, entry)


def forget_audit(store: Store, now: int | None = None) -> int:
    """Delete what is older than the owner keeps it; how many rows these were.

    now: milliseconds since 1970. The latest time to keep is never deleted.
    """
    before = (store.now() if now is None else now) - audit_days(store) * _DAY
    newest = sa.select(sa.func.max(_audit.id)).where(_audit.act == _KEPT).scalar_subquery()
    old = sa.and_(_audit.at < before, _audit.id != sa.func.coalesce(newest, 0))
    with store.write() as connection:
        return connection.execute(sa.delete(tables.audit).where(old)).rowcount
