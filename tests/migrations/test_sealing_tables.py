"""Whoever writes a batch: once it is committed, it waits to be sealed."""

from typing import Any

from psycopg import AsyncConnection

BATCH = (
    "INSERT INTO {} (recorded_from, recorded_to, entries, leaf_hashes, writer) VALUES ({0}, {0}, 1,"
    " sha256('x'), 'w') RETURNING batch_id"
)
PARTITIONS = """
SELECT i.inhrelid::regclass::text, substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\((''[^'']+'')\\)')
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'statesvc.batch'::regclass"""
WAITING = "SELECT batch_id FROM statesvc.unsealed ORDER BY 1"


async def _write(connection: AsyncConnection[Any], table: str, recorded_at: str) -> int:
    row = await (
        await connection.execute(BATCH.replace("{}", table, 1).replace("{0}", recorded_at).encode())
    ).fetchone()
    assert row is not None
    batch_id: int = row[0]
    return batch_id


async def test_a_batch_of_every_partition_waits_to_be_sealed(database: Any) -> None:
    await database.clock.advance(90 * 24 * 3600)
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        partitions = await (await owner.execute(PARTITIONS.encode())).fetchall()
        assert len(partitions) > 5
        written = [
            await _write(owner, table, f"{begins}::timestamptz") for table, begins in partitions
        ]
        waiting = await (await owner.execute(WAITING)).fetchall()
    assert [batch_id for (batch_id,) in waiting] == sorted(written)


async def test_a_batch_that_was_rolled_back_does_not_wait(database: Any) -> None:
    async with await AsyncConnection.connect(database.service_dsn) as service:
        await _write(service, "statesvc.batch", "statesvc.clock()")
        await service.rollback()
        kept = await _write(service, "statesvc.batch", "statesvc.clock()")
        await service.commit()
        assert await (await service.execute(WAITING)).fetchall() == [(kept,)]
