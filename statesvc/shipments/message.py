"""One message: what became of it, where its body is, and the body itself for readers with scope `pii`."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.crypto.keyring import Keyring
from events.crypto.sealing import unsalted
from statesvc.bodies.archive_file import BodyRecord
from statesvc.bodies.body_key import open_committed, unwrap_body_key
from statesvc.bodies.find_bodies import ArchiveUnavailableError, BodyLocation, body_locations, find_bodies
from statesvc.database.queries import queries
from statesvc.log.event_store import read_streams

_SQL = queries("statesvc.shipments", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
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
class Found:
    """A message and where its body is. `stored` None: it is no more, or `unavailable` says why it cannot be read here."""

    message: Message
    place: BodyLocation
    stored: BodyRecord | None
    unavailable: str | None


async def find_message(connection: AsyncConnection[Any], message_id: UUID, *, folder: Path | None) -> Found | None:
    """None: no such message."""
    cursor = connection.cursor(binary=True, row_factory=class_row(Message))
    message = await (await cursor.execute(_SQL["message"], {"message_id": message_id})).fetchone()
    if message is None:
        return None
    wanted = [(message_id, message.received_at)]
    place = (await body_locations(connection, wanted))[message_id]
    if message.sealed_key is None:
        place = BodyLocation.ERASED
    try:
        stored = None if place is BodyLocation.ERASED else (await find_bodies(connection, folder, wanted)).get(message_id)
    except ArchiveUnavailableError as error:
        return Found(message=message, place=place, stored=None, unavailable=str(error))
    return Found(message=message, place=place, stored=stored, unavailable=None)


async def open_body(connection: AsyncConnection[Any], found: Found, keyring: Keyring) -> bytes | None:
    """The body byte for byte as the carrier sent it, proven by its commitment; None: it is no more. `SealError` where it was changed."""
    message, stored = found.message, found.stored
    if stored is None:
        return None
    streams = await (await read_streams(connection, keyring, message.shipments)).rows()
    keys = {shipment_id: stream.key for shipment_id, stream in streams.items()}
    key = unwrap_body_key(message.sealed_key, message.shipments, message_id=message.message_id, keys=keys, keyring=keyring)
    if key is None:
        return None
    return unsalted(open_committed(key, stored.sealed, message_id=message.message_id, committed=stored.commitment))


def message_json(found: Found) -> dict[str, Any]:
    """Without the body."""
    message, stored = found.message, found.stored
    return {
        "message_id": message.message_id,
        "carrier_id": message.carrier_id,
        "received_at": message.received_at,
        "state": message.state,
        "settled_at": message.settled_at,
        "outcome": message.outcome,
        "events": message.events,
        "attempts": message.attempts,
        "normalizer": message.normalizer,
        "worker": message.worker,
        "shipments": message.shipments,
        "body_place": found.place.value,
        "body_commitment": None if stored is None else stored.commitment.hex(),
        "headers": None if stored is None else stored.headers,
    }


def body_json(body: bytes | None) -> Mapping[str, Any]:
    """The body in two spellings: exact, and readable where it is text."""
    if body is None:
        return {"body_bytes": None, "body_base64": None, "body_text": None}
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    return {"body_bytes": len(body), "body_base64": base64.b64encode(body).decode(), "body_text": text}
