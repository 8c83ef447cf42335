"""A claim costs what it takes, not what waits."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from statesvc.database.queries import queries
from tests.world.fan_out import notify_of

pytestmark = pytest.mark.slow

SQL = queries("statesvc.notifier", "claim_outbox")
WAITING = 20_000
READ_MAX = 500


def asked(**changed: Any) -> dict[str, Any]:
    parameters = {
        "limit": 64,
        "retry_limit": 100,
        "fresh_free": 4,
        "fresh_retries": 1,
        "token": uuid4(),
        "worker": "w",
        "lease_seconds": 45.0,
        "known_ids": [],
        "frees": [],
        "retries": [],
        "in_flights": [],
        "not_befores": [],
    }
    return parameters | changed


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


async def read(world: Any, name: str, parameters: dict[str, Any]) -> int:
    """Return how many rows of the outbox a query looks at."""
    cursor = await world.connection.execute(
        "EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, BUFFERS OFF) " + SQL[name], parameters
    )
    ((document,),) = await cursor.fetchall()
    plans = document if isinstance(document, list) else json.loads(document)
    scans = [
        node
        for node in nodes(plans[0]["Plan"])
        if node.get("Relation Name") == "outbox" and "Scan" in node["Node Type"]
    ]
    assert scans
    assert not any(node["Node Type"] == "Seq Scan" for node in scans)
    rows = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in scans
    )
    return int(rows)


async def fill(
    world: Any, subscription_id: UUID, *, attempts: int = 0, count: int = WAITING
) -> None:
    await world.connection.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at, attempts) SELECT %s, gen_random_uuid(), n, now() - interval '1 hour', now(),"
        " %s FROM generate_series(1, %s) n",
        (subscription_id, attempts, count),
    )


@pytest.mark.parametrize("attempts", [0, 1])
async def test_neither_claim_nor_due_time_scans_the_outbox(world: Any, attempts: int) -> None:
    await fill(world, await world.subscribe(), attempts=attempts)
    assert await read(world, "claim", asked()) < READ_MAX
    assert await read(world, "next_due", asked()) < READ_MAX


async def test_news_is_found_without_reading_past_the_retries(world: Any) -> None:
    subscription_id = await world.subscribe()
    await fill(world, subscription_id, attempts=1)
    await world.notify((await world.shipment())[0], 1)
    no_retries = asked(
        known_ids=[subscription_id], frees=[4], retries=[0], in_flights=[0], not_befores=[None]
    )
    assert await read(world, "claim", no_retries) < READ_MAX
    assert await world.rows("SELECT attempts FROM statesvc.outbox WHERE token IS NOT NULL") == [
        (1,)
    ]


async def test_what_stands_behind_failing_heads_is_not_read(world: Any) -> None:
    subscription_id = await world.subscribe()
    await world.connection.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at, attempts) SELECT %s, gen_random_uuid(), 1, now() + interval '1 hour', now(),"
        " 1 FROM generate_series(1, 2000)",
        (subscription_id,),
    )
    shipments = [row[0] for row in await world.rows("SELECT shipment_id FROM statesvc.outbox")]
    await notify_of(
        world.connection,
        [change for shipment_id in shipments for change in world.changes(shipment_id, 2)],
    )
    assert await read(world, "claim", asked()) < READ_MAX


async def test_a_subscription_that_is_left_out_is_not_looked_at(world: Any) -> None:
    subscription_id = await world.subscribe()
    await fill(world, subscription_id, count=100)
    full = asked(
        known_ids=[subscription_id], frees=[0], retries=[0], in_flights=[4], not_befores=[None]
    )
    assert await read(world, "claim", full) == 0
    assert await read(world, "next_due", full) == 0
