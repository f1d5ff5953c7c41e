"""Links by which a colleague reads a study's list and nothing else; only their hashes are kept."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dopl_core.studies import schema
from dopl_core.studies.config import check_name
from dopl_core.studies.reading import study_row
from dopl_core.studies.store import Store

_readers = schema.readers.c


@dataclass(frozen=True)
class Reader:
    """Somebody's link to one study's list; times in milliseconds since 1970."""

    study: str
    name: str
    made_at: int
    revoked_at: int | None


def let_read(store: Store, study: str, name: str) -> str:
    """A token for one person and one study's list, to be shown once; it replaces any they had."""
    name = check_name(name)
    token = secrets.token_urlsafe(16)
    with store.write() as connection:
        study_row(connection, study, lock=True)
        connection.execute(_revoke(store, study, name))
        row = {
            "token_hash": _hash(token),
            "study": study,
            "name": name,
            "made_at": store.now(),
        }
        connection.execute(sa.insert(schema.readers), row)
    return token


def revoke(store: Store, study: str, name: str) -> bool:
    """Make somebody's link open nothing; whether there was one."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        return connection.execute(_revoke(store, study, name.strip())).rowcount > 0


def who_reads(store: Store, token: str) -> Reader | None:
    """Whose link this is; None if it is nobody's, or was revoked."""
    here = sa.and_(_readers.token_hash == _hash(token), _readers.revoked_at.is_(None))
    with store.read() as connection:
        row = connection.execute(_columns().where(here)).one_or_none()
    return None if row is None else Reader(*row)


def readers(store: Store, study: str) -> list[Reader]:
    """The links of a study, revoked ones too, oldest first."""
    query = _columns().where(_readers.study == study).order_by(_readers.made_at, _readers.name)
    with store.read() as connection:
        return [Reader(*row) for row in connection.execute(query)]


def _columns() -> sa.Select[Any]:
    return sa.select(_readers.study, _readers.name, _readers.made_at, _readers.revoked_at)


def _revoke(store: Store, study: str, name: str) -> sa.Update:
    return (
        sa.update(schema.readers)
        .where(_readers.study == study, _readers.name == name, _readers.revoked_at.is_(None))
        .values(revoked_at=store.now())
    )


def _hash(token: str) -> str:
    # Tokens are long and random: a plain hash cannot be searched.
    return hashlib.sha256(token.encode()).hexdigest()
