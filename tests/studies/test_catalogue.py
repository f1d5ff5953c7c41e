"""All studies at a glance, however many there are."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from playing import clinic, cpap, play

from dopl_core.studies import service
from dopl_core.studies.service import Store, StudyError


@contextmanager
def counted(store: Store) -> Iterator[list[str]]:
    """The statements that the database is sent meanwhile."""
    sent: list[str] = []

    def note(*given: object) -> None:
        sent.append(str(given[2]))

    sa.event.listen(store.engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(store.engine, "before_cursor_execute", note)


def test_all_studies_take_two_queries_however_many_there_are(store: Store) -> None:
    for number in range(6):
        service.create_study(store, cpap(title=f"Study {number}"))
    for known, queries in ((False, 2), (True, 1)):
        if not known:
            store.configs.clear()
        with counted(store) as sent:
            assert len(service.list_studies(store)) == 6
        assert len([one for one in sent if one.startswith("SELECT")]) == queries


def test_a_study_at_a_glance_counts_its_people_and_answers(store: Store) -> None:
    one = service.create_study(store, cpap())
    other = service.create_study(store, clinic())
    saved = play(store, one, 20, undo=0.0)
    found = {study.id: study for study in service.list_studies(store)}
    assert (found[one].answers, found[one].annotators) == (saved, 2)
    assert (found[other].answers, found[other].annotators) == (0, 0)
    assert service.get_study(store, one) == found[one]
    with pytest.raises(StudyError, match='no study "none"'):
        service.get_study(store, "none")
