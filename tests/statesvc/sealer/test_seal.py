"""Rounds of the sealer: dense, final, no late commit missed, no batch id given out twice."""

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection, Error

from events.entry.kinds import EntryName
from events.merkle.compact_range import CompactRange
from statesvc.health.storable import storage_findings
from statesvc.sealer.leadership import publish, signers_of, take_stock
from statesvc.sealer.seal import (
    ForgottenBatches,
    RefusalError,
    SealedLog,
    SealMark,
    read_writers,
    seal,
)
from tests.world.attack import verify
from tests.world.database import Clock, without_triggers
from tests.world.log_builder import MASTER, NOWHERE, LogBuilder, log_builder, root_of, scan


async def test_a_round_gives_every_committed_entry_its_place(event_log: LogBuilder) -> None:
    await event_log.everything()
    head = await event_log.seal()
    leaves = await event_log.leaves()
    entries = await event_log.rows("SELECT sum(entries) FROM statesvc.batch")
    assert head.tree_size == len(leaves) == entries[0][0]
    checkpoint = await event_log.opened()
    assert (checkpoint.size, checkpoint.root) == (len(leaves), root_of(leaves))
    assert await event_log.rows("SELECT FROM statesvc.unsealed") == []
    kinds = await event_log.rows(
        "SELECT count(*) FROM statesvc.event UNION ALL SELECT count(*) FROM statesvc.conflict"
    )
    assert all(count for (count,) in kinds)


async def test_rounds_follow_each_other_without_a_gap(event_log: LogBuilder) -> None:
    heads = []
    for number in range(4):
        await event_log.parcel(f"1Z{number:04}")
        heads.append(await event_log.seal())
    leaves = await event_log.leaves()
    assert [head.root for head in heads] == [root_of(leaves[: head.tree_size]) for head in heads]
    assert [head.created_at for head in heads] == sorted({head.created_at for head in heads})
    sealed_at = await event_log.rows(
        "SELECT DISTINCT sealed_at FROM statesvc.sealed_batch ORDER BY 1"
    )
    assert [at for (at,) in sealed_at] == [head.created_at for head in heads]


async def test_the_time_of_sealing_grows_though_the_clock_is_set_back(
    database: Any, event_log: LogBuilder
) -> None:
    await event_log.act()
    await event_log.seal()
    await database.clock.advance(-3600)
    await event_log.act()
    await event_log.seal()
    times = await event_log.rows("SELECT sealed_at FROM statesvc.sealed_batch ORDER BY first_index")
    assert times[0] < times[1]


async def test_a_round_without_news_signs_nothing(event_log: LogBuilder) -> None:
    await event_log.act()
    assert await event_log.seal() == await event_log.seal()


async def test_a_backlog_of_several_passes_is_sealed_in_the_order_of_its_ids(
    event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statesvc.sealer.seal.BATCHES_MAX", 2)
    for _ in range(3):
        await event_log.act()
    mark, (sealed, _) = SealMark(), await take_stock(event_log.connection, MASTER, NOWHERE)
    for _ in range(2):
        sealed = await _pass(event_log, mark, sealed)
    order = await event_log.rows("SELECT batch_id FROM statesvc.sealed_batch ORDER BY first_index")
    assert len(order) == 3
    assert order == sorted(order)


@pytest.mark.parametrize("shift_seconds", [-3600, -30])
async def test_a_batch_that_says_an_earlier_time_than_can_be_is_named(
    database: Any, event_log: LogBuilder, shift_seconds: int
) -> None:
    await event_log.act()
    await event_log.seal()
    await Clock(database.owner_dsn).advance(shift_seconds)
    await event_log.act()
    await Clock(database.owner_dsn).advance(-shift_seconds)
    sealed, _ = await take_stock(event_log.connection, MASTER, NOWHERE)
    done = await seal(event_log.connection, sealed, from_id=0)
    await publish(
        event_log.connection, done.sealed, await signers_of(event_log.connection, MASTER), NOWHERE
    )
    report = verify(database)
    assert report.consistent
    if shift_seconds == -30:
        # a transaction may be open for so long
        assert (done.back_dated, report.remarks) == ((), [])
    else:
        assert done.back_dated == (done.last_batch_id,)
        (remark,) = report.remarks
        assert "back-dated" in str(remark)


async def test_a_batch_that_waits_for_a_sealer_that_was_away_is_not_named(
    database: Any, event_log: LogBuilder
) -> None:
    await event_log.act()
    await event_log.seal()
    await Clock(database.owner_dsn).advance(3600)
    await event_log.act()
    await Clock(database.owner_dsn).advance(7200)
    sealed, _ = await take_stock(event_log.connection, MASTER, NOWHERE)
    assert (await seal(event_log.connection, sealed, from_id=0)).back_dated == ()


async def test_a_transaction_that_is_rolled_back_leaves_no_gap(database: Any) -> None:
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.service_dsn) as other,
    ):
        await other.execute("SET timezone = 'UTC'")
        await LogBuilder(other, log.keyring).append(scan("1ZGONE", 1, None), commit=False)
        await log.act()
        await other.rollback()
        await log.act()
        assert (await log.seal()).tree_size == 2


@pytest.mark.slow
async def test_many_rounds_keep_the_subtrees_that_proofs_need(event_log: LogBuilder) -> None:
    for _ in range(5):
        for _ in range(120):
            await event_log.act()
        await event_log.seal()
    leaves = await event_log.leaves()
    expected = [
        (each.node.level, each.node.position, each.hash) for each in CompactRange().extend(leaves)
    ]
    assert (
        await event_log.rows("SELECT level, position, hash FROM statesvc.subtree ORDER BY 1, 2")
        == expected
    )
    sealed, _ = await take_stock(event_log.connection, MASTER, NOWHERE)
    assert sealed.tree.root() == root_of(leaves)


async def test_the_successor_signs_what_its_predecessor_only_sealed(event_log: LogBuilder) -> None:
    await event_log.act()
    sealed, _ = await take_stock(event_log.connection, MASTER, NOWHERE)
    await seal(event_log.connection, sealed, from_id=0)
    sealed, head = await take_stock(event_log.connection, MASTER, NOWHERE)
    assert (sealed.tree.size, head) == (1, None)
    await publish(
        event_log.connection, sealed, await signers_of(event_log.connection, MASTER), NOWHERE
    )
    assert (await event_log.opened()).size == 1


async def test_a_batch_that_waits_but_is_gone_stops_the_sealer(
    database: Any, event_log: LogBuilder
) -> None:
    await event_log.act()
    async with without_triggers(database.superuser_dsn) as attacker:
        await attacker.execute("DELETE FROM statesvc.batch")
    with pytest.raises(RefusalError, match="someone deleted it"):
        await event_log.seal()


async def _pass(log: LogBuilder, mark: SealMark, sealed: SealedLog) -> SealedLog:
    writers = await read_writers(log.connection)
    done = await seal(log.connection, sealed, from_id=mark.from_id)
    mark.passed(writers, done)
    return done.sealed


async def _passes_until_beyond(
    log: LogBuilder, mark: SealMark, sealed: SealedLog, *, batch_id: int
) -> SealedLog:
    """Run passes until beyond a batch; writers of other tests' databases hold the mark back too."""
    async with asyncio.timeout(30):
        while mark.from_id <= batch_id:
            await log.act()
            sealed = await _pass(log, mark, sealed)
    return sealed


async def test_the_mark_follows_the_batches_under_a_pinned_snapshot_and_waits_for_an_open_writer(
    database: Any,
) -> None:
    async with (
        log_builder(database) as log,
        await AsyncConnection.connect(database.service_dsn) as reader,
        await AsyncConnection.connect(database.service_dsn) as writer,
    ):
        await reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await reader.execute("SELECT 1")
        mark, (sealed, _) = SealMark(), await take_stock(log.connection, MASTER, NOWHERE)
        # what is sealed is not walked again, though vacuum cannot take it
        sealed = await _passes_until_beyond(log, mark, sealed, batch_id=2)
        before = mark.from_id
        ((late,),) = await (await writer.execute("SELECT statesvc.next_batch_id()")).fetchall()
        for _ in range(5):
            await log.act()
            sealed = await _pass(log, mark, sealed)
        assert before <= mark.from_id <= late, "its batch is still found"
        await writer.rollback()
        await _passes_until_beyond(log, mark, sealed, batch_id=late)


async def test_a_batch_has_the_times_of_its_first_and_its_last_entry(event_log: LogBuilder) -> None:
    await event_log.everything()
    await event_log.append(scan("1ZTWO", 1, None), scan("1ZTWO", 2, None))
    times = "SELECT recorded_from, recorded_to FROM statesvc.batch ORDER BY batch_id"
    kinds = " UNION ALL ".join(
        f"SELECT batch_id, recorded_at FROM statesvc.{kind}" for kind in EntryName
    )
    entries = await event_log.rows(
        f"SELECT min(recorded_at), max(recorded_at) FROM ({kinds}) e GROUP BY batch_id ORDER BY"
        " batch_id"
    )
    assert await event_log.rows(times) == entries
    assert any(since < until for since, until in entries)


_BATCH = (
    "INSERT INTO statesvc.batch (batch_id, recorded_from, recorded_to, entries, leaf_hashes,"
    " writer) SELECT %s, c, c, 1, sha256('leaf'), 'test' FROM statesvc.clock() c"
)


async def set_sequence(database: Any, value: int) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute("SELECT setval('statesvc.batch_id_seq', %s)", (value,))


async def test_a_sequence_behind_stops_appends_until_it_is_set(
    database: Any, event_log: LogBuilder
) -> None:
    for _ in range(4):
        await event_log.act()
    await event_log.seal()
    await set_sequence(database, 1)
    with pytest.raises(Error) as caught:
        await event_log.act()
    assert caught.value.sqlstate == "SS006"
    (finding,) = await storage_findings(event_log.connection, migrations=())
    assert "SELECT setval('statesvc.batch_id_seq', 4)" in finding.text
    await set_sequence(database, 4)
    assert await storage_findings(event_log.connection, migrations=()) == []
    await event_log.act()
    assert (await event_log.seal()).tree_size == 5
    assert verify(database).consistent


async def test_an_id_in_the_queue_is_not_taken_again(database: Any, event_log: LogBuilder) -> None:
    for _ in range(2):
        await event_log.act()
    await set_sequence(database, 1)
    with pytest.raises(Error):
        await event_log.act()
    assert (await event_log.seal()).tree_size == 2


async def test_an_id_that_is_sealed_after_it_was_given_out_again_is_not_taken(
    database: Any,
) -> None:
    async with (
        log_builder(database) as log,
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


async def test_ids_that_were_given_out_twice_are_a_refusal(
    event_log: LogBuilder, owner: AsyncConnection[Any]
) -> None:
    """As 0.1.0 left them, which had no such key."""
    await event_log.act()
    await event_log.seal()
    await owner.execute("ALTER TABLE statesvc.batch DISABLE TRIGGER await_sealing")
    await owner.execute("SET timezone = 'UTC'")
    await owner.execute(_BATCH, (1,))
    await owner.execute(
        "INSERT INTO statesvc.unsealed SELECT batch_id, max(recorded_from) FROM"
        " statesvc.batch GROUP BY 1"
    )
    sealed, _ = await take_stock(event_log.connection, MASTER, NOWHERE)
    with pytest.raises(RefusalError, match="ids were given out twice"):
        await seal(event_log.connection, sealed, from_id=0)


async def test_batches_that_nobody_queued_are_told_from_a_changed_log_and_queued(
    database: Any, event_log: LogBuilder, owner: AsyncConnection[Any]
) -> None:
    for _ in range(2):
        await event_log.act()
    await event_log.seal()
    await owner.execute("ALTER TABLE statesvc.batch DISABLE TRIGGER await_sealing")
    for _ in range(3):
        await event_log.act()
    await owner.execute("ALTER TABLE statesvc.batch ENABLE ALWAYS TRIGGER await_sealing")
    (fault,) = verify(database).faults
    assert "3 batches are neither sealed nor queued" in fault.why
    forgotten, writers = ForgottenBatches(), await read_writers(event_log.connection)
    assert await forgotten.requeue(event_log.connection, writers) == [3, 4, 5]
    assert forgotten.caught_up
    # as one that was written before the sweep and committed after it
    await owner.execute("DELETE FROM statesvc.unsealed WHERE batch_id = 4")
    assert await forgotten.requeue(event_log.connection, writers) == [4]
    assert await forgotten.requeue(event_log.connection, writers) == []
    assert (await event_log.seal()).tree_size == 5
    report = verify(database)
    assert report.consistent
    assert report.remarks == []
