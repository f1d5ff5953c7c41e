"""Both databases for the tests of studies: SQLite files, and a real PostgreSQL server."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from own_postgresql import OwnPostgreSQL
from playing import Clock

from dopl_core import studies
from dopl_core.studies import Store


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a server, with {} in place of the database's name."""
    server = OwnPostgreSQL()
    yield server.url
    server.end()


@pytest.fixture(scope="session")
def new_postgresql(postgresql: str) -> Iterator[Callable[..., str]]:
    """Makes databases: call it for the address of an empty one, or of a copy of a template."""
    engine = sa.create_engine(postgresql.format("postgres"), isolation_level="AUTOCOMMIT")
    numbers = itertools.count()

    def make(template: str = "template1") -> str:
        name = f"test_{next(numbers)}"
        with engine.connect() as connection:
            copied = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
            connection.exec_driver_sql(copied)  # in half the time of the default
        return postgresql.format(name)

    yield make
    engine.dispose()


@pytest.fixture(scope="session")
def template(new_postgresql: Callable[..., str]) -> str:
    """A database with our tables, to copy."""
    url = new_postgresql()
    studies.open_store(url).close()
    return sa.make_url(url).database or ""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: str) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}"
    return request.getfixturevalue("new_postgresql")(request.getfixturevalue("template"))


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind, without our tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    return request.getfixturevalue("new_postgresql")()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    """A store on each kind of database, on the tests' clock."""
    store = studies.open_store(url, clock=clock)
    yield store
    store.close()


@pytest.fixture
def sqlite_store(tmp_path: Path, clock: Clock, sqlite_template: str) -> Iterator[Store]:
    """Where the kind of database makes no difference."""
    file = shutil.copy(sqlite_template, tmp_path / "one.db")
    store = studies.open_store(f"sqlite:///{file}", clock=clock)
    yield store
    store.close()
