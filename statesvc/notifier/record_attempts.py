"""Attempts are appended to the log, in the transaction that settles what came of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError, SealingKey
from statesvc.database.pending import columns
from statesvc.database.queries import queries
from statesvc.delivery.attempt_entry import DeliveryAttempt, attempt_columns, attempt_row
from statesvc.log.batch_row import write_batch

_SQL = queries("statesvc.notifier", "record_attempts")
_COLUMNS = (
    *("shipment_ids", "sequences", "subscription_ids", "numbers", "started_ats", "webhook_ids", "outcomes", "status_codes"),
    *("durations_ms", "leaf_hashes", "canonicals", "sealed_parts"),
)
_log = structlog.get_logger()


async def record_attempts(
    connection: AsyncConnection[Any], keyring: Keyring, attempts: Sequence[DeliveryAttempt], *, batch_id: int, now: datetime, worker: str
) -> None:
    """Appends them in their order, with the batch row of this transaction. None: nothing is written."""
    leaf_hashes = await append_attempts(connection, keyring, attempts, batch_id=batch_id, now=now)
    if leaf_hashes:
        await write_batch(connection, batch_id=batch_id, recorded_at=now, leaf_hashes=leaf_hashes, writer=worker)


async def append_attempts(
    connection: AsyncConnection[Any], keyring: Keyring, attempts: Sequence[DeliveryAttempt], *, batch_id: int, now: datetime
) -> list[bytes]:
    """Appends them as the first entries of a batch. Answers their leaf hashes: the caller writes the batch row."""
    if not attempts:
        return []
    keys: dict[UUID, SealingKey | None] = {}
    for attempt in attempts:
        if attempt.queued.shipment_id not in keys:
            keys[attempt.queued.shipment_id] = _open(keyring, attempt.queued.sealed_key, attempt.queued.shipment_id)
    rows = [attempt_row(attempt, key=keys[attempt.queued.shipment_id], recorded_at=now) for attempt in attempts]
    await connection.execute(
        _SQL["insert_attempts"], {"batch_id": batch_id, "recorded_at": now, **columns(attempt_columns(rows), _COLUMNS)}
    )
    return [row.leaf.leaf_hash for row in rows]


def _open(keyring: Keyring, sealed_key: bytes | None, shipment_id: UUID) -> SealingKey | None:
    if sealed_key is None:
        return None
    try:
        return keyring.open_shipment_key(sealed_key, shipment_id)
    except SealError as error:
        _log.error("shipment_key_unreadable", shipment_id=shipment_id, error=error)
        return None
