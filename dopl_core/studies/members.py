"""Members: which claims of people who sign in give which role in which study.

A provider says of somebody who signs in: email ann@clinic.example, groups [sleep, nurses]. A member
is one such claim and the role that it gives. Members are looked up at every click, so a change
holds at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from dopl_core.studies.model.actors import ALL_STUDIES, ROLES, Role
from dopl_core.studies.model.errors import StudyError
from dopl_core.studies.store import tables
from dopl_core.studies.store.database import Store
from dopl_core.studies.store.study_reader import study_row

_LONGEST = 200  # characters of a claim's name or value
_members = tables.members.c
_ROLES = sa.select(_members.study, _members.claim, _members.value, _members.role).where(
    _members.value.in_(sa.bindparam("values", expanding=True))
)

Claims = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Member:
    """A claim, such as email or groups, the value that it must have, and the role that it gives.

    study: ALL_STUDIES if it holds in every study;  added_at: milliseconds since 1970
    """

    study: str
    claim: str
    value: str
    role: Role
    added_at: int


def add_member(store: Store, study: str, value: str, role: Role, claim: str = "email") -> None:
    """Give a role to everybody who signs in with this claim; it replaces the role from before.

    study: its id, or ALL_STUDIES;  value: an address, the name of a group, ...
    """
    if role not in ROLES:
        raise StudyError(f'"{role}" is not one of {", ".join(ROLES)}')
    claim, value = _checked(claim, value)
    row = {"study": study, "claim": claim, "value": value, "role": role, "added_at": store.now()}
    insert = (sqlite.insert if store.is_sqlite else postgresql.insert)(tables.members).values(row)
    again = {"role": insert.excluded.role, "added_at": insert.excluded.added_at}
    index = [_members.study, _members.claim, _members.value]
    with store.write() as connection:
        _check_study(connection, study)
        connection.execute(insert.on_conflict_do_update(index_elements=index, set_=again))


def remove_member(store: Store, study: str, value: str, claim: str = "email") -> bool:
    """Take a role away; returns whether there was one. It ends every tab at the next click."""
    claim, value = _checked(claim, value)
    row = sa.and_(_members.study == study, _members.claim == claim, _members.value == value)
    with store.write() as connection:
        _check_study(connection, study)
        return connection.execute(sa.delete(tables.members).where(row)).rowcount > 0


def list_members(store: Store, study: str) -> list[Member]:
    """The members of a study by claim and value; those of all studies have their own list."""
    query = sa.select(*_members).where(_members.study == study)
    with store.read() as connection:
        _check_study(connection, study)
        rows = connection.execute(query.order_by(_members.claim, _members.value))
        return [Member(**row._mapping) for row in rows]


def usable_claims(claims: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Claims whose value is a printable text or several; without an address not verified."""
    found = {}
    for claim, value in claims.items():
        if claim == "email" and str(claims.get("email_verified", True)).lower() != "true":
            continue
        values = [value] if isinstance(value, str) else value
        if isinstance(values, list | tuple | set) and all(isinstance(one, str) for one in values):
            found[claim] = tuple(_value(claim, one) for one in values if one.isprintable())
    return found


def claims_in_use(connection: Connection, claims: Claims) -> dict[str, tuple[str, ...]]:
    """Claims by which some member is known: no others are kept of somebody who signs in."""
    used = set(connection.execute(sa.select(_members.claim).distinct()).scalars())
    return {claim: values for claim, values in claims.items() if claim in used}


def find_roles(connection: Connection, claims: Claims) -> dict[str, frozenset[Role]]:
    """The roles that usable claims give, by study; empty for somebody who is no member."""
    given = {(claim, value) for claim, values in claims.items() for value in values}
    rows = connection.execute(_ROLES, {"values": [value for _, value in given]})
    roles: dict[str, frozenset[Role]] = {}
    for study, claim, value, role in rows:
        if (claim, value) in given:
            roles[study] = roles.get(study, frozenset()) | {role}
    return roles


def _check_study(connection: Connection, study: str) -> None:
    if study != ALL_STUDIES:
        study_row(connection, study)


def _checked(claim: str, value: str) -> tuple[str, str]:
    claim = claim.strip()
    value = _value(claim, value)
    for what, text in (("claim", claim), ("value of the claim", value)):
        if not 0 < len(text) <= _LONGEST or not text.isprintable():
            raise StudyError(f"the {what} has 1 to {_LONGEST} printable characters")
    if claim == "email" and "@" not in value:
        raise StudyError(f'"{value}" is not an email address')
    return claim, value


def _value(claim: str, value: str) -> str:
    """A value as it is compared: addresses regardless of case."""
    value = value.strip()
    return value.casefold() if claim == "email" else value
