"""Another program that keeps a study locked."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa


@contextmanager
def locked(url: str, study: str) -> Iterator[Callable[[], None]]:
    """Another program keeps the study's row locked, or the whole file; call it to let go."""
    if url.startswith("sqlite"):
        file = sqlite3.connect(sa.make_url(url).database or "", check_same_thread=False)
        file.execute("BEGIN IMMEDIATE")
        yield file.rollback
        file.close()
        return
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        connection.execute(
            sa.text("SELECT id FROM studies WHERE id = :study FOR UPDATE"), {"study": study}
        )
        yield connection.rollback
    engine.dispose()
