"""A batch id that exists is never given out twice, wherever the sequence stands; and sealing goes
on once it stands right.
"""

from typing import Any

import pytest
from psycopg import AsyncConnection, Error

from statesvc.health.storable import storage_findings
from statesvc.sealer.leadership import take_stock
from statesvc.sealer.seal import ForgottenBatches, RefusalError, read_writers, seal
from tests.world.attack import verify
from tests.world.story import MASTER, NOWHERE, story

_BATCH = (
    "INSERT INTO statesvc.batch (batch_id, recorded_from, recorded_to, entries, leaf_hashes,"
    " writer) SELECT %s, c, c, 1, sha256('leaf'), 'test' FROM statesvc.clock() c"
)


async def set_sequence(database: Any, value: int) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute("SELECT setval('statesvc.batch_id_seq', %s)", (value,))


async def test_a_sequence_behind_stops_appends_until_it_is_set(database: Any) -> None:
    async with story(database) as log:
        for _ in range(4):
            await log.act()
        await log.seal()
        await set_sequence(database, 1)
        with pytest.raises(Error) as caught:
            await log.act()
        assert caught.value.sqlstate == "SS006"
        (finding,) = await storage_findings(log.connection, migrations=())
        assert "SELECT setval('statesvc.batch_id_seq', 4)" in finding.text
        await set_sequence(database, 4)
        assert await storage_findings(log.connection, migrations=()) == []
        await log.act()
        assert (await log.seal()).tree_size == 5
        assert verify(database).consistent


async def test_an_id_in_the_queue_is_not_taken_again(database: Any) -> None:
    async with story(database) as log:
        for _ in range(2):
            await log.act()
        await set_sequence(database, 1)
        with pytest.raises(Error):
            await log.act()
        assert (await log.seal()).tree_size == 2


async def test_an_id_that_is_sealed_after_it_was_given_out_again_is_not_taken(
    database: Any,
) -> None:
    async with (
        story(database) as log,
        await AsyncConnection.connect(database.service_dsn) as second,
    ):
        await second.execute("SET timezone = 'UTC'")
        for _ in range(2):
            await log.act()
        await set_sequence(database, 1)
        cursor = await second.execute("SELECT statesvc.next_batch_id()")
        await log.seal()
        with pytest.raises(Error, match="batch 2 exists already"):
            await second.execute(_BATCH, await cursor.fetchone())


async def test_ids_that_were_given_out_twice_are_a_refusal(database: Any) -> None:
    """As 0.1.0 left them, which had no such key."""
    async with story(database) as log:
        await log.act()
        await log.seal()
        async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
            await owner.execute("ALTER TABLE statesvc.batch DISABLE TRIGGER await_sealing")
            await owner.execute("SET timezone = 'UTC'")
            await owner.execute(_BATCH, (1,))
            await owner.execute(
                "INSERT INTO statesvc.unsealed SELECT batch_id, max(recorded_from) FROM"
                " statesvc.batch GROUP BY 1"
            )
        sealed, _ = await take_stock(log.connection, MASTER, NOWHERE)
        with pytest.raises(RefusalError, match="ids were given out twice"):
            await seal(log.connection, sealed, from_id=0)


async def test_batches_that_nobody_queued_are_told_from_a_changed_log_and_queued(
    database: Any,
) -> None:
    async with story(database) as log:
        for _ in range(2):
            await log.act()
        await log.seal()
        async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
            await owner.execute("ALTER TABLE statesvc.batch DISABLE TRIGGER await_sealing")
            for _ in range(3):
                await log.act()
            await owner.execute("ALTER TABLE statesvc.batch ENABLE ALWAYS TRIGGER await_sealing")
        (fault,) = verify(database).faults
        assert "3 batches are neither sealed nor queued" in fault.why
        forgotten, writers = ForgottenBatches(), await read_writers(log.connection)
        assert await forgotten.requeue(log.connection, writers) == [3, 4, 5]
        assert forgotten.caught_up
        assert await forgotten.requeue(log.connection, writers) == []
        assert (await log.seal()).tree_size == 5
        report = verify(database)
        assert report.consistent
        assert report.remarks == []
