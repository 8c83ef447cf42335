"""Shipments at an instant in the past: folded from the entries that were sealed by then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.entry.kinds import leaf_hash_of
from projections.row import ShipmentRow, is_observation, rebuilt_row
from statesvc.database.queries import queries
from statesvc.log.checkpoints import latest_head
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.find import (
    OTHERS_MAX,
    FoundShipment,
    OtherDiscriminators,
    StoredShipment,
    month_end,
)
from statesvc.shipments.models import AsOf

_SQL = queries("statesvc.shipments", "as_of")
_SHIPMENT: Final = itemgetter(0)
_NOT_SHOWN: Final = {"number", "promised_until", "lane", "due_at", "state"}
_SHOWN: Final = [name for name in ShipmentRow._fields if name not in _NOT_SHOWN]


@dataclass(frozen=True, slots=True)
class Horizon:
    """The first `size` entries of the log.

    `clamped`: the request was later than the last final `at`.
    """

    size: int
    at: datetime
    clamped: bool

    @property
    def members(self) -> AsOf:
        """Members of an answer.

        The index is that of the last entry; None: nothing was sealed by then.
        """
        return {
            "as_of": self.at,
            "as_of_log_index": self.size - 1 if self.size else None,
            "as_of_clamped": self.clamped,
        }

    def holds(self, log_index: int | None) -> bool:
        return log_index is not None and log_index < self.size


async def horizon_at(connection: AsyncConnection[Any], instant: datetime) -> Horizon:
    """Return the entries sealed at `instant`.

    Past the newest head there may be entries still to be sealed, so it is clamped to that.
    """
    newest = await latest_head(connection)
    if newest is None:
        return Horizon(0, instant, clamped=False)
    # clamped, and said so: later entries may still get a time of sealing before `instant`
    if instant > newest.created_at:
        return Horizon(newest.tree_size, newest.created_at, clamped=True)
    # by the heads' times, not the entries': an entry is known to the outside when a head covers it
    row = await (await connection.execute(_SQL["size_at"], {"instant": instant})).fetchone()
    return Horizon(row[0] if row else 0, instant, clamped=False)


async def find_shipment_at(
    connection: AsyncConnection[Any],
    horizon: Horizon,
    *,
    carrier_id: str,
    number: str,
    discriminator: str | None = None,
    shipment_id: UUID | None = None,
) -> FoundShipment | OtherDiscriminators | None:
    """Find a shipment in the log as sealed then. Keys are today's, so an erasure reaches back."""
    asked = {"carrier_id": carrier_id, "number": number}
    since, until, last = await (
        await connection.execute(_SQL["recorded_span"], asked)
    ).fetchone() or (None, None, None)
    # never named at all: the events need not be searched for it
    if last is None:
        return None
    span = {"since": since, "until": until, "month_end": month_end(last), "size": horizon.size}
    cursor = await connection.execute(
        # a prepared plan would be for all months
        _SQL["sealed_events_of_number"],
        asked | span,
        binary=True,
        prepare=False,
    )
    known = [
        _shipment(each, list(rows))
        for each, rows in groupby(await cursor.fetchall(), key=_SHIPMENT)
    ]
    if not known:
        return None
    known.sort(
        key=lambda one: (
            -one.last_event_at.timestamp(),
            -one.first_recorded_at.timestamp(),
            one.shipment_id,
        )
    )
    # a stable sort: what was asked for comes first, the rest stays latest first
    known.sort(key=lambda one: (one.shipment_id != shipment_id, one.discriminator != discriminator))
    if discriminator is not None and known[0].discriminator != discriminator:
        return OtherDiscriminators(len(known))
    return FoundShipment(known[0], known[1 : OTHERS_MAX + 1])


def _shipment(
    shipment_id: UUID, rows: Sequence[tuple[UUID, bytes, bytes | None, datetime]]
) -> StoredShipment:
    entries = [decompress_json(canonical) for _, canonical, _, _ in rows]
    row = rebuilt_row(shipment_id, entries)
    head_hash = leaf_hash_of(
        # an observation is no event of the stream: it names the head, and does not become it
        [canonical for canonical in entries if not is_observation(canonical)][-1]
    )
    _, _, sealed_key, last_entry_at = rows[0]
    return StoredShipment(
        **{name: getattr(row, name) for name in _SHOWN},
        sealed_key=sealed_key,
        head_hash=head_hash,
        last_entry_at=last_entry_at,
    )
