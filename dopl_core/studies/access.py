"""Access: keys and sessions, invite links, and the browsers of participants.

Only hashes of keys and tokens are stored. A browser sends the owner's key once, or its user signs
in, and gets a session: a random token that it keeps instead. Sessions expire after some days; a new
key ends all of them. A member's session also ends when no claim of theirs gives a role any more.

`guard` puts the gate before the service calls: it asks roles.py whether somebody may do this, and
has it recorded. This is the only place where roles are checked.

A link may be shared by the participants of a panel, each with an id. The browser that first uses an
id keeps it: a random token in a cookie, of which the hash is stored.
"""

import functools
import hashlib
import inspect
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dopl_core.studies.audit import note, recorded, refuse, who_acts
from dopl_core.studies.members import claims_in_use, find_roles, usable_claims
from dopl_core.studies.model.actors import ALL_STUDIES, Actor, Role, everywhere
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.model.names import OWNER, check_person, looks_like, participant_name
from dopl_core.studies.roles import CALLS, Call
from dopl_core.studies.store import tables
from dopl_core.studies.store.audit_entry import RECORD, make
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import read_study, study_of_impression, study_row
from dopl_core.wording import _

Opens = Literal["duels", "list"]

SESSION_SECONDS = 7 * 24 * 3600

_OWNERS_KEY = "owner"
_MOST_SESSIONS = 50  # of one person; a new session beyond these ends the oldest
_keys, _invites, _sessions = tables.keys.c, tables.invites.c, tables.sessions.c
_seats, _people = tables.seats.c, tables.annotators.c

# Prepared once: these run at every click and every page view.
_LINK = sa.select(_invites.study, _invites.annotator, _invites.made_at, _invites.revoked_at).where(
    _invites.opens == sa.bindparam("opens")
)
_BY_TOKEN = _LINK.where(_invites.token_hash == sa.bindparam("token"), _invites.revoked_at.is_(None))
_KEY_HASH = sa.select(_keys.key_hash).where(_keys.name == _OWNERS_KEY).scalar_subquery()
_SESSION = sa.select(_sessions.until, _sessions.who, _sessions.claims).where(
    _sessions.token_hash == sa.bindparam("token"),
    _sessions.host.in_([sa.bindparam("host"), ""]),  # none in sessions begun before schema 11
    _sessions.key_hash == sa.func.coalesce(_KEY_HASH, ""),
)
_SEAT = sa.select(_seats.browser_hash).where(
    _seats.study == sa.bindparam("study"),
    _seats.link == sa.bindparam("link"),
    _seats.participant == sa.bindparam("participant"),
)


@dataclass(frozen=True)
class Invite:
    """One person's link to one study: its duels or its list. Times are milliseconds since 1970."""

    study: str
    annotator: str
    made_at: int
    revoked_at: int | None


def make_owner_key(store: Store) -> str:
    """Make a new owner key, to be shown once. The previous key and its sessions become invalid.

    If several processes make a key at the same time, exactly one of the keys is valid.
    """
    key = secrets.token_urlsafe(24)
    with store.write() as connection:
        new = _new_key(store, key)
        again = {"key_hash": new.excluded.key_hash, "made_at": new.excluded.made_at}
        connection.execute(new.on_conflict_do_update(index_elements=[_keys.name], set_=again))
        connection.execute(sa.delete(tables.sessions).where(_sessions.key_hash != _hash(key)))
    return key


def first_owner_key(store: Store) -> str | None:
    """Make the first owner key, to be shown once; None if a key exists already."""
    key = secrets.token_urlsafe(24)
    with store.write() as connection:
        new = _new_key(store, key).on_conflict_do_nothing().returning(_keys.name)
        made = connection.execute(new).scalar()
    return key if made else None


def has_owner_key(store: Store) -> bool:
    """Whether an owner key exists."""
    with store.read() as connection:
        return connection.execute(sa.select(_keys.name)).first() is not None


def is_owner(store: Store, key: str) -> bool:
    """Whether this is the present owner key."""
    with store.read() as connection:
        query = sa.select(_keys.key_hash).where(_keys.name == _OWNERS_KEY)
        kept = connection.execute(query).scalar()
    return kept is not None and secrets.compare_digest(kept, _hash(key))


def begin_session(store: Store, key: str, host: str) -> str | None:
    """Start a session and return its token; None if the key is wrong.

    host: the app's name and port in the browser's address; the session is valid only there
    """
    if not is_owner(store, key):
        note(store, ALL_STUDIES, "Somebody", "sign-in", "wrong key", refused=True)
        return None
    return _new_session(store, host, _hash(key))


def begin_member_session(
    store: Store, name: str, claims: Mapping[str, Any], host: str
) -> str | None:
    """Start a session of somebody who signed in and return its token; None if they have no role.

    name: who they are, for the audit trail;  claims: what the provider says of them, such as email
    host: as of begin_session
    """
    with store.read() as connection:
        usable = claims_in_use(connection, usable_claims(claims))
        roles = find_roles(connection, usable)
        key_hash = connection.execute(sa.select(_KEY_HASH)).scalar() or ""
    name = name.strip()
    if looks_like(name) == looks_like(OWNER):
        name = f"{name} (member)"  # not to be taken for the owner
    if not roles or not name:
        note(store, ALL_STUDIES, name or "Somebody", "sign-in", "no role", refused=True)
        return None
    return _new_session(store, host, key_hash, name, json.dumps(usable))


def _new_session(store: Store, host: str, key_hash: str, who: str = "", claims: str = "{}") -> str:
    token, now = secrets.token_urlsafe(24), store.now()
    own, current = _sessions.who == who, _sessions.until > now
    with store.write() as connection:
        query = sa.select(_sessions.token_hash).order_by(_sessions.until.desc())
        kept = connection.execute(query.where(own, current)).scalars().all()
        over = sa.and_(own, _sessions.token_hash.not_in(kept[: _MOST_SESSIONS - 1]))
        connection.execute(sa.delete(tables.sessions).where(sa.or_(over, ~current)))
        row = {
            "token_hash": _hash(token),
            "key_hash": key_hash,
            "host": host,
            "until": now + 1000 * SESSION_SECONDS,
            "who": who,
            "claims": claims,
        }
        connection.execute(sa.insert(tables.sessions), row)
        by = f"{who} (signed in)" if who else f"{OWNER} (key)"
        connection.execute(RECORD, make(now, ALL_STUDIES, by, "sign-in"))
    return token


def session_actor(store: Store, token: str, host: str) -> Actor | None:
    """Who has this session, with their present roles; None if it has ended or they have none."""
    with store.read() as connection:
        values = {"token": _hash(token), "host": host}
        session = connection.execute(_SESSION, values).one_or_none()
        if session is None or session.until <= store.now():
            return None
        if not session.who:
            return everywhere(OWNER, "key")
        roles = find_roles(connection, json.loads(session.claims))
    return Actor(session.who, "signed in", roles) if roles else None


def end_session(store: Store, token: str) -> None:
    """Sign out: the session of this token ends in every tab."""
    with store.write() as connection:
        own = _sessions.token_hash == _hash(token)
        connection.execute(sa.delete(tables.sessions).where(own))


def has_session(store: Store, token: str, host: str) -> bool:
    """Whether this token is a session of the present key, begun at this host and not expired."""
    actor = session_actor(store, token, host)
    return actor is not None and actor.came_by == "key"


def invite(store: Store, study: str, annotator: str, opens: Opens = "duels") -> str:
    """Make a token for one person and one study, to be shown once; it replaces their previous one.

    opens: "duels" lets them answer, "list" lets them read the list and nothing else
    """
    annotator = check_person(annotator)
    if looks_like(annotator) == looks_like(OWNER):
        raise StudyError(
            f'"{annotator}" is reserved for the owner\'s own answers; use another name'
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
        connection.execute(sa.insert(tables.invites), row)
    return token


def revoke(store: Store, study: str, annotator: str, opens: Opens = "duels") -> bool:
    """Revoke a person's link; returns whether there was one. Their answers stay."""
    with store.write() as connection:
        study_row(connection, study, lock=True)
        return connection.execute(_revoke(store, study, annotator.strip(), opens)).rowcount > 0


def find_invite(store: Store, token: str, opens: Opens = "duels") -> Invite | None:
    """The invite of a token; None if it is unknown, revoked, or opens something else."""
    with store.read() as connection:
        values = {"token": _hash(token), "opens": opens}
        row = connection.execute(_BY_TOKEN, values).one_or_none()
    return None if row is None else Invite(*row)


def refuse_link(store: Store, token: str, opens: Opens) -> None:
    """Record that somebody came with a link that is unknown or revoked."""
    query = sa.select(_invites.study).where(_invites.token_hash == _hash(token))
    with store.read() as connection:
        study = connection.execute(query).scalar()
    about = "link to comparisons" if opens == "duels" else "link to the list"
    why = "unknown" if study is None else "revoked"
    note(store, study or ALL_STUDIES, "Somebody (link)", "link", f"{about}: {why}", refused=True)


def refuse_page(store: Store, study: str) -> None:
    """Record that somebody opened a page that their role does not open."""
    if store.actor is not None:
        note(store, study, who_acts(store.actor), "page", refused=True)


def invites(store: Store, study: str, opens: Opens = "duels") -> list[Invite]:
    """All invites of a study, revoked ones included, oldest first."""
    query = _LINK.where(_invites.study == study).order_by(_invites.made_at, _invites.annotator)
    with store.read() as connection:
        study_row(connection, study)
        return [Invite(*row) for row in connection.execute(query, {"opens": opens})]


# --- participants


def check_without_id(store: Store, link: Invite) -> None:
    """Refuse a visitor without an id if the link is a panel's: nobody can tell them apart.

    It is a panel's if the study has a completion code, or if participants came by it, unless the
    colleague whose link it is has answered.
    """
    check_person(link.annotator)
    own, participants = _people.name == link.annotator, _people.link == link.annotator
    with read_study(store, link.study) as reader:
        query = sa.select(_people.link, _people.answers).where(_people.study == link.study)
        came = reader.connection.execute(query.where(sa.or_(own, participants))).all()
        is_panel = bool(reader.config.completion_code) or any(one.link for one in came)
    if is_panel and not any(one.link is None and one.answers for one in came):
        raise StudyError(_("This link has no participant id"))


def take_seat(store: Store, link: Invite, participant: str, browser: str) -> bool:
    """Whether a browser may be this participant; the first that asks for an id gets it.

    browser: the random token that it keeps
    """
    participant_name(link.annotator, participant)  # refuses ids that cannot be used
    if not browser:
        raise StudyError("the browser did not keep its cookie")
    if _seated(store, link, participant) is None:
        row = _seat(link, participant) | {"taken_at": store.now()}
        row["browser_hash"] = _browser_hash(link, participant, browser)
        insert = sqlite.insert if store.is_sqlite else postgresql.insert
        with store.write() as connection:
            study_row(connection, link.study, lock=True)
            connection.execute(insert(tables.seats).values(row).on_conflict_do_nothing())
    return has_seat(store, link, participant, browser)


def has_seat(store: Store, link: Invite, participant: str, browser: str) -> bool:
    """Whether this browser is the one that took the participant's id."""
    known = _seated(store, link, participant)
    hashed = _browser_hash(link, participant, browser)
    return known is not None and secrets.compare_digest(known, hashed)


def release_seat(store: Store, study: str, link: str, participant: str) -> bool:
    """Let another browser take a participant's id; returns whether one had it."""
    seat = sa.and_(_seats.study == study, _seats.link == link, _seats.participant == participant)
    with store.write() as connection:
        study_row(connection, study, lock=True)
        return connection.execute(sa.delete(tables.seats).where(seat)).rowcount > 0


def _seated(store: Store, link: Invite, participant: str) -> str | None:
    with store.read() as connection:
        known: str | None = connection.execute(_SEAT, _seat(link, participant)).scalar()
    return known


def _seat(link: Invite, participant: str) -> dict[str, str | int]:
    return {"study": link.study, "link": link.annotator, "participant": participant}


def _browser_hash(link: Invite, participant: str, browser: str) -> str:
    # With the seat in it: rows of one browser cannot be told to be of one browser.
    return _hash("\n".join((browser, link.study, link.annotator, participant)))


def _revoke(store: Store, study: str, annotator: str, opens: Opens) -> sa.Update:
    return (
        sa.update(tables.invites)
        .where(_invites.study == study, _invites.annotator == annotator, _invites.opens == opens)
        .where(_invites.revoked_at.is_(None))
        .values(revoked_at=store.now())
    )


def _new_key(store: Store, key: str) -> sqlite.Insert | postgresql.Insert:
    row = {"name": _OWNERS_KEY, "key_hash": _hash(key), "made_at": store.now()}
    insert = sqlite.insert if store.is_sqlite else postgresql.insert
    return insert(tables.keys).values(row)


def _hash(secret: str) -> str:
    # Tokens are long and random, so a plain hash cannot be reversed by guessing.
    return hashlib.sha256(secret.encode()).hexdigest()


# --- the gate


_NO_ROLES: frozenset[Role] = frozenset()


def guard(module: dict[str, Any], prefix: str = "") -> None:
    """Put the gate before all service calls of a module, as roles.py says.

    module: its names;  prefix: of its calls in the table, "access" for access.invite
    """
    for name, row in CALLS.items():
        of, _, call = name.rpartition(".")
        if of == prefix and row.scope != "open" and not hasattr(module[call], "is_guarded"):
            module[call] = _gated(module[call], row)


def _gated(do: Callable[..., Any], row: Call) -> Callable[..., Any]:
    """A service call that is refused to those whose role does not allow it."""
    signature = inspect.signature(do)

    @functools.wraps(do)
    def call(store: Store, *args: Any, **options: Any) -> Any:
        actor = store.actor
        if actor is None:
            return do(store, *args, **options)
        study = ALL_STUDIES
        if row.scope == "mine":
            found = do(store, *args, **options)
            return [one for one in found if row.may & actor.roles_in(one.id)]
        if row.scope != "all":
            study = args[0] if args else options[row.scope]
            if row.scope == "impression":
                study = store.shown_in.get(study) or study_of_impression(store, study)
        roles = actor.roles.get(study, _NO_ROLES) | actor.roles.get(ALL_STUDIES, _NO_ROLES)
        allowed = roles & row.may
        if row.own and allowed == {"annotator"}:
            asked = args[1] if len(args) > 1 else options.get("annotator")
            allowed = allowed if asked == actor.name else _NO_ROLES
        if not allowed:
            refuse(store, actor, study, row, do.__name__)
        if not (row.act or row.look) or allowed == {"annotator"}:
            return do(store, *args, **options)
        given = signature.bind(store, *args, **options)
        given.apply_defaults()
        return recorded(do, given, row, actor, study)

    call.is_guarded = True  # type: ignore[attr-defined]
    return call


guard(globals(), "access")
