"""Owner keys, sessions and invites: shown once, stored as hashes, revocable."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from playing import Clock, cpap, play

from dopl_core import studies
from dopl_core.studies import Store, StudyError, access
from dopl_core.studies.store import tables

HOST = "localhost:8501"


def kept(store: Store) -> str:
    """All text in the tables of keys, invites and sessions."""
    with store.read() as connection:
        of_access = (tables.keys, tables.invites, tables.sessions)
        rows = [connection.execute(sa.select(t)).all() for t in of_access]
    return str(rows)


def test_an_owner_key_is_valid_until_a_new_one_is_made(store: Store) -> None:
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
    study, other = (studies.create_study(store, cpap()) for _ in range(2))
    ann, bob = access.invite(store, study, " Ann "), access.invite(store, other, "Bob")
    found = access.find_invite(store, ann)
    assert found is not None
    assert (found.study, found.annotator) == (study, "Ann")
    found = access.find_invite(store, bob)
    assert found is not None
    assert (found.study, found.annotator) == (other, "Bob")
    assert access.find_invite(store, "") is None
    assert access.find_invite(store, ann + "x") is None


def test_a_revoked_invite_is_invalid_and_the_answers_stay(store: Store) -> None:
    study = studies.create_study(store, cpap())
    token = access.invite(store, study, "Ann")
    play(store, study, 5, people=("Ann",))
    answers = studies.get_study(store, study).answers
    assert access.revoke(store, study, "Ann")
    assert access.find_invite(store, token) is None
    assert not access.revoke(store, study, "Ann")
    assert studies.get_study(store, study).answers == answers
    assert [invite.revoked_at is None for invite in access.invites(store, study)] == [False]


def test_a_new_invite_replaces_the_previous_one(store: Store) -> None:
    study = studies.create_study(store, cpap())
    first, second = (access.invite(store, study, "Ann") for _ in range(2))
    assert access.find_invite(store, first) is None
    assert access.find_invite(store, second) is not None
    open_invites = [invite for invite in access.invites(store, study) if not invite.revoked_at]
    assert len(open_invites) == 1


def test_an_invite_to_the_list_does_not_open_the_duels_or_the_reverse(store: Store) -> None:
    study = studies.create_study(store, cpap())
    duels, reading = access.invite(store, study, "Bo"), access.invite(store, study, " Bo ", "list")
    found = access.find_invite(store, reading, "list")
    assert found is not None
    assert (found.study, found.annotator, found.revoked_at) == (study, "Bo", None)
    assert access.find_invite(store, reading) is None
    assert access.find_invite(store, duels, "list") is None
    assert access.revoke(store, study, "Bo", "list")
    assert not access.revoke(store, study, "Bo", "list")
    assert access.find_invite(store, reading, "list") is None
    assert access.find_invite(store, duels) is not None
    assert [len(access.invites(store, study, opens)) for opens in ("duels", "list")] == [1, 1]


def test_the_database_contains_no_secret(store: Store) -> None:
    study = studies.create_study(store, cpap())
    secrets = [access.make_owner_key(store), access.invite(store, study, "Ann")]
    secrets.append(access.begin_session(store, secrets[0], HOST) or "")
    assert all(secret not in kept(store) for secret in secrets)
    assert all(len(secret) >= 20 for secret in secrets)


def test_deleting_a_study_deletes_its_invites(store: Store) -> None:
    study = studies.create_study(store, cpap())
    token = access.invite(store, study, "Ann")
    studies.delete_study(store, study)
    assert access.find_invite(store, token) is None


def test_invites_need_a_name_and_a_study(sqlite_store: Store) -> None:
    study = studies.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="the annotator has no name"):
        access.invite(sqlite_store, study, "  ")
    with pytest.raises(StudyError, match='no study "nope"'):
        access.invite(sqlite_store, "nope", "Ann")


@pytest.mark.parametrize(
    "name",
    ["Owner", " owner ", "OWNER", "Ｏｗｎｅｒ", "Own\u200ber", "O w n e r", "\u2066Owner\u2069"],
)
def test_a_name_that_looks_like_owner_cannot_be_invited(sqlite_store: Store, name: str) -> None:
    study = studies.create_study(sqlite_store, cpap())
    with pytest.raises(StudyError, match="use another name"):
        access.invite(sqlite_store, study, name)
    assert access.invites(sqlite_store, study) == []
    access.invite(sqlite_store, study, "Owner's sister")


def test_a_session_replaces_the_key_until_it_expires(store: Store, clock: Clock) -> None:
    key = access.make_owner_key(store)
    assert access.begin_session(store, key + "x", HOST) is None
    token = access.begin_session(store, key, HOST)
    assert token
    assert access.has_session(store, token, HOST)
    assert not access.has_session(store, token, "localhost:8502")
    assert not access.has_session(store, key, HOST)
    assert not access.has_session(store, "", HOST)
    clock.wait(access.SESSION_SECONDS - 1)
    assert access.has_session(store, token, HOST)
    clock.wait(2)
    assert not access.has_session(store, token, HOST)


def test_a_new_key_ends_the_sessions_of_the_old_key(store: Store) -> None:
    token = access.begin_session(store, access.make_owner_key(store), HOST)
    assert token
    access.make_owner_key(store)
    assert not access.has_session(store, token, HOST)


def test_the_number_of_sessions_is_limited(sqlite_store: Store, clock: Clock) -> None:
    key = access.make_owner_key(sqlite_store)
    tokens = []
    for _ in range(access._MOST_SESSIONS + 5):
        tokens.append(access.begin_session(sqlite_store, key, HOST) or "")
        clock.wait(1)
    opens = [access.has_session(sqlite_store, token, HOST) for token in tokens]
    assert opens == [False] * 5 + [True] * access._MOST_SESSIONS


def test_exactly_one_of_several_keys_made_concurrently_is_valid(store: Store) -> None:
    for _ in range(5):
        with ThreadPoolExecutor(8) as threads:
            keys = [threads.submit(access.make_owner_key, store) for _ in range(8)]
        assert sum(access.is_owner(store, key.result()) for key in keys) == 1


def test_exactly_one_of_several_processes_makes_the_first_key(store: Store) -> None:
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(access.first_owner_key, store) for _ in range(8)]
    [key] = [key for found in asked if (key := found.result())]
    assert access.is_owner(store, key)
    assert access.first_owner_key(store) is None
