"""A time reads on the carrier's wall clock wherever it is shown: live, as of then, in lists, in
bodies and in the stream.
"""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import orjson

from events.event import Reading
from events.vocabulary import Status
from statesvc.api.transition_operations import streamed
from statesvc.delivery.notification import body_of, notification_of
from statesvc.log.feed import read_transitions
from statesvc.log.history import History
from tests.world.log_builder import LogBuilder

CHICAGO = timezone(timedelta(hours=-6))
NEPAL = timezone(timedelta(hours=5, minutes=45))
TIMES = ("status_since", "last_event_at", "delivered_at")


def local(reading: Reading, zone: timezone) -> Reading:
    """Return the same scan as its carrier prints it."""
    return replace(
        reading, time=replace(reading.time, instant=reading.time.instant.astimezone(zone))
    )


async def test_live_and_as_of_read_the_same_local_times(api: Any, scan: Any, database: Any) -> None:
    await api.carriers.push(
        local(scan("1", Status.PICKED_UP), NEPAL),
        local(scan("1", Status.DELIVERED, minutes=90), CHICAGO),
    )
    await LogBuilder(api.connection, api.keyring).seal()
    live = (await api.get("/v1/shipments/ups/1")).body
    assert (
        live["status_since"]
        == live["last_event_at"]
        == live["delivered_at"]
        == "2026-03-01T03:30:00-06:00"
    )
    past = (
        await api.get(
            "/v1/shipments/ups/1", params={"as_of": (await database.clock.now()).isoformat()}
        )
    ).body
    assert [past[name] for name in TIMES] == [live[name] for name in TIMES]
    (listed,) = (await api.get("/v1/shipments")).body["items"]
    assert [listed[name] for name in TIMES] == [live[name] for name in TIMES]
    audit = (await api.get("/v1/shipments/ups/1/audit", scopes="audit")).body
    assert [audit["shipment"][name] for name in TIMES] == [live[name] for name in TIMES]


async def test_bodies_audit_and_stream_say_the_local_time(api: Any, scan: Any) -> None:
    await api.call(
        "POST",
        "/v1/subscriptions",
        scopes="subscriptions",
        json={"url": "https://subscriber.invalid/hook"},
    )
    await api.carriers.push(local(scan("2", Status.PICKED_UP), NEPAL))
    ((sequence, *row),) = await api.rows(
        "SELECT sequence, webhook_id, type, created_at, occurred_at, occurred_offset_seconds,"
        " epoch, carrier_id, tracking_number, from_status, to_status, NULL, NULL, NULL, NULL FROM"
        " statesvc.notification"
    )
    body = orjson.loads(body_of(notification_of(sequence, row)))
    assert body["data"]["occurred_at"] == "2026-03-01T13:45:00+05:45"
    audit = (await api.get("/v1/shipments/ups/2/audit", scopes="audit")).body
    assert [one["occurred_at"] for one in audit["notifications"]] == ["2026-03-01T13:45:00+05:45"]
    head = await LogBuilder(api.connection, api.keyring).seal()
    (changed,) = await read_transitions(
        api.connection, begin=0, end=head.tree_size, archive=History(None)
    )
    assert streamed(changed)["occurred_at"] == "2026-03-01T13:45:00+05:45"


async def test_a_replay_of_what_was_never_written_says_the_local_time(
    api: Any, scan: Any, database: Any
) -> None:
    made = await api.call(
        "POST",
        "/v1/subscriptions",
        scopes="subscriptions",
        json={"url": "https://subscriber.invalid/hook"},
    )
    await api.connection.execute("UPDATE statesvc.subscription SET disabled_at = statesvc.clock()")
    await api.carriers.push(local(scan("3", Status.PICKED_UP), CHICAGO))
    await api.connection.execute("UPDATE statesvc.subscription SET disabled_at = NULL")
    await database.clock.advance(1)
    path = f"/v1/subscriptions/{made.body['id']}/replay"
    reply = await api.call(
        "POST", path, scopes="subscriptions", json={"since": "2020-01-01T00:00:00Z"}
    )
    assert reply.body["never_written"] == 1
    assert await api.rows(
        "SELECT occurred_at, occurred_offset_seconds FROM statesvc.notification"
    ) == [(datetime(2026, 3, 1, 2, 0, tzinfo=CHICAGO), -6 * 3600)]
