"""A message: its outcome, the place of its body, and the body for readers with scope `pii`."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.crypto.keyring import Keyring
from events.crypto.sealing import unsalted
from statesvc.bodies.find_bodies import (
    ArchiveUnavailableError,
    BodyLocation,
    body_locations,
    find_bodies,
)
from statesvc.bodies.sealed_message import open_committed, unix_ms_of, unwrap_body_key
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.body_record import BodyRecord
from statesvc.log.event_store import read_streams

_SQL = queries("statesvc.shipments", "stored_message")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message as the database knows it. `sealed_key` None: its body was erased."""

    rank: int
    state: str
    message_id: UUID
    carrier_id: str
    received_at: datetime
    settled_at: datetime | None
    outcome: str | None
    events: int | None
    attempts: int
    normalizer: str | None
    worker: str | None
    shipments: list[UUID]
    sealed_key: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """A message and its body. `stored` None: deleted, or `unavailable` gives the reason."""

    message: StoredMessage
    place: BodyLocation
    stored: BodyRecord | None
    unavailable: str | None


async def find_message(
    connection: AsyncConnection[Any], message_id: UUID, *, folder: ArchivePath | None
) -> FoundMessage | None:
    cursor = connection.cursor(binary=True, row_factory=class_row(StoredMessage))
    message = await (await cursor.execute(_SQL["message"], {"message_id": message_id})).fetchone()
    if message is None:
        return None
    message_id = message.message_id
    wanted = [(message_id, message.received_at)]
    place = (await body_locations(connection, wanted))[message_id]
    if message.sealed_key is None:
        place = BodyLocation.ERASED
    try:
        stored = (
            None
            if place is BodyLocation.ERASED
            else (await find_bodies(connection, folder, wanted)).get(message_id)
        )
    except ArchiveUnavailableError as error:
        return FoundMessage(message=message, place=place, stored=None, unavailable=str(error))
    return FoundMessage(message=message, place=place, stored=stored, unavailable=None)


async def may_be_spooled(connection: AsyncConnection[Any], message_id: UUID) -> bool:
    """Return whether an id without a message may be that of one that waits in a spool."""
    named = {"unix_ms": unix_ms_of(message_id)}
    row = await (await connection.execute(_SQL["may_be_spooled"], named)).fetchone()
    return row == (True,)


async def open_body(
    connection: AsyncConnection[Any], found: FoundMessage, keyring: Keyring
) -> bytes | None:
    """Open the body byte for byte as the carrier sent it, proven by its commitment; None: it is no
    more.

    `SealError` where it was changed.
    """
    message, stored = found.message, found.stored
    if stored is None:
        return None
    streams = await (await read_streams(connection, keyring, message.shipments)).rows()
    keys = {shipment_id: stream.key for shipment_id, stream in streams.items()}
    key = unwrap_body_key(
        message.sealed_key,
        message.shipments,
        message_id=message.message_id,
        keys=keys,
        keyring=keyring,
    )
    if key is None:
        return None
    return unsalted(
        open_committed(
            key, stored.sealed, message_id=message.message_id, committed=stored.commitment
        )
    )
