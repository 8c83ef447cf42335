"""A worker reads in the zone of the account, says so on record, and knows a scan again
that it read in another.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime

from events.carriers import CARRIERS
from tests.world.worker_harness import WorkerHarness


def shippo(status: str) -> bytes:
    event = {"status": "TRANSIT", "status_date": "2026-03-01T10:00:00Z"}
    return json.dumps({"tracking_number": "9", "eta": status, "tracking_history": [event]}).encode()


async def test_the_zone_stands_in_the_version_and_a_scan_is_not_appended_again_in_another(
    harness: WorkerHarness,
) -> None:
    zoned = {**CARRIERS, "shippo": CARRIERS["shippo"].in_zones("Asia/Ho_Chi_Minh")}
    harness.context = replace(harness.context, carriers=zoned)
    await harness.push(shippo("1"), carrier_id="shippo")
    await harness.work()
    harness.context = replace(harness.context, carriers=CARRIERS)
    await harness.push(shippo("2"), carrier_id="shippo")
    await harness.work()
    rows = await harness.rows(
        "SELECT normalizer, occurred_at, occurred_offset_seconds FROM statesvc.event"
    )
    assert rows == [("shippo@1+zAsia/Ho_Chi_Minh", datetime(2026, 3, 1, 3, tzinfo=UTC), 7 * 3600)]
