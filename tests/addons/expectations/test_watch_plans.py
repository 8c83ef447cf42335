"""A hundred thousand armed shipments cost a pass what it looks at, and no scan of the table."""

import re
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from statesvc.addons.expectations.observe import AT_ONCE, PUT_OFF_AT_ONCE
from statesvc.database.queries import queries, uuids
from tests.world.database import Database
from tests.world.worker_harness import WorkerHarness

ARMED, DUE, ENDED = 100_000, 300, 20_000
FILL = f"""
INSERT INTO statesvc.shipment (shipment_id, version, recorded_at, first_recorded_at, last_event_at, attempts, terminal, carrier_id, number,
    tracking_number, discriminator, status, flags, due_at, state)
SELECT gen_random_uuid(), 1, now(), now(), now(), 0, n > {ARMED}, CASE WHEN n % 2 = 0 THEN 'acme' ELSE 'ups' END, 'N' || n, 'N' || n, '',
    'in_transit', '{{}}',
    CASE WHEN n <= {DUE} THEN now() - interval '1 hour' WHEN n <= {ARMED} THEN now() + n * interval '1 minute' END, 'x'
FROM generate_series(1, {ARMED + ENDED}) n
"""
AWAITED = f"""
INSERT INTO statesvc.awaited_number (number, carrier_id, hours, awaited_at, due_at)
SELECT 'N' || n, 'ups', 48, now(), now() + n * interval '1 minute' FROM generate_series(1, {ARMED}) n
"""


async def plan(
    connection: AsyncConnection[Any], module: str, name: str, asked: dict[str, Any]
) -> str:
    """Return the plan as it ran, rolled back."""
    query = queries("statesvc.addons.expectations", module)[name]
    async with connection.transaction(force_rollback=True):
        # the first run also reads the catalog, where another session's change emptied the caches
        await connection.execute(query, asked)
        cursor = await connection.execute("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) " + query, asked)
        return "\n".join(line for (line,) in await cursor.fetchall())


@pytest.mark.slow
async def test_a_pass_reads_what_is_due(harness: WorkerHarness, database: Database) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute(FILL.encode())
        await owner.execute("VACUUM ANALYZE statesvc.shipment")
    connection = harness.connection
    due = await harness.rows(
        "SELECT shipment_id FROM statesvc.shipment WHERE due_at <= now() LIMIT 200"
    )
    wanted = {"shipment_ids": uuids([shipment_id for (shipment_id,) in due])}
    assert len(due) == AT_ONCE
    end = {
        "carrier_id": "acme",
        "before_recorded_at": "2099-01-01",
        "before_shipment_id": UUID(int=0),
        "limit": 500,
    }
    start = {"after_recorded_at": "2000-01-01", "after_shipment_id": UUID(int=0), "limit": 1_000}
    for module, name, asked, index, pages_max in (
        ("observe", "due", {"limit": AT_ONCE}, "shipment_due", 300),
        (
            "observe",
            "put_off",
            {"carrier_ids": ["acme"], "limit": PUT_OFF_AT_ONCE},
            "shipment_due",
            5_000,
        ),
        ("observe", "read_due", wanted, "shipment_pkey", 2_000),
        ("watcher", "unfinished", start, "shipment_updated", 2_000),
        ("rule_changes", "newest_unfinished", end, "shipment_updated", 2_000),
    ):
        read = await plan(connection, module, name, asked)
        assert "Seq Scan" not in read, (name, read)
        assert f"using {index}" in read or f"on {index}" in read, (name, read)
        assert _pages(read) < pages_max, (name, read)


@pytest.mark.slow
async def test_the_look_of_each_minute_reads_the_ends_of_indexes(
    harness: WorkerHarness, database: Database
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute(
            FILL.replace("now() - interval '1 hour'", "now() + interval '1 hour'").encode()
        )
        await owner.execute(AWAITED.encode())
        await owner.execute("VACUUM ANALYZE statesvc.shipment, statesvc.awaited_number")
    read = await plan(harness.connection, "watcher", "is_due", {})
    assert not re.search("Seq Scan on (shipment|awaited_number)", read), read
    assert "shipment_due" in read
    assert "awaited_number_due" in read
    assert _pages(read) < 12, read


def _pages(read: str) -> int:
    """Return the pages of the whole statement: the first line says it."""
    found = re.search(r"Buffers: shared (?:hit=(\d+))?(?: ?read=(\d+))?", read)
    assert found is not None, read
    return int(found[1] or 0) + int(found[2] or 0)
