"""A shipment's events as the API shows them, in the order of the fold.

An event is made of its canonical bytes; the types choose the keys, so a field of a later version is
left out.

A page reads all events of the shipment (a few dozen), because a late scan may sort anywhere. A
cursor names the last event shown, which never goes away: new scans do not move shown events.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from psycopg import AsyncConnection

from projections.fact import fact_from_canonical
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.find import StoredShipment
from statesvc.shipments.models import ErasureState, EventLocation, ShipmentEvent, StatedEvent
from statesvc.shipments.personal import HIDDEN, OpenedPart, Opener

_SQL = queries("statesvc.shipments", "timeline")


class Seal(NamedTuple):
    """Time at which an entry was sealed, and its index in the log; both None until then."""

    sealed_at: datetime | None
    log_index: int | None


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Some events in timeline order; `next_after` is the version to go on after, None at the
    end.
    """

    events: list[ShipmentEvent]
    next_after: int | None


async def timeline(
    connection: AsyncConnection[Any],
    shipment: StoredShipment,
    *,
    after: int | None,
    limit: int,
    opener: Opener | None,
) -> TimelinePage | None:
    """Return a page after the event with version `after` (None: from the start).

    None when the shipment has no such event.
    """
    cursor = connection.cursor(binary=True)
    await cursor.execute(_SQL["events_of_shipment"], shipment.recorded(), prepare=False)
    rows = [
        (orjson.loads(decompress_json(canonical)), sealed_part, Seal(*seal))
        for canonical, sealed_part, *seal in await cursor.fetchall()
    ]
    rows.sort(key=lambda row: fact_from_canonical(row[0]).key)
    start = 0
    if after is not None:
        places = [
            place for place, (document, *_) in enumerate(rows) if document["version"] == after
        ]
        if not places:
            return None
        start = places[0] + 1
    shown = rows[start : start + limit]
    events = [
        shipment_event(document, seal, sealed_part=sealed_part, opener=opener)
        for document, sealed_part, seal in shown
    ]
    return TimelinePage(events, shown[-1][0]["version"] if start + limit < len(rows) else None)


def stated_event(document: dict[str, Any], personal: OpenedPart) -> StatedEvent:
    """Return the carrier's statement; unknown fields are null.

    `document`: the event's parsed canonical form; `personal` is `HIDDEN` for readers without
    the scope.
    """
    known = document.get
    return {
        "carrier_id": document["carrier_id"],
        "event_id": document["event_id"],
        "tracking_number": document["tracking_number"],
        "discriminator": known("discriminator", ""),
        "kind": document["kind"],
        "occurred_at": document["occurred_at"],
        "occurred_at_raw": document["raw"].get("time", ""),
        "tz_source": document["tz_source"],
        "time_precision": document["time_precision"],
        "status": known("status"),
        "reason": known("reason"),
        "carrier_code": personal.carrier_code or known("carrier_code"),
        "by_category": known("by_category", False),
        "location": event_location(document, personal),
        "piece": known("piece"),
        "estimated_delivery": known("estimated_delivery"),
        "service": known("service"),
        "parcel_carrier_id": known("parcel_carrier_id"),
        "corrects": known("corrects"),
        "anchor": known("anchor"),
        **personal.fields,
    }


def event_location(document: dict[str, Any], personal: OpenedPart) -> EventLocation:
    place = document.get("location", {}).get
    return {
        "city": place("city"),
        "region": place("region"),
        "postal_code": personal.postal_code or place("postal_code"),
        "country": place("country"),
        "facility": personal.facility or place("facility"),
    }


def shipment_event(
    document: dict[str, Any], seal: Seal, *, sealed_part: bytes | None, opener: Opener | None
) -> ShipmentEvent:
    """Return an event with its position in the shipment's stream. `opener` None: no scope `pii`."""
    return {
        **stated_event(
            document, HIDDEN if opener is None else opener.part(document["event_id"], sealed_part)
        ),
        "version": document["version"],
        "recorded_at": document["recorded_at"],
        "sealed_at": seal.sealed_at,
        "log_index": seal.log_index,
        **_erased(opener),
    }


def _erased(opener: Opener | None) -> ErasureState:
    return {} if opener is None else {"erased": opener.erased}
