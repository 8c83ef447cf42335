"""Samples of autovacuum are small: in a flood it analyzes every ten seconds, and webhooks wait
for the same processors.
"""

import psycopg

from tests.world.database import Database

SAMPLED_MORE = """
SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'test_clock' AND a.attnum > 0
    AND NOT a.attisdropped AND coalesce(a.attstattarget, -1) <> CASE a.atttypid WHEN 'bytea'::regtype THEN 0 ELSE 20 END
ORDER BY 1
"""


async def _sampled_more(owner: psycopg.AsyncConnection[tuple[str]]) -> list[str]:
    return [column for (column,) in await (await owner.execute(SAMPLED_MORE)).fetchall()]


async def test_each_table_is_sampled_little_and_its_bytes_not_at_all(database: Database) -> None:
    # a migration that makes a table asks for it: SELECT statesvc.sample_little('statesvc.name')
    async with await psycopg.AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        assert await _sampled_more(owner) == []


async def test_new_partitions_are_sampled_little_too(database: Database) -> None:
    async with await psycopg.AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute("UPDATE statesvc.partitioned SET steps_ahead = steps_ahead + 1")
        made = await (await owner.execute("SELECT * FROM statesvc.ensure_partitions()")).fetchall()
        assert made
        assert await _sampled_more(owner) == []
        # what the tests above would find
        await owner.execute(
            "ALTER TABLE statesvc.inbox ALTER COLUMN received_at SET STATISTICS 100"
        )
        assert await _sampled_more(owner) == ["inbox.received_at"]
