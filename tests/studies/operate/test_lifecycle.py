"""All studies at a glance, however many there are."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from playing import Clock, clinic, cpap, play

from dopl_core import studies
from dopl_core.studies import Store, StudyError
from dopl_core.studies.store import tables


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
        studies.create_study(store, cpap(title=f"Study {number}"))
    for known, queries in ((False, 2), (True, 1)):
        if not known:
            store.configs.clear()
        with counted(store) as sent:
            assert len(studies.list_studies(store)) == 6
        assert len([one for one in sent if one.startswith("SELECT")]) == queries


def test_a_study_at_a_glance_counts_its_people_and_answers(store: Store) -> None:
    one = studies.create_study(store, cpap())
    other = studies.create_study(store, clinic())
    saved = play(store, one, 20, undo=0.0)
    found = {study.id: study for study in studies.list_studies(store)}
    assert (found[one].answers, found[one].annotators) == (saved, 2)
    assert (found[other].answers, found[other].annotators) == (0, 0)
    assert studies.get_study(store, one) == found[one]
    with pytest.raises(StudyError, match='no study "none"'):
        studies.get_study(store, "none")


@pytest.mark.parametrize("damage", ["[]", "3", '"words"', "{}", "{", '{"title": 1}', "null"])
def test_a_damaged_configuration_takes_no_other_study_down(store: Store, damage: str) -> None:
    good, bad = (studies.create_study(store, cpap(title=title)) for title in ("Good", "Bad"))
    row = tables.configs.c.study == bad
    with store.write() as connection:
        connection.execute(sa.update(tables.configs).where(row).values(content=damage))
    store.configs.clear()
    assert [study.id for study in studies.list_studies(store)] == [good]
    (broken,) = studies.list_unreadable(store)
    assert (broken.id, broken.title) == (bad, "Bad")
    assert f'study "{bad}": ' in broken.why
    with pytest.raises(StudyError, match=bad):
        studies.get_study(store, bad)
    with pytest.raises(StudyError, match=bad):
        studies.next_duel(store, bad, "Ann")
    studies.delete_study(store, bad)
    assert not studies.list_unreadable(store)


def test_a_damaged_change_takes_no_other_study_down(store: Store) -> None:
    good, bad = (studies.create_study(store, clinic()) for _ in range(2))
    studies.change_settings(store, bad, title="Other")
    events = tables.events.c
    changes = (events.study == bad) & (events.kind == "settings_changed")
    with store.write() as connection:
        connection.execute(sa.update(tables.events).where(changes).values(body="[1]"))
        damaged = sa.update(tables.studies).where(tables.studies.c.id == bad)
        connection.execute(damaged.values(in_force=1, in_force_chain="x"))
    store.configs.clear()
    assert [study.id for study in studies.list_studies(store)] == [good]
    assert "settings_changed is a list of 1" in studies.list_unreadable(store)[0].why


def test_a_deleted_study_leaves_nothing(store: Store) -> None:
    study, other = (studies.create_study(store, cpap()) for _ in range(2))
    play(store, study, 20)
    play(store, other, 5)
    studies.delete_study(store, study)
    assert [found.id for found in studies.list_studies(store)] == [other]
    with store.read() as connection:
        for table in tables.metadata.sorted_tables:
            if "study" in table.c:
                query = sa.select(sa.func.count()).where(table.c.study == study)
                assert connection.execute(query).scalar() == 0, table.name
    with pytest.raises(StudyError, match="no study"):
        studies.delete_study(store, study)


def test_studies_are_listed_newest_first_with_what_they_wait_for(
    store: Store, clock: Clock
) -> None:
    old = studies.create_study(store, cpap(title="Old"))
    clock.wait(5)
    new = studies.create_study(store, clinic(title="Ünï: new!"))
    found = studies.list_studies(store)
    assert [study.id for study in found] == [new, old]
    assert new.startswith("uni-new-")
    assert [study.waits_for for study in found] == ["owner", "annotators"]
    studies.close_study(store, old)
    assert studies.get_study(store, old).waits_for == "nobody"
