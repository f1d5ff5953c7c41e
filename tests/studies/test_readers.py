"""Links to read a list: one study's, shown once, revocable, kept as hashes."""

import pytest
import sqlalchemy as sa
from playing import clinic

from dopl_core.studies import readers, schema, service
from dopl_core.studies.service import Store, StudyError


def test_a_link_opens_one_studys_list_until_it_is_revoked(store: Store) -> None:
    study = service.create_study(store, clinic())
    token = readers.let_read(store, study, " Dr Bo ")
    found = readers.who_reads(store, token)
    assert found is not None
    assert (found.study, found.name, found.revoked_at) == (study, "Dr Bo", None)
    assert readers.revoke(store, study, "Dr Bo")
    assert not readers.revoke(store, study, "Dr Bo")
    assert readers.who_reads(store, token) is None
    assert [one.name for one in readers.readers(store, study)] == ["Dr Bo"]


def test_a_new_link_replaces_the_one_before(store: Store) -> None:
    study = service.create_study(store, clinic())
    first, second = (readers.let_read(store, study, "Bo") for _ in range(2))
    assert readers.who_reads(store, first) is None
    assert readers.who_reads(store, second) is not None


def test_only_hashes_are_kept_and_nothing_else_opens_a_list(store: Store) -> None:
    study = service.create_study(store, clinic())
    token = readers.let_read(store, study, "Bo")
    with store.read() as connection:
        kept = connection.execute(sa.select(schema.readers)).one()
    assert token not in map(str, kept)
    for wrong in ("", "x", kept.token_hash, token + "x"):
        assert readers.who_reads(store, wrong) is None


def test_links_go_with_their_study(store: Store) -> None:
    study = service.create_study(store, clinic())
    token = readers.let_read(store, study, "Bo")
    service.delete_study(store, study)
    assert readers.who_reads(store, token) is None


def test_a_link_needs_a_name_and_a_study(store: Store) -> None:
    study = service.create_study(store, clinic())
    with pytest.raises(StudyError, match="no name"):
        readers.let_read(store, study, " ")
    with pytest.raises(StudyError, match="there is no study"):
        readers.let_read(store, "nowhere", "Bo")
