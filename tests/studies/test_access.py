"""Keys and invites: shown once, kept as hashes, revocable."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from playing import Clock, cpap, play

from dopl_core.studies import access, schema, service
from dopl_core.studies.service import Store, StudyError


def kept(store: Store) -> str:
    """All text in the tables of access."""
    with store.read() as connection:
        tables = (schema.keys, schema.invites, schema.sessions)
        rows = [connection.execute(sa.select(t)).all() for t in tables]
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


def test_a_link_opens_what_it_was_made_for_and_nothing_else(store: Store) -> None:
    study = service.create_study(store, cpap())
    duels, reading = access.invite(store, study, "Bo"), access.invite(store, study, " Bo ", "list")
    found = access.who(store, reading, "list")
    assert found is not None
    assert (found.study, found.annotator, found.revoked_at) == (study, "Bo", None)
    assert access.who(store, reading) is None
    assert access.who(store, duels, "list") is None
    assert access.revoke(store, study, "Bo", "list")
    assert not access.revoke(store, study, "Bo", "list")
    assert access.who(store, reading, "list") is None
    assert access.who(store, duels) is not None
    assert [len(access.invites(store, study, opens)) for opens in ("duels", "list")] == [1, 1]


def test_no_secret_is_kept_in_the_database(store: Store) -> None:
    study = service.create_study(store, cpap())
    secrets = [access.make_owner_key(store), access.invite(store, study, "Ann")]
    secrets.append(access.begin_session(store, secrets[0]) or "")
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


@pytest.mark.parametrize(
    "name",
    ["Owner", " owner ", "OWNER", "Ｏｗｎｅｒ", "Own\u200ber", "O w n e r", "\u2066Owner\u2069"],
)
def test_nobody_is_invited_by_the_name_of_the_owner(sqlite_store: Store, name: str) -> None:
    study = service.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="invite by another name"):
        access.invite(sqlite_store, study, name)
    assert access.invites(sqlite_store, study) == []
    access.invite(sqlite_store, study, "Owner's sister")


def test_a_session_opens_in_place_of_the_key_until_it_is_over(store: Store, clock: Clock) -> None:
    key = access.make_owner_key(store)
    assert access.begin_session(store, key + "x") is None
    token = access.begin_session(store, key)
    assert token
    assert access.has_session(store, token)
    assert not access.has_session(store, key)
    assert not access.has_session(store, "")
    clock.wait(access.SESSION_SECONDS - 1)
    assert access.has_session(store, token)
    clock.wait(2)
    assert not access.has_session(store, token)


def test_a_new_key_ends_the_sessions_of_the_old_one(store: Store) -> None:
    token = access.begin_session(store, access.make_owner_key(store))
    assert token
    access.make_owner_key(store)
    assert not access.has_session(store, token)


def test_sessions_do_not_pile_up(sqlite_store: Store, clock: Clock) -> None:
    key = access.make_owner_key(sqlite_store)
    tokens = []
    for _ in range(access._MOST_SESSIONS + 5):
        tokens.append(access.begin_session(sqlite_store, key) or "")
        clock.wait(1)
    opens = [access.has_session(sqlite_store, token) for token in tokens]
    assert opens == [False] * 5 + [True] * access._MOST_SESSIONS


def test_of_keys_made_at_the_same_time_one_is_valid(store: Store) -> None:
    for _ in range(5):
        with ThreadPoolExecutor(8) as threads:
            keys = [threads.submit(access.make_owner_key, store) for _ in range(8)]
        assert sum(access.is_owner(store, key.result()) for key in keys) == 1


def test_of_programs_that_start_at_the_same_time_one_makes_the_first_key(store: Store) -> None:
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(access.first_owner_key, store) for _ in range(8)]
    [key] = [key for found in asked if (key := found.result())]
    assert access.is_owner(store, key)
    assert access.first_owner_key(store) is None
