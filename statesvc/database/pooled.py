"""Connections through a pooler in transaction mode, which gives each transaction another server connection.

What a session sets there would affect other clients and be missing here, so the time limits, and any other setting that the role or the
database has otherwise than we need it, travel with each transaction: as its first statements where the code opens one; a lone statement
follows them in a pipeline, which PostgreSQL runs as one transaction. A lone statement still costs one round trip.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, LiteralString

from psycopg import AsyncCursor, AsyncTransaction
from psycopg.pq import TransactionStatus

from statesvc.database.queries import queries
from statesvc.database.retrying_connection import RetryingConnection
from statesvc.database.session_settings import ISOLATION, setting_arrays

_OF_STATEMENTS: Final = frozenset({"statement_timeout", "lock_timeout"})
"""What limits one statement; the other limits are those of a transaction that goes on."""

_SQL = queries("statesvc.database", "session_settings")


class PooledConnection(RetryingConnection):
    """Has limits as soon as `limit_transactions` was called."""

    _settings: Mapping[str, str] = MappingProxyType({})
    _limits: tuple[LiteralString, ...] = ()
    _begins: bool = False

    def limit_transactions(self, settings: Mapping[LiteralString, LiteralString], timeouts: Mapping[LiteralString, int]) -> None:
        """From now on each transaction has these settings and limits, and so has each statement outside of one."""
        self._begins = ISOLATION in settings
        lone = {name: str(milliseconds) for name, milliseconds in timeouts.items() if name in _OF_STATEMENTS}
        self._settings = MappingProxyType({**settings, **lone})
        self._limits = (
            # a default is read when a transaction begins: this one has begun
            *(("SET TRANSACTION ISOLATION LEVEL READ COMMITTED",) if self._begins else ()),
            *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items()),
            *(f"SET LOCAL {name} = {milliseconds:d}" for name, milliseconds in timeouts.items()),
        )

    @property
    def is_idle(self) -> bool:
        """No transaction is open, and nothing is under way that may open one."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    @asynccontextmanager
    async def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,  # noqa: FBT001, FBT002 - psycopg's signature
    ) -> AsyncIterator[AsyncTransaction]:
        """As psycopg's; the outermost one begins with the limits."""
        outermost = self.is_idle
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            if outermost and self.pgconn.pipeline_status:
                await self._send_limits()
            elif outermost:
                async with self.pipeline():
                    await self._send_limits()
            yield transaction

    @property
    def limits(self) -> tuple[LiteralString, ...]:
        """The statements that a transaction begins with."""
        # SET, not a query with set_config: that would fix the snapshot before the transaction can choose its isolation
        return self._limits

    async def _send_limits(self) -> None:
        for limit in self._limits:
            await self.execute(limit, prepare=False)

    @property
    def begins(self) -> bool:
        """Whether a lone statement needs a transaction, because it would begin with another isolation than ours."""
        return self._begins

    async def limit_lone_statement(self) -> None:
        """Limits the transaction that a pipeline begins by itself; there SET LOCAL would work, and warn each time that it does not."""
        if self._settings:
            await AsyncCursor(self).execute(_SQL["set_local"], setting_arrays(self._settings), prepare=False)


class PooledCursor(AsyncCursor[Any]):
    """Of a `PooledConnection`: what it executes outside a transaction has the connection's limits."""

    __slots__ = ()

    async def execute(self, *arguments: Any, **options: Any) -> "PooledCursor":  # noqa: ANN401 - psycopg's overloads, passed on
        """As psycopg's."""
        connection = self.connection
        if isinstance(connection, PooledConnection) and connection.is_idle and connection.begins:
            async with connection.transaction():
                await super().execute(*arguments, **options)
        elif isinstance(connection, PooledConnection) and connection.is_idle:
            async with connection.pipeline():
                await connection.limit_lone_statement()
                await super().execute(*arguments, **options)
        else:
            await super().execute(*arguments, **options)
        return self
