"""Writing a group of messages: one statement, which is one commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.bodies.sealed_message import SealedMessage, put_columns
from statesvc.database.queries import queries

_SQL = queries("statesvc.ingress", "put")


@dataclass(frozen=True, slots=True)
class Stored:
    """The message is in the inbox, or was. A byte-identical retry has the first message's id."""

    message_id: UUID
    duplicate: bool


async def put(connection: AsyncConnection[Any], messages: Sequence[SealedMessage]) -> list[Stored]:
    """Store them in one transaction, all or none; return in their order. Durable when it returns: the connection is in autocommit."""
    cursor = await connection.execute(
        _SQL["put"],
        put_columns(messages),
        binary=True,
    )
    return [Stored(message_id, duplicate) for _, message_id, duplicate in await cursor.fetchall()]
