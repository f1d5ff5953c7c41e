"""How long the database is waited for: clicks wait briefly, slow work longer.

A person who clicks is answered in words within five seconds, whatever keeps the database locked.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CLICK_SECONDS = 3.5  # for each transaction, from its call to its last lock
AGAIN_SECONDS = 0.5  # for further ones of the same click, after one was refused
SLOW_SECONDS = 120.0  # for plans, imports, exports and migrations
IDLE_SECONDS = (30, 300)  # a transaction of a click, or of slow work, that asks nothing is ended
SLOWEST_STATEMENT = 600.0

is_slow: ContextVar[bool] = ContextVar("is_slow", default=False)


@contextmanager
def slowly() -> Iterator[None]:
    """Slow work: it waits longer, and has database connections of its own."""
    before = is_slow.set(True)
    try:
        yield
    finally:
        is_slow.reset(before)


def session_settings(slow: bool) -> dict[str, int]:
    """The time limits of a PostgreSQL session, in milliseconds."""
    click = CLICK_SECONDS + AGAIN_SECONDS  # more than for a lock, so that errors name the lock
    return {
        "lock_timeout": int(1000 * (SLOW_SECONDS if slow else CLICK_SECONDS)),
        "statement_timeout": int(1000 * (SLOWEST_STATEMENT if slow else click)),
        "idle_in_transaction_session_timeout": int(1000 * IDLE_SECONDS[slow]),
    }
