"""A claim costs what it takes, not what waits."""

from typing import Any
from uuid import uuid4

from events.sql.queries import queries

SQL = queries("statesvc.notifier", "claim")
WAITING = 20_000


async def plan(world: Any, name: str, parameters: dict[str, Any]) -> str:
    cursor = await world.connection.execute("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) " + SQL[name], parameters)
    return "\n".join(row[0] for row in await cursor.fetchall())


async def test_neither_claim_nor_due_time_scans_the_outbox(world: Any) -> None:
    subscription_id = await world.subscribe()
    await world.connection.execute(
        "INSERT INTO statesvc.outbox SELECT %s, gen_random_uuid(), n, now() - interval '1 hour', now() FROM generate_series(1, %s) n",
        (subscription_id, WAITING),
    )
    asked = {"limit": 64, "share": 64, "busy_ids": [], "busy_counts": [], "token": uuid4(), "worker": "w", "lease_seconds": 45.0}
    for text in (await plan(world, "claim", asked), await plan(world, "next_due", {})):
        assert "Seq Scan on outbox" not in text
        assert f"rows={WAITING}" not in text
