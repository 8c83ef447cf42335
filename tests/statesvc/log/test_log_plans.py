"""Reading by index costs what is read, whatever the size of the log."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.merkle.node import Node
from events.merkle.proof import inclusion_ranges
from events.merkle.retained_nodes import RetainedRange, retained_ranges
from statesvc.database.queries import queries
from statesvc.log.cursor import LogCursor
from statesvc.log.feed import read_entries, read_transitions, recorded_span
from statesvc.log.history import History
from statesvc.log.proofs import position_of_event, prove_inclusion
from statesvc.log.tree_nodes import batches_by_month, read_retained
from statesvc.shipments.as_of import find_shipment_at, horizon_at
from statesvc.shipments.audit_trail import read_audit_trail
from statesvc.shipments.find import FoundShipment, find_shipment, month_end, signed_by
from statesvc.shipments.timeline import timeline
from tests.world.log_builder import LogBuilder, log_builder

pytestmark = pytest.mark.slow

FILLED = (
    (
        "INSERT INTO statesvc.batch SELECT n, now(), now(), 2, decode(repeat('00', 64), 'hex'), 'x'"
        " FROM generate_series(1, 20000) n"
    ),
    (
        "INSERT INTO statesvc.sealed_batch SELECT 2 * n - 2, n, now(), now() + interval '1 hour',"
        " 2, now() FROM generate_series(1, 20000) n"
    ),
    (
        "INSERT INTO statesvc.action SELECT statesvc.clock(), n, o, 'x', 'x', 'x', 'x'"
        " FROM generate_series(1, 20000) n, generate_series(0, 1) o"
    ),
    "INSERT INTO statesvc.subtree SELECT 8, n, sha256('x') FROM generate_series(0, 155) n",
    "ANALYZE",
)

FIVE_YEARS = (
    """
    DO $$ DECLARE month timestamptz;
    BEGIN
        FOR n IN 1 .. 60 LOOP
            month := date_trunc('month', now(), 'UTC') + n * interval '1 month';
            CONTINUE WHEN to_regclass('statesvc.batch_' || to_char(month AT TIME ZONE 'UTC', 'YYYYMM')) IS NOT NULL;
            EXECUTE format('CREATE TABLE statesvc.%I PARTITION OF statesvc.batch FOR VALUES FROM (%L) TO (%L)',
                'batch_' || to_char(month AT TIME ZONE 'UTC', 'YYYYMM'), month, month + interval '1 month');
        END LOOP;
    END $$
    """,
    (
        "INSERT INTO statesvc.batch SELECT n, at, at, 256, decode(repeat('00', 32 * 256), 'hex'),"
        " 'x' FROM generate_series(1, 60) n, LATERAL (SELECT date_trunc('month', now(), 'UTC') + n"
        " * interval '1 month' AS at) m"
    ),
    (
        "INSERT INTO statesvc.sealed_batch SELECT 256 * (batch_id - 1), batch_id, recorded_from,"
        " recorded_to, 256, now() FROM statesvc.batch"
    ),
    "ANALYZE",
)
"""A batch a month."""


@pytest.mark.parametrize("prepared", ["force_custom_plan", "force_generic_plan"])
async def test_the_feed_reads_no_table_whole(database: Any, prepared: str) -> None:
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner,
    ):
        for statement in FILLED:
            await owner.execute(statement.encode())
        await log.connection.execute(f"SET plan_cache_mode = {prepared}".encode())
        span = await recorded_span(log.connection, 30_000, 30_100)
        rows = await explained(
            log.connection, "feed", "entries", {"begin": 30_000, "end": 30_100, **span}
        )
        assert "actual rows=100" in next(row for row in rows if "Nested Loop" in row)
        assert buffers(rows) < 400, rows


async def test_a_proof_reads_a_few_hundred_hashes(database: Any) -> None:
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner,
    ):
        for statement in FILLED:
            await owner.execute(statement.encode())
        ranges = [
            each for each in retained_ranges(inclusion_ranges(17_777, 40_000)) if each.level == 0
        ]
        asked = {"begins": [each.begin for each in ranges], "ends": [each.end for each in ranges]}
        found = await explained(log.connection, "tree_nodes", "batches_of_ranges", asked)
        (batches,) = await batches_by_month(log.connection, ranges)
        rows = await explained(log.connection, "tree_nodes", "leaf_hashes", batches)
        assert buffers(found) + buffers(rows) < 2_000, [*found, *rows]
        assert not [
            row
            for row in [*found, *rows]
            if re.search(r"Seq Scan on \w*batch.*actual rows=[1-9]", row)
        ], [*found, *rows]
        assert (
            sum(each.end - each.begin for each in retained_ranges(inclusion_ranges(17_777, 40_000)))
            < 1_000
        )


async def test_a_proof_plans_with_the_months_of_its_batches_alone(database: Any) -> None:
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner,
    ):
        for statement in FIVE_YEARS:
            await owner.execute(statement.encode())
        ranges = [RetainedRange(0, 1_024, 1_280), RetainedRange(0, 14_080, 14_100)]
        hashes = await read_retained(log.connection, ranges)
        assert set(hashes) == {
            Node(0, place) for place in (*range(1_024, 1_280), *range(14_080, 14_100))
        }
        for batches in await batches_by_month(log.connection, ranges):
            assert (
                planned(
                    await explained(log.connection, "tree_nodes", "leaf_hashes", batches), "batch"
                )
                == 1
            )


async def test_no_reader_of_months_is_prepared(tmp_path: Path, event_log: LogBuilder) -> None:
    # the server would weigh one plan for all months at the sixth execution, in each session
    await event_log.parcel("1Z0007")
    head = await event_log.seal()
    ((event_id,),) = await event_log.rows("SELECT event_id FROM statesvc.event WHERE version = 1")
    event_log.connection.prepare_threshold = 0
    found = await find_shipment(event_log.connection, carrier_id="ups", number="1Z0007")
    assert isinstance(found, FoundShipment)
    archive, horizon = History(tmp_path), await horizon_at(event_log.connection, datetime.now(UTC))
    assert await timeline(event_log.connection, found.shipment, after=None, limit=10, opener=None)
    assert await read_audit_trail(
        event_log.connection, found.shipment, after=0, limit=10, keyring=event_log.keyring
    )
    assert (
        await signed_by(
            event_log.connection,
            replace(found.shipment, signed_by_event_id="none"),
            event_log.keyring,
        )
        is None
    )
    assert (
        await read_entries(
            event_log.connection, after=LogCursor(head.epoch, -1), limit=10, archive=archive
        )
    ).entries
    assert await read_transitions(
        event_log.connection, begin=0, end=head.tree_size, archive=archive
    )
    assert await prove_inclusion(event_log.connection, 0, head)
    assert await position_of_event(
        event_log.connection, carrier_id="ups", event_id=event_id, archive=archive
    ) == (True, 0)
    assert await find_shipment_at(event_log.connection, horizon, carrier_id="ups", number="1Z0007")
    rows = await (
        await event_log.connection.execute("SELECT statement FROM pg_prepared_statements")
    ).fetchall()
    assert [text for (text,) in rows if "statesvc.stream" in text]
    assert not [
        text
        for (text,) in rows
        if re.search(
            r"statesvc\.(event|transition|conflict|fanout|attempt|observation|batch)\b", text
        )
    ]


async def test_the_stream_and_an_instant_read_the_months_of_their_entries_alone(
    event_log: LogBuilder,
) -> None:
    await event_log.parcel("1Z0001")
    head = await event_log.seal()
    read = {
        "begin": 0,
        "end": head.tree_size,
        **await recorded_span(event_log.connection, 0, head.tree_size),
    }
    transitions = await explained(event_log.connection, "feed", "transitions", read)
    assert planned(transitions, "transition") == planned(transitions, "event") == 1
    entries = await explained(event_log.connection, "feed", "entries", read)
    assert planned(entries, "event") == planned(entries, "action") == 1
    now = datetime.now(UTC)
    instant = {
        "carrier_id": "ups",
        "number": "1Z0001",
        "size": head.tree_size,
        "since": now - timedelta(seconds=60),
        "until": now,
        "month_end": month_end(now),
    }
    of_number = await explained(
        event_log.connection,
        "as_of",
        "sealed_events_of_number",
        instant,
        package="statesvc.shipments",
    )
    assert planned(of_number, "event") <= 2


def planned(rows: list[str], table: str) -> int:
    """Return how many partitions of a table the plan names: each costs, whether it
    is looked into or not.
    """
    scans = (row for row in rows if "Bitmap Index Scan" not in row)
    return len(
        {
            found[1]
            for row in scans
            if (found := re.search(rf" on (?:statesvc\.)?({table}_\w+) ", row))
        }
    )


async def explained(
    connection: Any,
    module: str,
    name: str,
    parameters: dict[str, Any],
    *,
    package: str = "statesvc.log",
) -> list[str]:
    query = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) {queries(package, module)[name]}"
    return [
        row[0] for row in await (await connection.execute(query.encode(), parameters)).fetchall()
    ]


def buffers(rows: list[str]) -> int:
    return sum(map(int, re.findall(r"(?:hit|read)=(\d+)", rows[1])))
