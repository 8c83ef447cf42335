"""Lookup of one shipment in the projection, by its number or its id.

A carrier that reuses a number makes another shipment: the answer is the latest by event time, and
`others` names the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from events.crypto.keyring import Keyring
from projections.row import ShipmentRow
from projections.state import last_scan_id
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.local_time import local_times
from statesvc.shipments.models import ListedShipment, OtherShipment, OtherSource, ShipmentSummary
from statesvc.shipments.personal import Opener

_SQL = queries("statesvc.shipments", "find")

# Number of further shipments of one number that an answer lists.
OTHERS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredShipment:
    """A row of the projection, with `sealed_key` for its personal parts (None: erased)."""

    shipment_id: UUID
    carrier_id: str
    tracking_number: str
    discriminator: str
    status: str
    reason: str | None
    status_since: datetime | None
    terminal: bool
    flags: list[str]
    version: int
    last_event_at: datetime
    recorded_at: datetime
    first_recorded_at: datetime
    estimated_delivery: str | None
    service: str | None
    delivered_at: datetime | None
    attempts: int
    signed_by_event_id: str | None
    sealed_key: bytes | None = field(repr=False)
    head_hash: bytes
    """The leaf hash of its last event."""
    last_entry_at: datetime
    """Time of its last entry of any kind; no later month has entries of it."""
    parcel_id: UUID | None = None
    """Parcel that other sources may push too."""
    last_scan_id: str | None = None
    """Event id of the newest scan; None: no scan yet."""

    def recorded(self) -> dict[str, Any]:
        """Return the bounds of queries for the shipment's entries, and its id.

        Events and transitions were recorded from `since` until `until`, other entries
        before `month_end`.
        """
        return {
            "shipment_id": self.shipment_id,
            "since": self.first_recorded_at,
            "until": self.recorded_at,
            "month_end": month_end(self.last_entry_at),
        }

    def opener(self, keyring: Keyring) -> Opener:
        return Opener.of_stream(keyring, self.shipment_id, self.sealed_key)


@dataclass(frozen=True, slots=True)
class FoundShipment:
    """The shipment asked for, and the others of the same number."""

    shipment: StoredShipment
    others: Sequence[StoredShipment]


@dataclass(frozen=True, slots=True)
class OtherDiscriminators:
    """The number is known, but not with the discriminator asked for; `count` shipments bear it."""

    count: int


class ShipmentNumber(NamedTuple):
    """Parts of a shipment's id, each as it is compared."""

    carrier_id: str
    number: str
    discriminator: str


async def number_of_shipment(
    connection: AsyncConnection[Any], shipment_id: UUID
) -> ShipmentNumber | None:
    row = await (
        await connection.execute(_SQL["number_of_shipment"], {"shipment_id": shipment_id})
    ).fetchone()
    return None if row is None else ShipmentNumber(*row)


async def find_shipment(
    connection: AsyncConnection[Any],
    *,
    carrier_id: str,
    number: str,
    discriminator: str | None = None,
    shipment_id: UUID | None = None,
) -> FoundShipment | OtherDiscriminators | None:
    """Find a shipment by its number: with this id or discriminator if given, else the latest."""
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    await cursor.execute(
        _SQL["shipments_of_number"],
        {
            "carrier_id": carrier_id,
            "number": number,
            "shipment_id": shipment_id,
            "discriminator": discriminator,
            "limit": OTHERS_MAX + 1,
        },
    )
    rows = [stored_shipment(row) for row in await cursor.fetchall()]
    if not rows:
        return None
    # the query sorts the one asked for first: another in front means that there is none
    if discriminator is not None and rows[0].discriminator != discriminator:
        return OtherDiscriminators(len(rows))
    return FoundShipment(rows[0], rows[1:])


async def other_sources(
    connection: AsyncConnection[Any], shipment: StoredShipment
) -> list[OtherSource]:
    """Return the shipments of other carriers and numbers that are the same parcel, the latest
    first.
    """
    if shipment.parcel_id is None:
        return []
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    await cursor.execute(
        _SQL["other_sources"], {"shipment_id": shipment.shipment_id, "limit": OTHERS_MAX}
    )
    return [OtherSource(**row) for row in await cursor.fetchall()]  # type: ignore[typeddict-item]


async def recorded_outside(
    connection: AsyncConnection[Any], shipment: StoredShipment
) -> dict[str, Any]:
    """Return bounds for entries that may precede all events of a shipment.

    Its contradictions: `conflict_since` and `conflict_until`, None: there are none. Actions of
    operators: `acted_since`.
    """
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    row = (
        await (
            await cursor.execute(_SQL["recorded_outside"], {"shipment_id": shipment.shipment_id})
        ).fetchone()
        or {}
    )
    return {
        "conflict_since": row.get("conflict_since"),
        "conflict_until": row.get("conflict_until"),
        "acted_since": min(
            shipment.first_recorded_at, row.get("erased_at") or shipment.first_recorded_at
        ),
    }


async def signed_by(
    connection: AsyncConnection[Any], shipment: StoredShipment, keyring: Keyring
) -> str | None:
    """Return the signer of the delivery that counts; None: not signed, or erased."""
    # before the event is read: an erased shipment's part could not be opened
    if shipment.signed_by_event_id is None or shipment.sealed_key is None:
        return None
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        _SQL["sealed_part"],
        {**shipment.recorded(), "event_id": shipment.signed_by_event_id},
        prepare=False,
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    return shipment.opener(keyring).part(shipment.signed_by_event_id, row[0]).fields["signed_by"]


def month_end(instant: datetime) -> datetime:
    """Return when the next month begins, in UTC, as partitions of the log do."""
    month = instant.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    # no month has more days, so this is always within the next
    return (month + timedelta(days=31)).replace(day=1)


def stored_shipment(row: DictRow) -> StoredShipment:
    """Build a shipment from its row; a carrier's times keep their own offset."""
    state = orjson.loads(decompress_json(row.pop("state")))
    return StoredShipment(**{**row, **local_times(state)}, last_scan_id=last_scan_id(state))


def summary_of(shipment: StoredShipment | ShipmentRow) -> ShipmentSummary:
    return {
        "shipment_id": shipment.shipment_id,
        "carrier_id": shipment.carrier_id,
        "tracking_number": shipment.tracking_number,
        "discriminator": shipment.discriminator,
        "status": shipment.status,
        "reason": shipment.reason,
        "status_since": shipment.status_since,
        "terminal": shipment.terminal,
        "flags": shipment.flags,
        "version": shipment.version,
        "last_event_at": shipment.last_event_at,
        "recorded_at": shipment.recorded_at,
        "estimated_delivery": shipment.estimated_delivery,
        "service": shipment.service,
        "delivered_at": shipment.delivered_at,
        "attempts": shipment.attempts,
    }


def listed(shipment: StoredShipment) -> ListedShipment:
    return {**summary_of(shipment), "erased": shipment.sealed_key is None}


def other_of_number(shipment: StoredShipment) -> OtherShipment:
    return {
        "shipment_id": shipment.shipment_id,
        "discriminator": shipment.discriminator,
        "status": shipment.status,
        "terminal": shipment.terminal,
        "version": shipment.version,
        "last_event_at": shipment.last_event_at,
        "recorded_at": shipment.recorded_at,
    }
