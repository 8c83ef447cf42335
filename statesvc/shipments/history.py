"""A shipment's history: its events in the order in which the fold reads them.

A page reads all events of the shipment (a few dozen), because a late scan may stand anywhere. A cursor names the last event shown, which
never goes away: scans that arrive between two pages move nothing that was shown.
"""

from dataclasses import dataclass
from typing import Any

import orjson
from psycopg import AsyncConnection

from projections.fact import fact_from_canonical
from statesvc.database.queries import queries
from statesvc.shipments.event_document import Seal, event_json
from statesvc.shipments.find import Shipment
from statesvc.shipments.personal import Opener

_SQL = queries("statesvc.shipments", "history")


@dataclass(frozen=True, slots=True)
class Page:
    """Some events in timeline order; `next_after` is the version to go on after, None at the end."""

    events: list[dict[str, Any]]
    next_after: int | None


async def timeline(
    connection: AsyncConnection[Any], shipment: Shipment, *, after: int | None, limit: int, opener: Opener | None
) -> Page | None:
    """A page after the event with version `after` (None: from the start). None when the shipment has no such event."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(_SQL["events_of_shipment"], shipment.recorded())
    rows = [(orjson.loads(canonical), sealed_part, Seal(*seal)) for canonical, sealed_part, *seal in await cursor.fetchall()]
    rows.sort(key=lambda row: fact_from_canonical(row[0]).key)
    start = 0
    if after is not None:
        places = [place for place, (document, *_) in enumerate(rows) if document["version"] == after]
        if not places:
            return None
        start = places[0] + 1
    shown = rows[start : start + limit]
    events = [event_json(document, seal, sealed_part=sealed_part, opener=opener) for document, sealed_part, seal in shown]
    return Page(events, shown[-1][0]["version"] if start + limit < len(rows) else None)
