"""Who may come in: the owner by a key, annotators and colleagues by links; hashes are kept.

The key is shown to the server once, for a session: a random token that a browser keeps in its
place. Sessions end by themselves after some days, and all at once when a new key is made.
"""

import hashlib
import secrets
import unicodedata
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dopl_core.studies import schema
from dopl_core.studies.config import check_name
from dopl_core.studies.reading import study_row
from dopl_core.studies.store import Store, StudyError

Opens = Literal["duels", "list"]

OWNER = "Owner"  # the name under which the owner's own answers are kept
SESSION_SECONDS = 7 * 24 * 3600

_OWNERS_KEY = "owner"
_MOST_SESSIONS = 50  # the oldest end when more are begun
_keys, _invites, _sessions = schema.keys.c, schema.invites.c, schema.sessions.c

# Asked at every click and every look: made once.
_LINK = sa.select(_invites.study, _invites.annotator, _invites.made_at, _invites.revoked_at).where(
    _invites.opens == sa.bindparam("opens")
)
_WHO = _LINK.where(_invites.token_hash == sa.bindparam("token"), _invites.revoked_at.is_(None))
_SESSION = sa.select(_sessions.until).where(
    _sessions.token_hash == sa.bindparam("token"),
    _sessions.key_hash == _keys.key_hash,
    _keys.name == _OWNERS_KEY,
)


@dataclass(frozen=True)
class Invite:
    """Somebody's link to one study, to its duels or its list; times in milliseconds since 1970."""

    study: str
    annotator: str
    made_at: int
    revoked_at: int | None


def make_owner_key(store: Store) -> str:
    """A new key, to be shown once; the one before and its sessions open nothing any more.

    Of several that are made at once one is valid.
    """
    key = secrets.token_urlsafe(24)
    with store.write() as connection:
        new = _new_key(store, key)
        again = {"key_hash": new.excluded.key_hash, "made_at": new.excluded.made_at}
        connection.execute(new.on_conflict_do_update(index_elements=[_keys.name], set_=again))
        connection.execute(sa.delete(schema.sessions).where(_sessions.key_hash != _hash(key)))
    return key


def first_owner_key(store: Store) -> str | None:
    """A key, to be shown once, if none was ever made; of several who ask at once one gets it."""
    key = secrets.token_urlsafe(24)
    with store.write() as connection:
        new = _new_key(store, key).on_conflict_do_nothing().returning(_keys.name)
        made = connection.execute(new).scalar()
    return key if made else None


def has_owner_key(store: Store) -> bool:
    """Whether a key was ever made."""
    with store.read() as connection:
        return connection.execute(sa.select(_keys.name)).first() is not None


def is_owner(store: Store, key: str) -> bool:
    """Whether this is the owner's key."""
    with store.read() as connection:
        query = sa.select(_keys.key_hash).where(_keys.name == _OWNERS_KEY)
        kept = connection.execute(query).scalar()
    return kept is not None and secrets.compare_digest(kept, _hash(key))


def begin_session(store: Store, key: str) -> str | None:
    """A token for the browser of whoever has the key; None for anybody else."""
    if not is_owner(store, key):
        return None
    token, now = secrets.token_urlsafe(24), store.now()
    with store.write() as connection:
        query = sa.select(_sessions.token_hash).order_by(_sessions.until.desc())
        kept = connection.execute(query.where(_sessions.until > now)).scalars().all()
        over = _sessions.token_hash.not_in(kept[: _MOST_SESSIONS - 1])
        connection.execute(sa.delete(schema.sessions).where(over))
        row = {
            "token_hash": _hash(token),
            "key_hash": _hash(key),
            "until": now + 1000 * SESSION_SECONDS,
        }
        connection.execute(sa.insert(schema.sessions), row)
    return token


def has_session(store: Store, token: str) -> bool:
    """Whether this is a session of the owner: not over, and of the present key."""
    with store.read() as connection:
        until = connection.execute(_SESSION, {"token": _hash(token)}).scalar()
    return until is not None and until > store.now()


def invite(store: Store, study: str, annotator: str, opens: Opens = "duels") -> str:
    """A token for one person and one study, to be shown once; it replaces any they had.

    opens: the duels, to answer them, or the list, to read it and nothing else
    """
    annotator = check_name(annotator)
    if _looks_like(annotator) == _looks_like(OWNER):
        raise StudyError(
            f'"{annotator}" is the name of the owner\'s own answers: invite by another name'
        )
    token = secrets.token_urlsafe(16)
    with store.write() as connection:
        study_row(connection, study, lock=True)
        connection.execute(_revoke(store, study, annotator, opens))
        row = {
            "token_hash": _hash(token),
            "study": study,
            "annotator": annotator,
            "made_at": store.now(),
            "opens": opens,
        }
        connection.execute(sa.insert(schema.invites), row)
    return token


def revoke(store: Store, study: str, annotator: str, opens: Opens = "duels") -> bool:
    """Make somebody's link open nothing; whether there was one. Their answers stay."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        return connection.execute(_revoke(store, study, annotator.strip(), opens)).rowcount > 0


def who(store: Store, token: str, opens: Opens = "duels") -> Invite | None:
    """Whose link this is; None if it is nobody's, was revoked, or opens something else."""
    with store.read() as connection:
        values = {"token": _hash(token), "opens": opens}
        row = connection.execute(_WHO, values).one_or_none()
    return None if row is None else Invite(*row)


def invites(store: Store, study: str, opens: Opens = "duels") -> list[Invite]:
    """The links of a study, revoked ones too, oldest first."""
    query = _LINK.where(_invites.study == study).order_by(_invites.made_at, _invites.annotator)
    with store.read() as connection:
        study_row(connection, study)
        return [Invite(*row) for row in connection.execute(query, {"opens": opens})]


def _revoke(store: Store, study: str, annotator: str, opens: Opens) -> sa.Update:
    return (
        sa.update(schema.invites)
        .where(_invites.study == study, _invites.annotator == annotator, _invites.opens == opens)
        .where(_invites.revoked_at.is_(None))
        .values(revoked_at=store.now())
    )


def _new_key(store: Store, key: str) -> sqlite.Insert | postgresql.Insert:
    row = {"name": _OWNERS_KEY, "key_hash": _hash(key), "made_at": store.now()}
    insert = sqlite.insert if store.is_sqlite else postgresql.insert
    return insert(schema.keys).values(row)


def _looks_like(name: str) -> str:
    """A name without what the eye does not tell apart: case, width, blanks, invisible marks."""
    kept = (c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c)[0] in "LNPS")
    return "".join(kept).casefold()


def _hash(secret: str) -> str:
    # Tokens are long and random: a plain hash cannot be searched.
    return hashlib.sha256(secret.encode()).hexdigest()
