"""Messages from another broker into the inbox, or whole to the dead letters: one transaction a batch.

The receipt that recognises a carrier's retry recognises these too: its digest is of the task's id, not of the body, and it is retained
until long after the ETA. So a batch may be stored again, by anyone, without effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
from psycopg import AsyncConnection

from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.errors import Cause
from statesvc.bodies.sealed_message import SealedMessage, put_columns, seal_message
from statesvc.database.queries import queries
from statesvc.shovel.source_message import Taken
from statesvc.shovel.task_mapping import Mapped, Unmapped, unmapped_identity

RECEIPT_DAYS: Final = 90
"""How long after its ETA, or its transfer, a message is recognised."""
LANE: Final = "shovel"
"""Stands for the carrier of dead letters that have none. No carrier may be called so."""
_ETA_MAX: Final = datetime(9000, 1, 1, tzinfo=UTC)

_SQL = queries("statesvc.shovel", "inbox_store")


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """The outcome of a batch; `known` were stored before."""

    moved: int = 0
    dead_letters: int = 0
    known: int = 0


def digest(keyring: Keyring, identity: bytes) -> bytes:
    """Of the receipt of a message with this identity."""
    return keyring.digest(b"shovel\x1f" + identity)[:DIGEST_BYTES]


async def store(
    connection: AsyncConnection[Any], keyring: Keyring, batch: Sequence[tuple[Taken, Mapped | Unmapped]], *, now: datetime
) -> StoredBatch:
    """All or none; durable when it returns: the connection is in autocommit."""
    messages = [_sealed(keyring, taken, found) for taken, found in batch]
    etas = [_eta(found) for _, found in batch]
    async with connection.transaction():
        cursor = await connection.execute(
            _SQL["put"],
            {
                **put_columns(messages),
                "etas": etas,
                "receipts_until": [max(now, eta or now) + timedelta(days=RECEIPT_DAYS) for eta in etas],
            },
            binary=True,
        )
        is_new = [not duplicate for _, _, duplicate in await cursor.fetchall()]
        buried = [
            (message.message_id, found)
            for message, (_, found), new in zip(messages, batch, is_new, strict=True)
            if new and isinstance(found, Unmapped)
        ]
        if buried:
            parameters = {
                "message_ids": [message_id for message_id, _ in buried],
                "causes": [found.cause.value for _, found in buried],
                "details": [found.detail for _, found in buried],
            }
            await connection.execute(_SQL["bury"], parameters)
    new = sum(is_new)
    return StoredBatch(moved=new - len(buried), dead_letters=len(buried), known=len(batch) - new)


async def resolve_mapped(connection: AsyncConnection[Any], keyring: Keyring, found: Sequence[Mapped | Unmapped], *, actor: str) -> None:
    """The dead letters of messages that are in the inbox now."""
    digests = [digest(keyring, unmapped_identity(one.identity)) for one in found if isinstance(one, Mapped)]
    await connection.execute(_SQL["resolve_mapped"], {"digests": digests, "actor": actor, "cause": Cause.UNMAPPED_TASK.value})


def _sealed(keyring: Keyring, taken: Taken, found: Mapped | Unmapped) -> SealedMessage:
    if isinstance(found, Mapped):
        message = seal_message(keyring, found.carrier_id, found.body, found.headers)
    else:
        message = seal_message(keyring, LANE, taken.body, _origin(taken))
    return replace(message, digest=digest(keyring, found.identity))


def _origin(taken: Taken) -> str:
    return orjson.dumps({"transport": taken.transport.value, "queue": taken.queue}).decode()


def _eta(found: Mapped | Unmapped) -> datetime | None:
    """PostgreSQL's own range is wider than Python's, but a receipt ends later than its ETA."""
    eta = found.task.eta if isinstance(found, Mapped) else None
    return None if eta is None else min(eta, _ETA_MAX)
