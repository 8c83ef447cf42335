"""The migration that brings the sealer: whatever was committed before it, or while it was applied, waits to be sealed."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.migrate import migrate

MIGRATIONS = Path(__file__).parents[2] / "migrations"
BATCH = "INSERT INTO statesvc.batch (recorded_at, entries, leaf_hashes, writer) VALUES (statesvc.clock(), 1, sha256('x'), 'w')"
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%TRIGGER await_sealing%' AND wait_event_type = 'Lock'"


async def test_batches_from_before_and_meanwhile_wait_to_be_sealed(bare_database: Any, tmp_path: Path) -> None:
    for file in MIGRATIONS.glob("*.sql"):
        if file.name < "0014":
            shutil.copy(file, tmp_path)
    await migrate(bare_database.owner_dsn, bare_database.service_dsn, folder=tmp_path)
    shutil.copy(MIGRATIONS / "0014_sealer.sql", tmp_path)
    async with await AsyncConnection.connect(bare_database.owner_dsn) as writer:
        for _ in range(3):
            await writer.execute(BATCH)
        await writer.commit()
        # begun without the trigger, committed while the migration waits for it
        await writer.execute(BATCH)
        migration = asyncio.create_task(migrate(bare_database.owner_dsn, bare_database.service_dsn, folder=tmp_path))
        async with await AsyncConnection.connect(bare_database.superuser_dsn, autocommit=True) as watcher:
            while await (await watcher.execute(WAITS.encode())).fetchone() == (0,):  # noqa: ASYNC110 - another process waits
                await asyncio.sleep(0.02)
        await writer.commit()
        assert (await migration).applied == ("0014_sealer",)
        await writer.execute(BATCH)
        await writer.commit()
        cursor = await writer.execute("SELECT batch_id FROM statesvc.unsealed ORDER BY 1")
        assert [batch_id for (batch_id,) in await cursor.fetchall()] == [1, 2, 3, 4, 5]


async def test_it_can_be_applied_again_after_a_crash_at_any_step(bare_database: Any) -> None:
    await migrate(bare_database.owner_dsn, bare_database.service_dsn)
    async with await AsyncConnection.connect(bare_database.owner_dsn, autocommit=True) as owner:
        await owner.execute(BATCH)
        await owner.execute("DELETE FROM statesvc.schema_migrations WHERE version = (SELECT max(version) FROM statesvc.schema_migrations)")
        await owner.execute("DROP INDEX statesvc.event_batch")
        for statement in (MIGRATIONS / "0014_sealer.sql").read_text().partition("\n")[2].split(";\n\n"):
            if "CONCURRENTLY" not in statement:
                await owner.execute(statement.encode())
        assert await (await owner.execute("SELECT count(*) FROM statesvc.unsealed")).fetchone() == (1,)
