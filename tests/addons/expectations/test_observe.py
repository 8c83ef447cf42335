"""Deadlines that pass on a real database: observed once, as an entry, a flag and a notification;
cancelled by what arrives.
"""

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest

from projections.expectations import FIRST_SEQUENCE
from statesvc.addons.expectations import observe as observing
from statesvc.addons.expectations.observe import WatchReport, observe
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.shop import MORNING, Shop, says, shipment

HOUR = 3600.0


async def minute(shop: Shop, hours: float = 0) -> int:
    """Return the minute of now, as `says` counts, and some hours more."""
    now: datetime = await shop.value("SELECT statesvc.clock()")
    return int((now - MORNING).total_seconds() / 60 + hours * 60)


async def say(shop: Shop, number: str, status: str, *, hours: float = 0, **more: Any) -> None:
    await shop.say(
        {"number": number, "status": status, "minute": await minute(shop, hours), **more}
    )


async def watch(shop: Shop, *, hours: float = 0) -> WatchReport:
    await shop.database.clock.advance(hours * HOUR)
    return await observe(shop.connection, worker="watcher")


async def flags(shop: Shop, number: str) -> list[str]:
    found: list[str] = await shop.value(
        "SELECT flags FROM statesvc.shipment WHERE shipment_id = %s", shipment(number)
    )
    return found


async def observations(shop: Shop) -> list[dict[str, Any]]:
    rows = await shop.rows("SELECT canonical FROM statesvc.observation ORDER BY batch_id, ordinal")
    return [json.loads(decompress_json(canonical)) for (canonical,) in rows]


async def subscribe(shop: Shop) -> None:
    await shop.connection.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets) VALUES (gen_random_uuid(), statesvc.clock(), 't', 't',"
        " 'http://127.0.0.1:9/', '{}')"
    )


async def test_a_silence_is_observed_once_as_entry_flag_and_notification(shop: Shop) -> None:
    await subscribe(shop)
    await say(shop, "A1", "in_transit")
    assert (await watch(shop, hours=119)).due == 0
    report = await watch(shop, hours=1.1)
    assert (report.due, len(report.observations), report.notifications) == (1, 1, 1)
    (entry,) = await observations(shop)
    assert (entry["kind"], entry["version"], entry["shipment_id"]) == (
        "stalled",
        1,
        str(shipment("A1")),
    )
    assert entry["details"] == {
        "cause": (await shop.events("A1"))[0]["event_id"],
        "hours": 120,
        "rules": 0,
        "sequence": FIRST_SEQUENCE + 1,
        "status": "in_transit",
    }
    assert await flags(shop, "A1") == ["stalled"]
    assert await shop.rows(
        "SELECT type, sequence, from_status, to_status FROM statesvc.notification ORDER BY sequence"
    ) == [
        ("shipment.stalled", FIRST_SEQUENCE + 1, "in_transit", "in_transit"),
        ("shipment.status_changed", 1, "unknown", "in_transit"),
    ]
    assert (await watch(shop, hours=2000)).due == 0


async def test_a_shipment_that_an_append_holds_is_left_for_the_next_pass(shop: Shop) -> None:
    await say(shop, "A1", "in_transit")
    await say(shop, "A2", "in_transit")
    async with shop.context.pool.connection() as other, other.transaction():
        await other.execute(
            "SELECT FROM statesvc.stream WHERE shipment_id = %s FOR NO KEY UPDATE", [shipment("A1")]
        )
        report = await watch(shop, hours=121)
        assert [one.shipment.number for one in report.observations] == ["A2"]
    assert [one.shipment.number for one in (await watch(shop)).observations] == ["A1"]


async def test_two_watchers_observe_once(shop: Shop) -> None:
    for number in range(20):
        await say(shop, f"A{number}", "in_transit")
    await shop.database.clock.advance(121 * HOUR)

    async def one() -> None:
        async with shop.context.pool.connection() as connection:
            await observe(connection, worker="watcher")

    await asyncio.gather(*(one() for _ in range(6)))
    assert len(await observations(shop)) == 20


async def test_a_pass_is_bounded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "AT_ONCE", 3)
    for number in range(7):
        await say(shop, f"A{number}", "in_transit")
    found = [await watch(shop, hours=121)] + [await watch(shop) for _ in range(2)]
    assert [(len(report.observations), report.is_full) for report in found] == [
        (3, True),
        (3, True),
        (1, False),
    ]


async def test_nothing_is_concluded_of_a_carrier_that_is_held(shop: Shop) -> None:
    await say(shop, "A1", "in_transit")
    await shop.rows(
        "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES ('acme',"
        " true, now(), 't') RETURNING 1"
    )
    report = await watch(shop, hours=121)
    assert (report.put_off, report.observations) == (1, [])
    await shop.rows("UPDATE statesvc.rollout SET hold = false RETURNING 1")
    assert (await watch(shop)).due == 0
    assert len((await watch(shop, hours=2)).observations) == 1


async def test_nothing_is_concluded_while_messages_wait(shop: Shop) -> None:
    await say(shop, "A1", "in_transit")
    await shop.push(
        says({"number": "A1", "status": "delivered", "minute": await minute(shop, 100)})
    )
    assert (await watch(shop, hours=121)).put_off == 1
    await shop.work()
    assert (await watch(shop, hours=2)).due == 0
    assert await observations(shop) == []


async def test_a_silent_carrier_raises_no_storm(shop: Shop) -> None:
    await say(shop, "A1", "in_transit")
    await shop.database.clock.advance(95 * HOUR)
    await shop.connection.execute(
        "INSERT INTO statesvc.ack_count (carrier_id, minute, process, accepted, duplicates,"
        " refused, last_at) SELECT 'acme', date_trunc('minute', statesvc.clock()), 'w', 60, 0, 0,"
        " statesvc.clock()"
    )
    assert (await watch(shop, hours=26)).put_off == 1
    await shop.connection.execute("UPDATE statesvc.ack_count SET last_at = statesvc.clock()")
    assert len((await watch(shop, hours=2)).observations) == 1


@pytest.mark.usefixtures("own_processes")
async def test_a_rebuild_notifies_nobody_and_says_the_same(shop: Shop) -> None:
    await subscribe(shop)
    for number, status in enumerate(
        [
            "in_transit",
            "picked_up",
            "out_for_delivery",
            "available_for_pickup",
            "info_received",
            "delivered",
        ]
    ):
        await say(shop, f"A{number}", status)
    await watch(shop, hours=100)
    await say(shop, "A1", "in_transit")
    await watch(shop, hours=50)
    rows = await shop.rows("SELECT * FROM statesvc.shipment ORDER BY shipment_id")
    sent = await shop.value("SELECT count(*) FROM statesvc.notification")
    task = Rebuild(
        owner_dsn=shop.database.owner_dsn,
        actor="t",
        processes=1,
        progress=lambda *_: None,
        archive=History(None),
    )
    assert (await task.compare())[1] == []
    await shop.as_owner(
        "UPDATE statesvc.shipment SET flags = '{}', due_at = NULL, state ="
        ' \'{"format":0,"status":"lost"}\''
    )
    await task.rebuild()
    assert await shop.rows("SELECT * FROM statesvc.shipment ORDER BY shipment_id") == rows
    assert await shop.value("SELECT count(*) FROM statesvc.notification") == sent
    assert (
        len(
            {
                flag
                for (found,) in await shop.rows("SELECT flags FROM statesvc.shipment")
                for flag in found
            }
        )
        == 4
    )
