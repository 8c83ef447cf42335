"""Applying stated events at once: the worker's own append, without the inbox before it.

The request is a single message: its body, without lines that are no events, is sealed and stored
with the events that it caused, in the same transaction. A request without effect (all duplicates)
is not stored.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from events.carriers import canonical
from events.crypto.keyring import Keyring, body_context
from events.entry.kinds import Provenance
from events.event import Event
from events.vocabulary import Verdict
from statesvc.append.append_batch import AppendBatch
from statesvc.append.retry import RetryPolicy, run_transaction
from statesvc.append.transaction import append
from statesvc.bodies.sealed_message import SealedMessage, seal_message
from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.queries import Sender, queries, send
from statesvc.log.history import History
from statesvc.reading.read_message import Read

_SQL = queries("statesvc.api.submission", "submit")
_TRIES: Final = 4
# Time that it waits for shipments that other transactions have locked.
_LOCKED_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class LockedShipments:
    """Refusal: these carriers are on hold, and no event was applied."""

    carrier_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A verdict for each event, in their order. `changes` counts notified changes."""

    message_id: UUID
    verdicts: tuple[Verdict, ...]
    changes: int


async def read_clock(connection: AsyncConnection[Any]) -> datetime:
    ((at,),) = await (await connection.execute(_SQL["clock"])).fetchall()
    return cast("datetime", at)


async def submit(
    pool: AsyncConnectionPool[AsyncConnection[Any]],
    keyring: Keyring,
    events: Sequence[Event],
    *,
    body: bytes,
    writer: str,
    archive: History,
    notify: bool = True,
) -> Submitted | LockedShipments:
    """Apply `events`, stated by `body`, each once. A lock or serialization failure is tried again.

    `notify` False: subscriptions are not notified.
    """
    # once, before the tries: the events of each try commit to the same message
    sealed = seal_message(keyring, canonical.CARRIER_ID, body, "{}")

    async def transaction(connection: AsyncConnection[Any]) -> Submitted | LockedShipments:
        return await _submit(connection, keyring, events, sealed, writer=writer, notify=notify)

    policy = RetryPolicy(
        tries=_TRIES, archive=archive, locked_until=time.monotonic() + _LOCKED_SECONDS
    )
    return await run_transaction(pool.connection, transaction, policy)


async def _submit(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    events: Sequence[Event],
    sealed: SealedMessage,
    *,
    writer: str,
    notify: bool,
) -> Submitted | LockedShipments:
    async with pipelined_transaction(connection) as pipeline:
        carrier_ids = sorted({event.carrier_id for event in events})
        begun = await send(
            pipeline, _SQL["begin"], {"carrier_ids": carrier_ids}, lambda rows: rows[0]
        )
        received_at, held = await begun.rows()
        # in the transaction of each try: a hold may be placed between two
        if held:
            return LockedShipments(tuple(held))
        read = _read(keyring, events, sealed, received_at, notify=notify)
        batch = await append(AppendBatch(pipeline, keyring, [read], writer))
        # all duplicates: no entry names the message, so nothing would ever refer to it
        if batch.wrote:
            await _store(pipeline, sealed, batch, received_at, writer=writer)
    return Submitted(sealed.message_id, tuple(batch.verdicts), len(batch.changes))


def _read(
    keyring: Keyring,
    events: Sequence[Event],
    sealed: SealedMessage,
    received_at: datetime,
    *,
    notify: bool,
) -> Read:
    source = Provenance(
        message_id=sealed.message_id,
        body_commitment=sealed.commitment,
        received_at=received_at,
        normalizer=canonical.CARRIER_ID,
        normalizer_version=canonical.CARRIER.stable,
        notify=notify,
    )
    return Read(
        source=source,
        carrier_id=canonical.CARRIER_ID,
        events=tuple(events),
        rejections=(),
        body_key=keyring.inbox.unwrap(sealed.sealed_key, body_context(sealed.message_id)),
        sealed_key=sealed.sealed_key,
    )


async def _store(
    connection: Sender,
    sealed: SealedMessage,
    batch: AppendBatch,
    received_at: datetime,
    *,
    writer: str,
) -> None:
    (settlement,) = batch.settlements
    await connection.execute(
        _SQL["store_applied"],
        {
            "message_id": sealed.message_id,
            "received_at": received_at,
            "carrier_id": sealed.carrier_id,
            "commitment": sealed.commitment,
            "sealed": sealed.sealed,
            "events": settlement.events,
            "empty": settlement.empty,
            "normalizer": settlement.normalizer,
            "worker": writer,
            "shipments": list(settlement.shipments),
            "sealed_key": settlement.sealed_key,
        },
    )
