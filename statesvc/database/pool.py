"""Connection pools of autocommit connections, so that transactions are explicit in the code.

Each has time limits of its own: for a statement, a lock, a pause inside a transaction and a
transaction. They are set on the session, or behind a pooler in transaction mode sent with each
transaction (`pooled`). A server's fault concerns all connections: a pool replaces all of them at
once, not one a request.
"""

import select
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import psycopg
import structlog
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from statesvc.database.pooled import PooledConnection, PooledCursor
from statesvc.database.service_connection import RetryingConnection, ServiceConnection, parameters
from statesvc.database.session_settings import (
    SessionLimits,
    prepare_pooled_session,
    prepare_session,
)
from statesvc.database.sql_errors import ConnectionCause, connection_cause, login_fault

# Longest pause between two tries to connect while somebody waits for a connection.
RECONNECT_SECONDS: Final = 0.5
# Interval at which a pool logs that connections still fail for the same reason.
_FAILURE_SECONDS: Final = 30.0
# Executions of a statement before it is prepared.
_PREPARE_AFTER: Final = 2

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits(SessionLimits):
    connections_max: int
    acquire_seconds: float
    away_seconds: float = float("inf")
    """Time to acquire while no connection can be opened, where that is shorter."""
    waiting_max: int = 0
    """Requests that may wait for a connection at a time; 0: any number."""
    connections_min: int = 2
    idle_seconds: float = 60.0
    """Time after which the pool gives up one that was not needed meanwhile: where connections are
    few, somebody else waits for it.
    """


class PoolBusyError(PoolTimeout):
    """All connections are in use, and the database answers them."""


class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
    """psycopg's pool, with connections that may find the server faulty.

    `fault`: the last failure to open.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        away_seconds: float = float("inf"),
        **options: Any,  # noqa: ANN401 - psycopg's, passed on
    ) -> None:
        super().__init__(conninfo, open=False, **options)
        self.fault: psycopg.Error | None = None
        self._away_seconds = away_seconds
        self._served_at = float("-inf")
        self._replaced_at = float("-inf")
        self._said: tuple[ConnectionCause | None, float] = (None, float("-inf"))

    @property
    def only_reads(self) -> bool:
        """True if the last connection did not open because the server takes no writes."""
        return self.fault is not None and connection_cause(self.fault) is ConnectionCause.READ_ONLY

    def failed(self, error: psycopg.Error) -> None:
        """Note that a connection did not open, and log it: at once, and now and
        then while it goes on.
        """
        self.fault = error
        cause, now = connection_cause(error), time.monotonic()
        if cause is not self._said[0] or now - self._said[1] >= _FAILURE_SECONDS:
            self._said = (cause, now)
            _log.warning("connection_failed", pool=self.name, error=error)

    def served_within(self, seconds: float) -> bool:
        """Return whether a connection came back in that time from someone whom the database
        answered.
        """
        return time.monotonic() - self._served_at <= seconds

    async def getconn(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - psycopg's
    ) -> AsyncConnection[Any]:
        """Obtain a connection, and give it back with `putconn`.

        Raises PoolBusyError where others are served, otherwise PoolTimeout or TooManyRequests.
        """
        seconds = self.timeout if timeout is None else timeout
        began = time.monotonic()
        while True:
            # looked at anew in each round: the fault may come or go while this request waits
            allowed = seconds if self.fault is None else min(seconds, self._away_seconds)
            left = began + allowed - time.monotonic()
            try:
                # psycopg's next try to connect may be seconds away; a new request makes one at once
                return await super().getconn(
                    left if self.fault is None else min(left, RECONNECT_SECONDS)
                )
            except PoolTimeout as error:
                if self.fault is not None and time.monotonic() < began + allowed:
                    continue
                # somebody got a connection in that time: the pool is too small, and the database is
                # well
                if self.served_within(seconds):
                    raise PoolBusyError(str(error)) from None
                raise
            except TooManyRequests as error:
                if self.fault is None:
                    raise PoolBusyError(str(error)) from None
                raise

    async def putconn(self, conn: AsyncConnection[Any]) -> None:
        """Return a connection; a faulty one takes its siblings along."""
        # before the fault is looked at: an error of a statement is an answer, too
        if not conn.closed:
            self._served_at = time.monotonic()
        if isinstance(conn, ServiceConnection) and conn.fault is not None:
            if isinstance(conn, PooledConnection) and isinstance(
                conn.fault, psycopg.errors.ReadOnlySqlTransaction
            ):
                # before the close: the pooler keeps the server's session, with its default of
                # reading only
                await conn.end_read_session()
            # before `super`, which then opens another in place of a closed one
            await conn.close()
            await self.replace_all(conn)
        await super().putconn(conn)

    async def replace_all(self, conn: ServiceConnection) -> None:
        """Replace this connection and whatever was open at the same time.

        Those in use follow when they come back.
        """
        # those that come back later with the same fault were open at the time, and are gone already
        if conn.opened_at > self._replaced_at:
            _log.warning("connections_replaced", pool=self.name, error=conn.fault)
            self._replaced_at = time.monotonic()
            await self.drain()


def make_pool(
    dsn: str,
    *,
    name: str,
    limits: PoolLimits,
    prepared_statements: bool = True,
    direct: bool = True,
    writes: bool = True,
) -> Pool:
    """Make a pool that is not open yet: `await pool.open()`.

    `name` shows in pg_stat_activity; `direct=False` behind a pooler in transaction mode;
    `writes=False` to read from a standby.
    """

    async def configure(connection: AsyncConnection[Any]) -> None:
        assert isinstance(connection, ServiceConnection)  # noqa: S101 - of the classes below
        # None: behind some poolers a prepared statement may be on another server connection
        connection.prepare_threshold = _PREPARE_AFTER if prepared_statements else None
        connection.answer_seconds = limits.answer_seconds
        if isinstance(connection, PooledConnection):
            await prepare_pooled_session(connection)
            connection.limit_transactions(
                limits.timeouts(server_version=connection.info.server_version)
            )
        else:
            await prepare_session(connection, limits)
        # only here: a login that the server took and then failed to set up is still a fault
        pool.fault = None

    async def check(connection: AsyncConnection[Any]) -> None:
        assert isinstance(connection, ServiceConnection)  # noqa: S101 - of the classes below
        try:
            await check_idle(connection)
        except psycopg.Error:
            # what ended this one has most likely ended its siblings
            await pool.replace_all(connection)
            raise

    def failed(error: psycopg.Error) -> None:
        pool.failed(error)

    options = {"autocommit": True, "failed": failed, **parameters(dsn, name, writes=writes)}
    pool = Pool(
        dsn,
        connection_class=RetryingConnection if direct else PooledConnection,
        kwargs=options if direct else {**options, "cursor_factory": PooledCursor},
        name=name,
        min_size=min(limits.connections_min, limits.connections_max),
        max_size=limits.connections_max,
        timeout=limits.acquire_seconds,
        away_seconds=limits.away_seconds,
        max_waiting=limits.waiting_max,
        reconnect_timeout=RECONNECT_SECONDS,
        max_idle=limits.idle_seconds,
        configure=configure,
        check=check,
    )
    return pool


async def check_idle(connection: AsyncConnection[Any]) -> None:
    """Raise for a connection that died while it was idle.

    Asks the server only if the socket is readable, by an end of file or a closing message: a
    healthy connection costs one system call.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    # an idle server sends nothing: whatever is readable says that the session has ended
    if poll.poll(0):
        await AsyncConnectionPool.check_connection(connection)


def connection_fault(pool: object) -> str | None:
    """Return why this pool could not open a connection lately, without names and addresses; None:
    it could, or is no pool.
    """
    return (
        login_fault(pool.fault)
        if isinstance(pool, Pool) and isinstance(pool.fault, psycopg.OperationalError)
        else None
    )


class Connections(Protocol):
    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        """Provide a connection for a while."""


@dataclass(frozen=True, slots=True)
class ReadablePool:
    """The pool; while the server that it finds only reads, `readers`, made with `writes=False`.

    For pages that say so. Whoever writes, or must not answer from a server that is behind, keeps to
    the pool itself, which leaves such a server.
    """

    pool: Pool
    readers: Pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        async with AsyncExitStack() as stack:
            yield await self._acquired(stack)

    async def _acquired(self, stack: AsyncExitStack) -> AsyncConnection[Any]:
        if not self.pool.only_reads:
            try:
                return await stack.enter_async_context(self.pool.connection())
            except PoolTimeout:
                if not self.pool.only_reads:
                    raise
        return await stack.enter_async_context(self.readers.connection())
