"""Reads of a claim: no scan grows with what waits, with what is dead, or with what others did not
want.
"""

from typing import Any

import pytest
from psycopg import AsyncConnection

pytestmark = pytest.mark.slow

CLAIM = "SELECT * FROM statesvc.claim('w', 64, interval '30 s', %s, 4194304, %s)"
FILL = """
WITH made AS (SELECT gen_random_uuid() AS id, statesvc.clock() - make_interval(secs => 60 * n::float8 / %(rows)s) AS at
    FROM generate_series(1, %(rows)s) n),
stored AS (INSERT INTO statesvc.body (message_id, received_at, carrier_id, commitment, headers, sealed)
    SELECT id, at, %(carrier_id)s, decode(repeat('00', 32), 'hex'), '{}', '' FROM made)
INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key, stage)
SELECT id, at, at, 100, %(carrier_id)s, '', %(stage)s FROM made
"""
LANES = "INSERT INTO statesvc.lane (carrier_id) SELECT 'c' || n FROM generate_series(1, 50) n"
READ = """
SELECT coalesce(sum(seq_tup_read), 0)::int, coalesce(sum(idx_tup_fetch), 0)::int
FROM pg_stat_xact_user_tables WHERE relname IN ('inbox', 'normalized', 'body_retained', 'message_attempt') OR relname LIKE 'body\\_%%'
"""

READY_SCANS = "SELECT pg_stat_get_xact_numscans('statesvc.inbox_ready'::regclass)::int"


async def _fill(inbox: Any, carrier_id: str, rows: int, *, stage: str = "raw") -> None:
    await inbox.connection.execute(FILL, {"carrier_id": carrier_id, "rows": rows, "stage": stage})


async def _pages(inbox: Any, *, sweep: bool = False) -> int:
    """Return buffers that one claim reads and writes."""
    (found,) = await inbox.value(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {CLAIM}", "any", sweep)
    return int(found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"])


async def _rows_read(inbox: Any, *, stage: str = "any", sweep: bool = False) -> tuple[int, int]:
    """Return the rows that one claim reads of the tables that grow: by sequential
    scans, through indexes.
    """
    async with inbox.connection.transaction():
        (before,) = await inbox.rows(READ)
        assert len(await inbox.rows(CLAIM, stage, sweep)) == 64
        (after,) = await inbox.rows(READ)
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize("sweep", [False, True])
async def test_a_claim_reads_as_much_beside_a_large_backlog_as_beside_a_small_one(
    inbox: Any, *, sweep: bool
) -> None:
    await inbox.connection.execute(LANES)
    await inbox.set_quota("c7", weight=3, in_flight_max=100_000)
    await _fill(inbox, "c7", 1_000)
    await inbox.as_owner("ANALYZE statesvc.inbox")
    small = await _rows_read(inbox, sweep=sweep)
    await _fill(inbox, "c7", 60_000)
    await inbox.as_owner("ANALYZE statesvc.inbox")
    for claims in range(1, 7):
        sequential, through_indexes = await _rows_read(inbox, sweep=sweep)
        assert sequential == 0, "also with the plans that are kept after five executions"
        assert through_indexes <= small[1] + 64 * (claims + 1), (
            "beside the leases of its own carrier, which are counted"
        )


async def _read_of_a_backlog_that_came_after_the_plan(inbox: Any) -> int:
    await inbox.connection.execute("DELETE FROM statesvc.inbox")
    async with await AsyncConnection.connect(inbox.database.owner_dsn, autocommit=True) as owner:
        await owner.execute("VACUUM ANALYZE statesvc.inbox")
    assert await inbox.rows(CLAIM, "any", False) == []
    await _fill(inbox, "c7", 20_000)
    return sum(await _rows_read(inbox))


async def test_a_claim_that_was_planned_for_an_empty_queue_reads_no_whole_backlog(
    inbox: Any,
) -> None:
    await inbox.connection.execute(LANES)
    # statistics of the backlog would have the claim planned anew
    await inbox.as_owner("ALTER TABLE statesvc.inbox SET (autovacuum_enabled = false)")
    assert await _read_of_a_backlog_that_came_after_the_plan(inbox) <= 1_000
    by_statistics = (
        "ALTER FUNCTION statesvc.claim(text, int, interval, text, bigint, boolean, boolean,"
        " boolean, boolean, text, text[])"
    )
    for name in ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_incremental_sort"):
        await inbox.as_owner(f"{by_statistics} RESET {name}")
    # by statistics the planner mostly goes wrong: once is enough to show what the settings are for
    reads = [await _read_of_a_backlog_that_came_after_the_plan(inbox) for _ in range(3)]
    assert max(reads) > 10_000, "this is what the settings of the function are for"


async def test_a_foreign_claim_passes_what_others_handed_over_or_declined_once(inbox: Any) -> None:
    await inbox.connection.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')")
    await _fill(inbox, "ups", 20_000, stage="declined")
    await inbox.advance(120)
    await _fill(inbox, "ups", 400)
    await inbox.as_owner("ANALYZE statesvc.inbox")
    await inbox.claim(1, stage="raw")
    assert await _rows_read(inbox, stage="raw") <= (0, 1_500)


async def test_a_claim_above_many_dead_rows_reads_few_pages(database: Any, inbox: Any) -> None:
    await inbox.put("ups", "ups")
    await inbox.claim(1)
    await inbox.claim(1)
    await inbox.connection.execute("DELETE FROM statesvc.inbox")
    async with await AsyncConnection.connect(database.owner_dsn) as pin:
        await pin.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await pin.execute("SELECT 1 FROM statesvc.inbox")
        await _fill(inbox, "ups", 20_000)
        await inbox.connection.execute("UPDATE statesvc.inbox SET token = gen_random_uuid()")
        await inbox.connection.execute("DELETE FROM statesvc.inbox")
        await inbox.advance(60)
        assert await inbox.claim() == []
        await inbox.put("ups", "ups")
        assert len(await inbox.claim(1)) == 1, "so that what follows is planned"
        above_the_marks = await _pages(inbox)
        assert above_the_marks < 150
        assert await _pages(inbox, sweep=True) > 5 * above_the_marks, "the dead rows are there"


async def test_a_claim_takes_its_choice_by_key_though_the_statistics_say_that_nothing_is_ready(
    database: Any, inbox: Any
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn) as pin:
        await pin.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await pin.execute("SELECT 1 FROM statesvc.inbox")
        await inbox.put("ups")
        await _fill(inbox, "ups", 30_000)
        await inbox.connection.execute("DELETE FROM statesvc.inbox")
        await inbox.as_owner("ANALYZE statesvc.inbox")
        await inbox.advance(60)
        assert await inbox.claim() == []
        for _ in range(7):
            await inbox.put(*["ups"] * 64)
            async with inbox.connection.transaction():
                before = await inbox.value(READY_SCANS)
                assert len(await inbox.rows(CLAIM, "any", False)) == 64
                assert await inbox.value(READY_SCANS) - before == 1, (
                    "the lane's own; what it found is looked up by its keys"
                )
