"""Sources of events' times: what is counted of them, and what a shipment says of a step without
one.
"""

from tests.world.shop import MORNING, Shop

TIMES = "SELECT status, status_since, delivered_at, last_event_at FROM statesvc.shipment"


async def test_appended_events_are_counted_by_where_their_offset_comes_from(shop: Shop) -> None:
    scan = {"number": "N1", "status": "in_transit"}
    await shop.say(scan)
    await shop.say(scan, envelope=2)
    await shop.say({"number": "N1", "status": "delivered", "is_timed": False})
    counted = shop.context.telemetry.exposition().decode()
    assert 'statesvc_event_times_total{carrier="acme",tz_source="explicit"} 1.0' in counted
    assert 'statesvc_event_times_total{carrier="acme",tz_source="received"} 1.0' in counted


async def test_a_delivery_without_a_time_says_no_time_until_one_is_printed(shop: Shop) -> None:
    await shop.say({"number": "N1", "status": "in_transit"})
    await shop.say({"number": "N1", "status": "delivered", "minute": 60, "is_timed": False})
    assert await shop.rows(TIMES) == [("delivered", None, None, MORNING)]
    later = MORNING.replace(hour=10)
    await shop.say({"number": "N1", "status": "delivered", "minute": 120})
    assert await shop.rows(TIMES) == [("delivered", later, later, later)]
