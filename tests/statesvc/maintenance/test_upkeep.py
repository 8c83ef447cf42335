import asyncio
from contextlib import suppress
from typing import Any

import pytest
from psycopg import AsyncConnection, errors

from statesvc.database.pool import Pool
from statesvc.maintenance.upkeep import maintenance, once
from tests.world.waiting import until

pytestmark = pytest.mark.slow

DAY = 86_400
Connection = AsyncConnection[Any]


async def _days_pass(database: Any, days: int) -> None:
    """Let days pass without making partitions, as nobody does while all workers are down."""
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute(
            "UPDATE statesvc.test_clock SET shift = shift + make_interval(days => %s)", (days,)
        )


async def test_attempts_and_silent_workers_are_forgotten_in_time(
    database: Any, service: Connection
) -> None:
    await service.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at) SELECT w, 'worker', 'h', 1, '0', statesvc.clock(), statesvc.clock() + h *"
        " interval '1 hour' FROM (VALUES ('silent', 0), ('alive', 100 * 24)) v(w, h)"
    )
    await service.execute(
        "INSERT INTO statesvc.message_attempt (message_id, ended_at, attempt, carrier_id, outcome)"
        " SELECT lpad(m::text, 32, '0')::uuid, statesvc.clock() + d * interval '1 day', 1, 'ups',"
        " 'retried' FROM (VALUES (1, 0), (2, 30), (3, 0), (4, 0), (5, 0)) v(m, d)"
    )
    await service.execute(
        "INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id,"
        " sealed_key) VALUES (lpad('3', 32, '0')::uuid, statesvc.clock(), statesvc.clock(), 1,"
        " 'ups', '')"
    )
    await service.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id,"
        " resolved_at, resolution) VALUES ('message', 'unreadable', 'ups', statesvc.clock(),"
        " lpad('4', 32, '0')::uuid, NULL, NULL), ('message', 'unreadable', 'ups', statesvc.clock(),"
        " lpad('5', 32, '0')::uuid, statesvc.clock(), 'discarded')"
    )
    await _days_pass(database, 100)
    await once(service)
    left = await (
        await service.execute(
            "SELECT right(message_id::text, 1) FROM statesvc.message_attempt ORDER BY 1"
        )
    ).fetchall()
    assert left == [("2",), ("3",), ("4",)], "young, waiting, in an open dead letter"
    assert await (await service.execute("SELECT worker_id FROM statesvc.worker")).fetchall() == [
        ("alive",)
    ]


async def test_what_was_resolved_or_seen_long_ago_is_forgotten_and_nothing_that_is_open(
    database: Any, service: Connection
) -> None:
    await service.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id,"
        " resolved_at, resolution) SELECT 'message', c, 'ups', statesvc.clock(), gen_random_uuid(),"
        " statesvc.clock() + d * interval '1 day', CASE WHEN d IS NOT NULL THEN 'discarded' END"
        " FROM (VALUES ('old', 0), ('young', 10), ('open', NULL)) v(c, d)"
    )
    await service.execute(
        "INSERT INTO statesvc.notice (kind, target, created_at, details, seen_at)"
        " SELECT k, 'x', statesvc.clock() + d * interval '1 day', '{}',"
        " CASE WHEN seen THEN statesvc.clock() END"
        " FROM (VALUES ('old', 0, true), ('young', 10, true), ('unseen', 0, false)) v(k, d, seen)"
    )
    await _days_pass(database, 405)
    await once(service)
    left = await (
        await service.execute("SELECT cause FROM statesvc.dead_letter ORDER BY 1")
    ).fetchall()
    assert left == [("open",), ("young",)]
    left = await (await service.execute("SELECT kind FROM statesvc.notice ORDER BY 1")).fetchall()
    assert left == [("unseen",), ("young",)]


async def _write_batch(connection: Connection) -> None:
    await connection.execute(
        "INSERT INTO statesvc.batch (recorded_from, recorded_to, entries, leaf_hashes, writer)"
        " VALUES (statesvc.clock(), statesvc.clock(), 1, %s, 'w')",
        (bytes(32),),
    )


async def _partitions(connection: Connection) -> set[str]:
    cursor = await connection.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE"
        " c.relkind = 'r'"
    )
    return {name for (name,) in await cursor.fetchall()}


async def test_the_horizon_is_opened_by_the_service_role_itself_after_a_long_pause(
    database: Any, service: Connection, pool: Pool
) -> None:
    await _days_pass(database, 200)
    with pytest.raises(errors.CheckViolation):
        await _write_batch(service)
    upkeep = maintenance(pool)
    upkeep.start()
    await until(lambda: _batch_is_taken(service))
    await upkeep.close()
    await once(service)
    before = await _partitions(service)
    await once(service)
    assert await _partitions(service) == before


async def _batch_is_taken(connection: Connection) -> bool:
    with suppress(errors.CheckViolation):
        await _write_batch(connection)
        return True
    return False


async def test_workers_that_look_after_the_partitions_at_once_do_not_disturb_each_other(
    database: Any, service: Connection
) -> None:
    await _days_pass(database, 200)

    async def one() -> None:
        async with await AsyncConnection.connect(
            database.service_dsn, autocommit=True
        ) as connection:
            await once(connection)

    await asyncio.gather(*(one() for _ in range(4)))
    await _write_batch(service)


async def test_receipts_are_forgotten_after_48_hours_however_many(
    database: Any, service: Connection
) -> None:
    receipts = (
        "INSERT INTO statesvc.receipt (digest, message_id, received_at) SELECT"
        " decode(lpad(to_hex(n), 32, %s), 'hex'), gen_random_uuid(), statesvc.clock() FROM"
        " generate_series(1, %s) n"
    )
    await service.execute(receipts, ("0", 12_000))
    await _days_pass(database, 1)
    await service.execute(receipts, ("f", 3))
    await database.clock.advance(1.01 * DAY)
    await once(service)
    assert await (await service.execute("SELECT count(*) FROM statesvc.receipt")).fetchone() == (3,)
