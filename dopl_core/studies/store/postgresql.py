"""Connections to PostgreSQL, with time limits: a pool for clicks, and one for slow work."""

import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import NoSuchModuleError

from dopl_core.studies.model.errors import StoreError
from dopl_core.studies.store import time_limits

CLICK_POOL = {"pool_size": 10, "max_overflow": 20}
SLOW_POOL = {"pool_size": 2, "max_overflow": 8}
_CONNECT_SECONDS = 5  # after that, a server that does not answer counts as down


def connect(address: URL, slow: bool = False) -> Engine:
    """A pool of connections to a server: for clicks, or for slow work."""
    waits = {} if "connect_timeout" in address.query else {"connect_timeout": _CONNECT_SECONDS}
    pool = SLOW_POOL if slow else CLICK_POOL
    limits = time_limits.session_settings(slow)
    seconds = time_limits.SLOW_SECONDS if slow else time_limits.CLICK_SECONDS
    try:
        engine = sa.create_engine(
            address, pool_pre_ping=True, pool_timeout=seconds, connect_args=waits, **pool
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise StoreError(
            'PostgreSQL needs the driver psycopg: pip install "dopl[postgres]"'
        ) from None

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        for name, value in limits.items():
            connection.execute(f"SET {name} = {value}")
        connection.commit()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # Less is left than new sessions have, if this thread has waited for its turn.
        until = connection.get_execution_options().get("dopl_until")
        left = limits["lock_timeout"] if until is None else int(1000 * (until - time.monotonic()))
        if left < limits["lock_timeout"] - 100:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(left, 50)}")

    return engine
