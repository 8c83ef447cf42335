"""Writing a group of messages: one statement, one round trip."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import ExecStatus

from events.sql.queries import queries
from statesvc.ingress.sealed_message import SealedMessage

_SQL = queries("statesvc.ingress", "put")


@dataclass(frozen=True, slots=True)
class Stored:
    """The message is durable. Of a byte-identical retry: the first message's id. `announced`: workers are being woken for it."""

    message_id: UUID
    duplicate: bool
    announced: bool = False


async def put(connection: AsyncConnection[Any], messages: Sequence[SealedMessage]) -> list[Stored]:
    """Stores them in one transaction, all or none; answers in their order. On a connection in autocommit they are durable then."""
    return await _stored(await _send(connection, messages), announced=False)


async def put_and_wake(
    connection: AsyncConnection[Any], messages: Sequence[SealedMessage], *, payload: str, answered: Callable[[list[Stored]], None]
) -> bool:
    """As `put`, and right behind it, in a transaction of its own, the wake-up of the workers with this payload.

    In the same transaction it would lock the whole cluster through the flush to disk; sent along with it, it waits for no other process.
    `answered` is called when the messages are durable. Returns whether the wake-up went out too.
    """
    cursor: AsyncCursor[Any] | None = None
    try:
        async with connection.pipeline() as pipeline:
            cursor = await _send(connection, messages)
            # what `pipeline.sync()` queues, but that waits for the answer
            pipeline.command_queue.append(connection.pgconn.pipeline_sync)
            pipeline.result_queue.append(None)
            await connection.execute(_SQL["wake"], {"payload": payload})
            answered(await _stored(cursor, announced=True))
    except psycopg.Error:
        # the failure of either statement surfaces wherever the pipeline reads
        if cursor is None or cursor.pgresult is None or cursor.pgresult.status != ExecStatus.TUPLES_OK:
            raise
        answered(await _stored(cursor, announced=True))
        return False
    return True


async def _send(connection: AsyncConnection[Any], messages: Sequence[SealedMessage]) -> AsyncCursor[Any]:
    return await connection.execute(
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


async def _stored(cursor: AsyncCursor[Any], *, announced: bool) -> list[Stored]:
    return [Stored(message_id, duplicate, announced) for _, message_id, duplicate in await cursor.fetchall()]
