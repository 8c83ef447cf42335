"""Connections through a pooler in transaction mode, with another server connection each time.

Session settings would affect other clients and be missing here; a server connection may be older
than a change of the role's defaults. So the time limits and required settings travel with each
transaction: as its first statements; a lone statement gets a transaction around it in a pipeline,
in one round trip.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any, Final, LiteralString

import psycopg
from psycopg import AsyncCursor, AsyncTransaction
from psycopg.pq import TransactionStatus

from statesvc.database.queries import queries
from statesvc.database.service_connection import RetryingConnection
from statesvc.database.session_settings import BEGIN, TRANSACTION_SETTINGS, setting_arrays

_SQL: Final = queries("statesvc.database", "session_settings")


class PooledConnection(RetryingConnection):
    """Has settings and limits as soon as `limit_transactions` was called."""

    _settings: Mapping[str, str] = MappingProxyType({})
    _limits: tuple[LiteralString, ...] = ()

    def limit_transactions(self, timeouts: Mapping[LiteralString, int]) -> None:
        """Give each transaction, and each statement outside of one, our settings and
        these limits from now on.
        """
        self._settings = MappingProxyType(
            {
                **TRANSACTION_SETTINGS,
                **{name: str(milliseconds) for name, milliseconds in timeouts.items()},
            }
        )
        self._limits = (
            *(f"SET LOCAL {name} = '{value}'" for name, value in TRANSACTION_SETTINGS.items()),
            *(f"SET LOCAL {name} = {milliseconds:d}" for name, milliseconds in timeouts.items()),
        )

    @property
    def is_idle(self) -> bool:
        """No transaction is open or about to open."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    @property
    def limits(self) -> tuple[LiteralString, ...]:
        """The statements that a transaction begins with."""
        # SET, not a query with set_config: that would fix the snapshot before the transaction
        # can choose its isolation
        return self._limits

    async def end_read_session(self) -> None:
        """Have the pooler log in again after a refused write: its connections keep old defaults."""
        with suppress(psycopg.Error):
            await self.execute(_SQL["end_read_session"], prepare=False)

    @asynccontextmanager
    async def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,  # noqa: FBT001, FBT002 - psycopg's signature
    ) -> AsyncIterator[AsyncTransaction]:
        """Open a transaction; the outermost begins with the limits."""
        # asked before `super` sends BEGIN: a savepoint inside has the limits already
        outermost = self.is_idle
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            if outermost and self.pgconn.pipeline_status:
                for limit in self._limits:
                    await self.execute(limit, prepare=False)
            # one text of several statements: a round trip each would double the cost of a short
            # transaction
            elif outermost and self._limits:
                await self.execute("; ".join(self._limits), prepare=False)
            yield transaction

    @asynccontextmanager
    async def lone_statement(self) -> AsyncIterator[None]:
        """Open the transaction of a lone statement, which travels together with it."""
        try:
            async with self.pipeline():
                cursor = AsyncCursor(self)
                # a pooler picks the server connection at BEGIN: settings before it would be
                # another's
                await cursor.execute(BEGIN, prepare=False)
                await cursor.execute(
                    _SQL["set_local"], setting_arrays(self._settings), prepare=False
                )
                yield
                # after a statement that failed the server skips it
                await cursor.execute("COMMIT", prepare=False)
        except BaseException:
            # where even this fails, the pool discards the connection
            with suppress(psycopg.Error):
                await self.rollback()
            raise


class PooledCursor(AsyncCursor[Any]):
    """Cursor of a `PooledConnection`: a statement outside a transaction has the
    connection's settings and limits.
    """

    __slots__ = ()

    # psycopg's overloads, passed on
    async def execute(self, *arguments: Any, **options: Any) -> "PooledCursor":  # noqa: ANN401
        connection = self.connection
        if isinstance(connection, PooledConnection) and connection.is_idle and connection.limits:
            async with connection.lone_statement():
                await super().execute(*arguments, **options)
        else:
            await super().execute(*arguments, **options)
        return self
