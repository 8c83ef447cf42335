"""The bodies of a day's partition, by id, in batches bounded by rows and bytes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from statesvc.bodies.body_key import unwrap_body_key
from statesvc.database.queries import queries
from statesvc.files.body_record import FIRST, BodyRecord, bounds
from statesvc.log.event_store import read_streams

_SQL = queries("statesvc.addons.archive", "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBatchLimits:
    bodies_max: int = 200
    bytes_max: int = 2 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HotBody:
    """A body of the partition, with its wrapped key.

    `held`: a legal hold is on one of its shipments.
    """

    message_id: UUID
    received_at: datetime
    carrier_id: str
    commitment: bytes
    headers: Mapping[str, str]
    sealed: bytes = field(repr=False)
    sealed_key: bytes | None = field(repr=False)
    shipments: Sequence[UUID]
    held: bool

    def record(self, sealed: bytes) -> BodyRecord:
        return BodyRecord(
            message_id=self.message_id,
            received_at=self.received_at,
            carrier_id=self.carrier_id,
            commitment=self.commitment,
            headers=self.headers,
            sealed=sealed,
        )


@dataclass(frozen=True, slots=True)
class BodyBatch:
    """Some bodies, and the keys of the shipments that they name."""

    bodies: Sequence[HotBody]
    keys: Mapping[UUID, SealingKey | None] = field(repr=False)

    def body_key(self, body: HotBody, keyring: Keyring) -> SealingKey | None:
        """Return the body's key; None: erased. Raises SealError."""
        return unwrap_body_key(
            body.sealed_key,
            body.shipments,
            message_id=body.message_id,
            keys=self.keys,
            keyring=keyring,
        )


async def any_hold(connection: AsyncConnection[Any]) -> bool:
    row = await (await connection.execute(_SQL["any_hold"])).fetchone()
    return row is not None and bool(row[0])


async def day_batches(
    connection: AsyncConnection[Any], keyring: Keyring, day: date, *, limits: DayBatchLimits
) -> AsyncIterator[BodyBatch]:
    """Yield all bodies of the day.

    Each batch is a snapshot of its own: a message may settle between two.
    """
    asked = {
        **bounds(day),
        "holds": await any_hold(connection),
        "limit": limits.bodies_max,
        "bytes_max": limits.bytes_max,
    }
    after = FIRST
    while True:
        cursor = connection.cursor(binary=True, row_factory=class_row(HotBody))
        bodies = await (
            await cursor.execute(_SQL["day_bodies"], {**asked, "after": after})
        ).fetchall()
        if not bodies:
            return
        streams = await read_streams(
            connection, keyring, {shipment_id for body in bodies for shipment_id in body.shipments}
        )
        yield BodyBatch(
            bodies,
            {shipment_id: stream.key for shipment_id, stream in (await streams.rows()).items()},
        )
        after = bodies[-1].message_id
