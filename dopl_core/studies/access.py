"""Who may come in: the owner by a key, each annotator by an invite; only their hashes are kept."""

import hashlib
import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from dopl_core.studies import schema
from dopl_core.studies.config import check_name
from dopl_core.studies.reading import study_row
from dopl_core.studies.store import Store

_OWNER = "owner"
_keys, _invites = schema.keys.c, schema.invites.c


@dataclass(frozen=True)
class Invite:
    """Somebody's link to one study; times in milliseconds since 1970."""

    study: str
    annotator: str
    made_at: int
    revoked_at: int | None


def make_owner_key(store: Store) -> str:
    """A new key, to be shown once; the one before opens nothing any more."""
    key = secrets.token_urlsafe(24)
    with store.write() as connection:
        connection.execute(sa.delete(schema.keys).where(_keys.name == _OWNER))
        row = {"name": _OWNER, "key_hash": _hash(key), "made_at": store.now()}
        connection.execute(sa.insert(schema.keys), row)
    return key


def has_owner_key(store: Store) -> bool:
    """Whether a key was ever made."""
    with store.read() as connection:
        return connection.execute(sa.select(_keys.name)).first() is not None


def is_owner(store: Store, key: str) -> bool:
    """Whether this is the owner's key."""
    with store.read() as connection:
        query = sa.select(_keys.key_hash).where(_keys.name == _OWNER)
        kept = connection.execute(query).scalar()
    return kept is not None and secrets.compare_digest(kept, _hash(key))


def invite(store: Store, study: str, annotator: str) -> str:
    """A token for one person and one study, to be shown once; it replaces any they had."""
    annotator = check_name(annotator)
    token = secrets.token_urlsafe(16)
    with store.write() as connection:
        study_row(connection, study, lock=True)
        connection.execute(_revoke(store, study, annotator))
        row = {
            "token_hash": _hash(token),
            "study": study,
            "annotator": annotator,
            "made_at": store.now(),
        }
        connection.execute(sa.insert(schema.invites), row)
    return token


def revoke(store: Store, study: str, annotator: str) -> bool:
    """Make somebody's link open nothing; whether there was one. Their answers stay."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        return connection.execute(_revoke(store, study, annotator.strip())).rowcount > 0


def who(store: Store, token: str) -> Invite | None:
    """Whose link this is; None if it is nobody's, or was revoked."""
    with store.read() as connection:
        query = sa.select(
            _invites.study, _invites.annotator, _invites.made_at, _invites.revoked_at
        ).where(_invites.token_hash == _hash(token), _invites.revoked_at.is_(None))
        row = connection.execute(query).one_or_none()
    return None if row is None else Invite(*row)


def invites(store: Store, study: str) -> list[Invite]:
    """The invites of a study, revoked ones too, oldest first."""
    with store.read() as connection:
        study_row(connection, study)
        query = sa.select(
            _invites.study, _invites.annotator, _invites.made_at, _invites.revoked_at
        ).where(_invites.study == study)
        rows = connection.execute(query.order_by(_invites.made_at, _invites.annotator))
        return [Invite(*row) for row in rows]


def _revoke(store: Store, study: str, annotator: str) -> sa.Update:
    return (
        sa.update(schema.invites)
        .where(_invites.study == study, _invites.annotator == annotator)
        .where(_invites.revoked_at.is_(None))
        .values(revoked_at=store.now())
    )


def _hash(secret: str) -> str:
    # Tokens are long and random: a plain hash cannot be searched.
    return hashlib.sha256(secret.encode()).hexdigest()
