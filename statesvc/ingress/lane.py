"""One connection through which groups of messages are stored, one after the other.

It belongs to its lane alone, so that a group never waits for a pool's other users. A connection that died while idle (the
server was restarted) is noticed before anything is sent on it; one that dies during a group leaves the outcome unknown.
"""

import asyncio
import select
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import AsyncConnection

from events.sql.queries import queries
from statesvc.ingress.sealed_message import SealedMessage

_SQL = queries("statesvc.ingress", "put")

CONNECT_SECONDS: Final = 0.5
STATEMENT_SECONDS: Final = 1.0

Connect = Callable[[], Awaitable[AsyncConnection[Any]]]


@dataclass(frozen=True, slots=True)
class Stored:
    """The message is durable. Of a byte-identical retry: the first message's id."""

    message_id: UUID
    duplicate: bool


async def connect_lane(
    dsn: str, *, prepare_threshold: int | None = 5, statement_seconds: float = STATEMENT_SECONDS
) -> AsyncConnection[Any]:
    """An autocommit connection within 500 ms. `prepare_threshold` None: prepared statements are off."""
    async with asyncio.timeout(CONNECT_SECONDS):
        connection = await AsyncConnection.connect(
            dsn,
            autocommit=True,
            prepare_threshold=prepare_threshold,
            application_name="statesvc ingress",
            keepalives=1,
            keepalives_idle=5,
            keepalives_interval=3,
            keepalives_count=3,
        )
        await connection.execute(_SQL["settings"], {"statement_timeout": f"{statement_seconds * 1000:.0f}ms"})
    return connection


class Lane:
    """Connects when first needed, and again after each loss."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: AsyncConnection[Any] | None = None

    async def put(self, messages: Sequence[SealedMessage]) -> list[Stored]:
        """Stores them in one transaction; answers in their order. Raises psycopg's errors, and `TimeoutError` of the connect."""
        connection = await self._alive()
        cursor = await connection.execute(
            _SQL["put"],
            {
                "message_ids": [message.message_id for message in messages],
                "carrier_ids": [message.carrier_id for message in messages],
                "digests": [message.digest for message in messages],
                "sealed": [message.sealed for message in messages],
                "sealed_keys": [message.sealed_key for message in messages],
                "commitments": [message.commitment for message in messages],
                "headers": [message.headers for message in messages],
                "body_bytes": [message.body_bytes for message in messages],
            },
            binary=True,
        )
        return [Stored(message_id, duplicate) for _, message_id, duplicate in await cursor.fetchall()]

    @property
    def is_lost(self) -> bool:
        """True where there is no usable connection (any more)."""
        return self._connection is None or self._connection.closed or self._connection.broken

    async def close(self) -> None:
        """Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _alive(self) -> AsyncConnection[Any]:
        connection = self._connection
        if connection is not None and not self.is_lost and not _has_news(connection):
            return connection
        await self.close()
        self._connection = connection = await self._connect()
        return connection


def _has_news(connection: AsyncConnection[Any]) -> bool:
    """An idle server says nothing, except that it ends the session."""
    try:
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    except (OSError, ValueError, psycopg.OperationalError):
        return True
