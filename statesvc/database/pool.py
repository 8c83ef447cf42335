"""Connection pools. A connection is in autocommit, so that a transaction is only where the code opens one.

Each has time limits of its own: a statement, a wait for a lock, a pause inside a transaction and a transaction all end. They are set on the
session, or behind a pooler in transaction mode sent with each transaction (`pooled`).
"""

import select
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from statesvc.database.pooled import PooledConnection, PooledCursor
from statesvc.database.queries import queries
from statesvc.database.retrying_connection import RetryingConnection

KEEPALIVE: Final[Mapping[str, Any]] = MappingProxyType(
    {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3, "tcp_user_timeout": 15_000}
)
"""libpq parameters: a half-open socket is noticed within about 15 seconds."""
CONNECT_TIMEOUT_SECONDS: Final = 5
RECONNECT_SECONDS: Final = 3.0
"""A burst of tries (jittered, doubling) ends after this; the next request starts a new one, so recovery never waits minutes."""
WHOLE_TRANSACTIONS_SINCE: Final = 17_00_00
_PREPARE_AFTER: Final = 2
"""Executions of one statement after which it is prepared."""

_SQL = queries("statesvc.database", "pool")

Pool = AsyncConnectionPool[AsyncConnection[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Sizes and times of one pool."""

    connections_max: int
    acquire_seconds: float
    statement_seconds: float
    lock_seconds: float
    idle_in_transaction_seconds: float
    transaction_seconds: float | None = None
    """Of a whole transaction. A client that stops inside a pipeline is not idle to PostgreSQL: only this limit ends it (PostgreSQL 17)."""
    connections_min: int = 2

    def milliseconds(self, *, server_version: int = 0) -> dict[str, int]:
        """The time limits that a server of this version knows (0: that all know), by the names that the queries have for them."""
        knows_whole_transactions = server_version >= WHOLE_TRANSACTIONS_SINCE
        whole = {"transaction_ms": round(self.transaction_seconds * 1000)} if self.transaction_seconds and knows_whole_transactions else {}
        return whole | {
            "statement_ms": round(self.statement_seconds * 1000),
            "lock_ms": round(self.lock_seconds * 1000),
            "idle_in_transaction_ms": round(self.idle_in_transaction_seconds * 1000),
        }


def make_pool(dsn: str, *, name: str, limits: PoolLimits, prepared_statements: bool = True, direct: bool = True) -> Pool:
    """A pool that is not open yet: `await pool.open()`.

    `name` shows in pg_stat_activity; `direct=False` behind a pooler in transaction mode.
    """

    async def configure(connection: AsyncConnection[Any]) -> None:
        connection.prepare_threshold = _PREPARE_AFTER if prepared_statements else None
        await connection.execute(_SQL["keep_utc"], prepare=False)
        limits_ms = limits.milliseconds(server_version=connection.info.server_version)
        if isinstance(connection, PooledConnection):
            connection.limit_transactions(**limits_ms)
            return
        await connection.execute(_SQL["limit_session"], limits_ms)
        if "transaction_ms" in limits_ms:
            await connection.execute(_SQL["limit_whole_transactions"], limits_ms)

    async def check(connection: AsyncConnection[Any]) -> None:
        try:
            await check_idle(connection)
        except psycopg.Error:
            # what ended this one has most likely ended its siblings: replace all at once, not one a request
            await pool.drain()
            raise

    parameters = {"autocommit": True, "application_name": name, "connect_timeout": CONNECT_TIMEOUT_SECONDS, **KEEPALIVE}
    pool: Pool = AsyncConnectionPool(
        dsn,
        connection_class=RetryingConnection if direct else PooledConnection,
        kwargs=parameters if direct else {**parameters, "cursor_factory": PooledCursor},
        name=name,
        min_size=min(limits.connections_min, limits.connections_max),
        max_size=limits.connections_max,
        timeout=limits.acquire_seconds,
        reconnect_timeout=RECONNECT_SECONDS,
        configure=configure,
        check=check,
        open=False,
    )
    return pool


async def check_idle(connection: AsyncConnection[Any]) -> None:
    """Raises for a connection that died while it was idle.

    Asks the server only where the socket has something to say, an end of file or a closing message: a healthy one costs one system call.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        await AsyncConnectionPool.check_connection(connection)


class Connections(Protocol):
    """What of a psycopg pool is needed."""

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        """A connection for a while."""


@dataclass(frozen=True, slots=True)
class SingleConnection:
    """One connection where a pool is expected: for commands."""

    held: AsyncConnection[Any]

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        """Always the same one, left open."""
        return nullcontext(self.held)
