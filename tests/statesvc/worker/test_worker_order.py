"""Order in which the events of one message come into the log: as they happened, however
the carrier lists them.
"""

import json
from typing import Any

import pytest

from statesvc.log.json_compression import decompress_json
from tests.world.shop import Shop

SCANS: list[dict[str, Any]] = [
    {"number": "P1", "status": "picked_up", "minute": 1, "code": "A"},
    {"number": "P1", "status": "in_transit", "minute": 5, "code": "B"},
    {"number": "P1", "status": "in_transit", "minute": 5, "code": "C"},
    {"number": "P1", "status": "delivered", "minute": 9, "code": "D"},
]


@pytest.mark.parametrize(
    "listed", [(0, 1, 2, 3), (3, 2, 1, 0)], ids=["oldest first", "newest first"]
)
async def test_versions_grow_with_time_and_the_transition_names_the_newest_scan(
    shop: Shop, listed: tuple[int, ...]
) -> None:
    await shop.say(*(SCANS[place] for place in listed))
    events = await shop.events("P1")
    assert [event["raw"]["code"] for event in events] == ["A", "B", "C", "D"]
    named = json.loads(
        decompress_json(await shop.value("SELECT canonical FROM statesvc.transition"))
    )
    assert (named["event_id"], named["sequence"]) == (events[-1]["event_id"], 4)


async def test_scans_that_are_listed_anyhow_are_sorted_and_keep_their_order_within_an_instant(
    shop: Shop,
) -> None:
    await shop.say(*(SCANS[place] for place in (1, 3, 0, 2)))
    assert [event["raw"]["code"] for event in await shop.events("P1")] == ["A", "B", "C", "D"]
