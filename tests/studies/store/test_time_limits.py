"""A locked database: clicks are answered in words soon, other studies and slow work go on."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from locking import locked
from playing import clinic

from dopl_core import studies
from dopl_core.studies import Ask, Store, StoreError
from dopl_core.studies.store import postgresql, time_limits
from dopl_core.studies.store.database import LOCKED
from dopl_core.studies.store.time_limits import slowly

LIMIT = 0.3
PEOPLE = 40  # whose waits are LIMIT each, and would add up to 12 s


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """With short limits, and fewer connections than there are people."""
    monkeypatch.setattr(time_limits, "CLICK_SECONDS", LIMIT)
    monkeypatch.setattr(postgresql, "CLICK_POOL", {"pool_size": 2, "max_overflow": 1})
    monkeypatch.setattr(postgresql, "SLOW_POOL", {"pool_size": 1, "max_overflow": 0})
    store = studies.open_store(url)
    yield store
    store.close()


@pytest.fixture
def study(store: Store) -> str:
    return studies.create_study(store, clinic(ratings=PEOPLE))


def refused(act: Callable[[], object]) -> str:
    """Why an act is refused, or "" where it is not."""
    try:
        act()
    except StoreError as error:
        return str(error)
    return ""


def test_everybody_is_told_soon_and_waits_do_not_add_up(store: Store, study: str, url: str) -> None:
    asks = [studies.next_duel(store, study, f"a{n}") for n in range(PEOPLE)]

    def click(ask: object) -> str:
        assert isinstance(ask, Ask)
        return refused(lambda: studies.answer(store, ask.impression, "left", too_fast_ms=0))

    with locked(url, study), ThreadPoolExecutor(PEOPLE) as people:
        begun = time.monotonic()
        said = list(people.map(click, asks))
        assert time.monotonic() - begun < PEOPLE * LIMIT / 2
    assert set(said) == {f"{store.name}: {LOCKED}"}
    assert [click(ask) for ask in asks] == [""] * PEOPLE  # and nothing was lost


def test_a_locked_study_takes_no_connection_from_the_others(
    store: Store, study: str, url: str
) -> None:
    if store.is_sqlite:
        pytest.skip("a SQLite file is locked as a whole")
    other = studies.create_study(store, clinic())
    asks = [studies.next_duel(store, study, f"a{n}") for n in range(10)]
    waiting = threading.Barrier(11)

    def click(ask: object) -> str:
        assert isinstance(ask, Ask)
        waiting.wait()
        return refused(lambda: studies.answer(store, ask.impression, "left", too_fast_ms=0))

    with locked(url, study), ThreadPoolExecutor(10) as people:
        said = [people.submit(click, ask) for ask in asks]
        waiting.wait()
        assert isinstance(studies.next_duel(store, other, "Ann"), Ask)
        assert all(one.result() for one in said)


def test_slow_work_waits_for_longer_than_a_click(store: Store, study: str, url: str) -> None:
    with locked(url, study) as let_go:
        threading.Timer(3 * LIMIT, let_go).start()
        with slowly():
            assert isinstance(studies.next_duel(store, study, "Ann"), Ask)


def test_slow_work_and_clicks_have_connections_of_their_own(store: Store, study: str) -> None:
    if store.is_sqlite:
        pytest.skip("PostgreSQL's connections are limited")
    with ExitStack() as busy:
        busy.enter_context(slowly())
        busy.enter_context(store.read())  # the only one for slow work
        with ThreadPoolExecutor(1) as clicks:
            found = clicks.submit(studies.next_duel, store, study, "Ann").result()
        assert isinstance(found, Ask)
    with ExitStack() as busy:
        for _ in range(3):
            busy.enter_context(store.read())
        assert "too many wait" in refused(lambda: studies.next_duel(store, study, "Bob"))
        assert studies.export_bundle(store, study)


def test_postgresql_is_told_the_limits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    if store.is_sqlite:
        pytest.skip("settings of PostgreSQL")

    def limits() -> list[str]:
        names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        with store.read() as connection:
            return [str(connection.execute(sa.text(f"SHOW {name}")).scalar()) for name in names]

    assert limits() == ["300ms", "800ms", "30s"]
    with slowly():
        assert limits() == ["2min", "10min", "5min"]
    said = refused(lambda: _sleep_in(store))
    assert "it is too slow at the moment; nothing was changed: try again" in said


def _sleep_in(store: Store) -> None:
    with store.read() as connection:
        connection.execute(sa.text("SELECT pg_sleep(20)"))


def test_a_transaction_that_stops_half_way_lets_go_of_its_study(store: Store) -> None:
    if store.is_sqlite:
        pytest.skip("SQLite lets go when the process ends")

    def stop_half_way() -> None:
        with store.write() as connection:
            connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 100"))
            time.sleep(0.5)
            connection.execute(sa.text("SELECT 1"))

    assert "this took too long; nothing was changed: try again" in refused(stop_half_way)


def test_after_a_refusal_the_same_click_waits_only_briefly(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that was told that an answer is not saved asks for the next comparison."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def seconds(*_: object) -> float:
        with sqlite_store._turn("any") as until:
            return until - now[0]

    click, again = time_limits.CLICK_SECONDS, time_limits.AGAIN_SECONDS
    assert click + again < 5
    assert seconds() == click
    with pytest.raises(StoreError, match="locked"), sqlite_store.read():
        raise sa.exc.OperationalError("BEGIN", {}, Exception("database is locked"))
    now[0] += 0.125
    assert seconds() == again
    with ThreadPoolExecutor(1) as others:
        assert others.submit(seconds).result() == click
    with slowly():
        assert seconds() == time_limits.SLOW_SECONDS
    now[0] += 60
    assert seconds() == click
