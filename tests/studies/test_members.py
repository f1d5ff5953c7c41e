"""Members: claims give roles, sessions of people who sign in follow them at every click."""

import pytest
from playing import Clock, cpap

from dopl_core import studies
from dopl_core.studies import Store, StudyError, access
from dopl_core.studies.members import add_member, list_members, remove_member
from dopl_core.studies.model.actors import ALL_STUDIES, ROLES

HOST = "clinic.example"
ANN = {"email": "Ann@Clinic.example", "groups": ["sleep", "nurses"], "age": 40}


def roles(store: Store, token: str | None, study: str) -> set[str]:
    """The roles in a study of the person with this session."""
    actor = access.session_actor(store, token or "", HOST)
    return set() if actor is None else set(actor.roles_in(study))


def test_claims_give_roles_in_one_study_or_in_all(store: Store) -> None:
    study, other = (studies.create_study(store, cpap()) for _ in range(2))
    add_member(store, study, " ann@clinic.EXAMPLE", "coordinator")
    add_member(store, ALL_STUDIES, "nurses", "reader", claim="groups")
    add_member(store, other, "Sleep", "owner", claim="groups")  # another group
    add_member(store, other, "sleep", "owner", claim="department")  # another claim
    token = access.begin_member_session(store, "Ann", ANN, HOST)
    assert roles(store, token, study) == {"coordinator", "reader"}
    assert roles(store, token, other) == {"reader"}
    actor = access.session_actor(store, token or "", HOST)
    assert actor is not None
    assert (actor.name, actor.came_by) == ("Ann", "signed in")


def test_removing_a_member_ends_their_sessions_at_the_next_click(store: Store) -> None:
    study = studies.create_study(store, cpap())
    add_member(store, study, "ann@clinic.example", "reader")
    token = access.begin_member_session(store, "Ann", ANN, HOST)
    assert roles(store, token, study) == {"reader"}
    add_member(store, study, "ann@clinic.example", "coordinator")
    assert roles(store, token, study) == {"coordinator"}
    assert remove_member(store, study, "Ann@clinic.example")
    assert not remove_member(store, study, "Ann@clinic.example")
    assert access.session_actor(store, token or "", HOST) is None
    assert access.begin_member_session(store, "Ann", ANN, HOST) is None


def test_a_members_session_is_not_the_owners(store: Store) -> None:
    key = access.make_owner_key(store)
    add_member(store, ALL_STUDIES, "ann@clinic.example", "owner")
    token = access.begin_member_session(store, "Ann", ANN, HOST) or ""
    assert not access.has_session(store, token, HOST)
    owners = access.begin_session(store, key, HOST) or ""
    actor = access.session_actor(store, owners, HOST)
    assert actor is not None
    assert (actor.name, actor.came_by, set(actor.roles_in("any"))) == ("Owner", "key", {"owner"})


@pytest.mark.parametrize("end", ["new key", "first key", "signing out", "time", "another host"])
def test_sessions_of_members_end(sqlite_store: Store, clock: Clock, end: str) -> None:
    store = sqlite_store
    add_member(store, ALL_STUDIES, "ann@clinic.example", "reader")
    if end == "new key":
        access.make_owner_key(store)
    token = access.begin_member_session(store, "Ann", ANN, HOST) or ""
    assert access.session_actor(store, token, HOST) is not None
    match end:
        case "new key":
            access.make_owner_key(store)
        case "first key":
            access.first_owner_key(store)
        case "signing out":
            access.end_session(store, token)
        case "time":
            clock.wait(access.SESSION_SECONDS + 1)
    host = "other.example" if end == "another host" else HOST
    assert access.session_actor(store, token, host) is None


def test_sessions_of_one_person_do_not_end_those_of_others(sqlite_store: Store) -> None:
    store = sqlite_store
    add_member(store, ALL_STUDIES, "nurses", "reader", claim="groups")
    first = access.begin_member_session(store, "Bo", ANN, HOST) or ""
    for _ in range(access._MOST_SESSIONS + 1):
        access.begin_member_session(store, "Ann", ANN, HOST)
    assert access.session_actor(store, first, HOST) is not None


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"email": "eve@clinic.example"},
        {"email": "ann@clinic.example", "email_verified": False},
        {"email": "ann@clinic.example", "email_verified": "false"},
        {"email": {"ann@clinic.example": 1}},
        {"mail": "ann@clinic.example"},
    ],
)
def test_other_claims_give_no_role(sqlite_store: Store, claims: dict[str, object]) -> None:
    add_member(sqlite_store, ALL_STUDIES, "ann@clinic.example", "owner")
    assert access.begin_member_session(sqlite_store, "Ann", claims, HOST) is None
    assert access.begin_member_session(sqlite_store, " ", ANN, HOST) is None


def test_a_member_is_refused_with_the_reason(sqlite_store: Store) -> None:
    with pytest.raises(StudyError, match='no study "nope"'):
        add_member(sqlite_store, "nope", "ann@clinic.example", "reader")
    with pytest.raises(StudyError, match='"ann" is not an email address'):
        add_member(sqlite_store, ALL_STUDIES, "ann", "reader")
    with pytest.raises(StudyError, match="is not one of owner, coordinator, reader, annotator"):
        add_member(sqlite_store, ALL_STUDIES, "ann@clinic.example", "boss")  # type: ignore[arg-type]
    with pytest.raises(StudyError, match="the claim has 1 to 200 printable characters"):
        add_member(sqlite_store, ALL_STUDIES, "ann", "reader", claim=" ")
    assert list_members(sqlite_store, ALL_STUDIES) == []


def test_deleting_a_study_deletes_its_members(store: Store) -> None:
    study = studies.create_study(store, cpap())
    for role in ROLES:
        add_member(store, study, f"{role}@clinic.example", role)
    assert [member.role for member in list_members(store, study)] == sorted(
        ROLES, key=lambda role: f"{role}@"
    )
    studies.delete_study(store, study)
    token = access.begin_member_session(store, "R", {"email": "reader@clinic.example"}, HOST)
    assert token is None
