"""A shipment with 3,000 scans: what is asked of one shipment costs most there."""

import json
from datetime import timedelta
from typing import Final

from tests.bench.traffic import NOW
from tests.bench.whole import WholeService

LONG_SHIPMENT: Final = "/v1/shipments/canonical/BENCH3000"
"""Its path."""
LONG_SHIPMENT_EVENTS: Final = 3_000
_EVENTS_A_REQUEST: Final = 500


async def submit_long_shipment(service: WholeService) -> None:
    """Submit all scans, in a few requests."""
    lines = [
        json.dumps(
            {
                "carrier_id": "canonical",
                "event_id": f"bench-{number}",
                "tracking_number": "BENCH3000",
                "kind": "scan",
                "status": "in_transit",
                "occurred_at": (NOW - timedelta(minutes=LONG_SHIPMENT_EVENTS - number)).isoformat(),
                "description": f"Scan {number}",
                "location": {"city": "Chicago", "region": "IL", "country": "US"},
            }
        ).encode()
        for number in range(LONG_SHIPMENT_EVENTS)
    ]
    for start in range(0, LONG_SHIPMENT_EVENTS, _EVENTS_A_REQUEST):
        body = b"\n".join(lines[start : start + _EVENTS_A_REQUEST])
        await service.post("/v1/events", body, content_type="application/x-ndjson")
