"""Keys and invites: shown once, kept as hashes, revocable."""

import pytest
import sqlalchemy as sa
from playing import cpap, play

from dopl_core.studies import access, schema, service
from dopl_core.studies.service import Store, StudyError


def kept(store: Store) -> str:
    """All text in the tables of access."""
    with store.read() as connection:
        rows = [connection.execute(sa.select(t)).all() for t in (schema.keys, schema.invites)]
    return str(rows)


def test_an_owners_key_opens_until_a_new_one_is_made(store: Store) -> None:
    assert not access.has_owner_key(store)
    assert not access.is_owner(store, "")
    first = access.make_owner_key(store)
    assert access.has_owner_key(store)
    assert access.is_owner(store, first)
    second = access.make_owner_key(store)
    assert access.is_owner(store, second)
    assert not access.is_owner(store, first)
    assert not access.is_owner(store, second[:-1])


def test_an_invite_names_one_person_and_one_study(store: Store) -> None:
    study, other = (service.create_study(store, cpap()) for _ in range(2))
    ann, bob = access.invite(store, study, " Ann "), access.invite(store, other, "Bob")
    found = access.who(store, ann)
    assert found is not None
    assert (found.study, found.annotator) == (study, "Ann")
    found = access.who(store, bob)
    assert found is not None
    assert (found.study, found.annotator) == (other, "Bob")
    assert access.who(store, "") is None
    assert access.who(store, ann + "x") is None


def test_a_revoked_invite_opens_nothing_and_the_answers_stay(store: Store) -> None:
    study = service.create_study(store, cpap())
    token = access.invite(store, study, "Ann")
    play(store, study, 5, people=("Ann",))
    answers = service.get_study(store, study).answers
    assert access.revoke(store, study, "Ann")
    assert access.who(store, token) is None
    assert not access.revoke(store, study, "Ann")
    assert service.get_study(store, study).answers == answers
    assert [invite.revoked_at is None for invite in access.invites(store, study)] == [False]


def test_a_new_invite_replaces_the_one_before(store: Store) -> None:
    study = service.create_study(store, cpap())
    first, second = (access.invite(store, study, "Ann") for _ in range(2))
    assert access.who(store, first) is None
    assert access.who(store, second) is not None
    open_invites = [invite for invite in access.invites(store, study) if not invite.revoked_at]
    assert len(open_invites) == 1


def test_no_secret_is_kept_in_the_database(store: Store) -> None:
    study = service.create_study(store, cpap())
    secrets = [access.make_owner_key(store), access.invite(store, study, "Ann")]
    assert all(secret not in kept(store) for secret in secrets)
    assert all(len(secret) >= 20 for secret in secrets)


def test_a_deleted_study_takes_its_invites_along(store: Store) -> None:
    study = service.create_study(store, cpap())
    token = access.invite(store, study, "Ann")
    service.delete_study(store, study)
    assert access.who(store, token) is None


def test_invites_need_a_name_and_a_study(sqlite_store: Store) -> None:
    study = service.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="the annotator has no name"):
        access.invite(sqlite_store, study, "  ")
    with pytest.raises(StudyError, match='no study "nope"'):
        access.invite(sqlite_store, "nope", "Ann")
