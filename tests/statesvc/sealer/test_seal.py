"""Rounds of the sealer: dense, final, and nothing that commits late is missed."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from events.entry.kinds import EntryName
from events.merkle.compact_range import CompactRange
from statesvc.sealer.leadership import publish, signers_of, take_stock
from statesvc.sealer.seal import RefusalError, SealedLog, SealMark, read_writers, seal
from tests.world.attack import verify
from tests.world.database import Clock, without_triggers
from tests.world.story import MASTER, NOWHERE, Story, root_of, scan, story


async def test_a_round_gives_every_committed_entry_its_place(database: Any) -> None:
    async with story(database) as log:
        await log.everything()
        head = await log.seal()
        leaves = await log.leaves()
        entries = await log.rows("SELECT sum(entries) FROM statesvc.batch")
        assert head.tree_size == len(leaves) == entries[0][0]
        checkpoint = await log.opened()
        assert (checkpoint.size, checkpoint.root) == (len(leaves), root_of(leaves))
        assert await log.rows("SELECT FROM statesvc.unsealed") == []
        kinds = await log.rows(
            "SELECT count(*) FROM statesvc.event UNION ALL SELECT count(*) FROM statesvc.conflict"
        )
        assert all(count for (count,) in kinds)


async def test_rounds_follow_each_other_without_a_gap(database: Any) -> None:
    async with story(database) as log:
        heads = []
        for number in range(4):
            await log.parcel(f"1Z{number:04}")
            heads.append(await log.seal())
        leaves = await log.leaves()
        assert [head.root for head in heads] == [
            root_of(leaves[: head.tree_size]) for head in heads
        ]
        assert [head.created_at for head in heads] == sorted({head.created_at for head in heads})
        sealed_at = await log.rows(
            "SELECT DISTINCT sealed_at FROM statesvc.sealed_batch ORDER BY 1"
        )
        assert [at for (at,) in sealed_at] == [head.created_at for head in heads]


async def test_a_round_without_news_signs_nothing(database: Any) -> None:
    async with story(database) as log:
        await log.act()
        assert await log.seal() == await log.seal()


async def test_what_commits_late_comes_later_and_is_not_missed(database: Any) -> None:
    async with story(database) as log, await AsyncConnection.connect(database.service_dsn) as held:
        await held.execute("SET timezone = 'UTC'")
        late = Story(held, log.keyring)
        await late.say(scan("1ZHELD", 1, None), commit=False)
        await log.say(scan("1ZFIRST", 1, None))
        first = await log.seal()
        assert first.tree_size == 1
        await held.commit()
        await log.say(scan("1ZTHIRD", 1, None))
        second = await log.seal()
        assert second.tree_size == 3
        order = await log.rows(
            "SELECT b.batch_id, s.first_index FROM statesvc.batch b JOIN statesvc.sealed_batch s"
            " USING (batch_id) ORDER BY 1"
        )
        # the one that began first committed last
        assert [index for _, index in order] == [1, 0, 2]
        assert (await log.opened()).root == root_of(await log.leaves())


@pytest.mark.parametrize("shift_seconds", [-3600, -30])
async def test_a_batch_that_says_an_earlier_time_than_can_be_is_named(
    database: Any, shift_seconds: int
) -> None:
    async with story(database) as log:
        await log.act()
        await log.seal()
        await Clock(database.owner_dsn).advance(shift_seconds)
        await log.act()
        await Clock(database.owner_dsn).advance(-shift_seconds)
        sealed, _ = await take_stock(log.connection, MASTER, NOWHERE)
        done = await seal(log.connection, sealed, from_id=0)
        await publish(
            log.connection, done.sealed, await signers_of(log.connection, MASTER), NOWHERE
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


async def test_a_batch_that_waits_for_a_sealer_that_was_away_is_not_named(database: Any) -> None:
    async with story(database) as log:
        await log.act()
        await log.seal()
        await Clock(database.owner_dsn).advance(3600)
        await log.act()
        await Clock(database.owner_dsn).advance(7200)
        sealed, _ = await take_stock(log.connection, MASTER, NOWHERE)
        assert (await seal(log.connection, sealed, from_id=0)).back_dated == ()


async def test_a_transaction_that_is_rolled_back_leaves_no_gap(database: Any) -> None:
    async with story(database) as log, await AsyncConnection.connect(database.service_dsn) as other:
        await other.execute("SET timezone = 'UTC'")
        await Story(other, log.keyring).say(scan("1ZGONE", 1, None), commit=False)
        await log.act()
        await other.rollback()
        await log.act()
        assert (await log.seal()).tree_size == 2


@pytest.mark.slow
async def test_many_rounds_keep_the_subtrees_that_proofs_need(database: Any) -> None:
    async with story(database) as log:
        for _ in range(5):
            for _ in range(120):
                await log.act()
            await log.seal()
        leaves = await log.leaves()
        expected = [
            (each.node.level, each.node.position, each.hash)
            for each in CompactRange().extend(leaves)
        ]
        assert (
            await log.rows("SELECT level, position, hash FROM statesvc.subtree ORDER BY 1, 2")
            == expected
        )
        sealed, _ = await take_stock(log.connection, MASTER, NOWHERE)
        assert sealed.tree.root() == root_of(leaves)


async def test_the_successor_signs_what_its_predecessor_only_sealed(database: Any) -> None:
    async with story(database) as log:
        await log.act()
        sealed, _ = await take_stock(log.connection, MASTER, NOWHERE)
        await seal(log.connection, sealed, from_id=0)
        sealed, head = await take_stock(log.connection, MASTER, NOWHERE)
        assert (sealed.tree.size, head) == (1, None)
        await publish(log.connection, sealed, await signers_of(log.connection, MASTER), NOWHERE)
        assert (await log.opened()).size == 1


async def test_two_heads_of_one_size_cannot_be_kept(database: Any) -> None:
    async with story(database) as log:
        await log.act()
        await log.seal()
        sealed, _ = await take_stock(log.connection, MASTER, NOWHERE)
        with pytest.raises(psycopg.errors.UniqueViolation):
            await publish(log.connection, sealed, await signers_of(log.connection, MASTER), NOWHERE)


async def test_a_batch_that_waits_but_is_gone_stops_the_sealer(database: Any) -> None:
    async with story(database) as log:
        await log.act()
        async with without_triggers(database.superuser_dsn) as attacker:
            await attacker.execute("DELETE FROM statesvc.batch")
        with pytest.raises(RefusalError, match="someone deleted it"):
            await log.seal()


async def test_no_writer_can_forget_to_have_its_batch_sealed(database: Any) -> None:
    async with story(database) as log:
        await log.connection.execute(
            "INSERT INTO statesvc.batch (recorded_from, recorded_to, entries, leaf_hashes, writer)"
            " VALUES (now(), now(), 1, sha256('x'), 'older release')"
        )
        assert len(await log.rows("SELECT FROM statesvc.unsealed")) == 1
        assert (await log.seal()).tree_size == 1


async def test_partitions_made_later_queue_their_batches_too(database: Any) -> None:
    async with story(database) as log:
        await database.clock.advance(40 * 86_400)
        await log.act()
        assert (await log.seal()).tree_size == 1


async def _pass(log: Story, mark: SealMark, sealed: SealedLog) -> SealedLog:
    writers = await read_writers(log.connection)
    done = await seal(log.connection, sealed, from_id=mark.from_id)
    mark.passed(writers, done)
    return done.sealed


async def _passes_until_beyond(
    log: Story, mark: SealMark, sealed: SealedLog, *, batch_id: int
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
        story(database) as log,
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


async def test_a_batch_has_the_times_of_its_first_and_its_last_entry(database: Any) -> None:
    async with story(database) as log:
        await log.everything()
        await log.say(scan("1ZTWO", 1, None), scan("1ZTWO", 2, None))
        times = "SELECT recorded_from, recorded_to FROM statesvc.batch ORDER BY batch_id"
        kinds = " UNION ALL ".join(
            f"SELECT batch_id, recorded_at FROM statesvc.{kind}" for kind in EntryName
        )
        entries = await log.rows(
            f"SELECT min(recorded_at), max(recorded_at) FROM ({kinds}) e GROUP BY batch_id ORDER BY"
            " batch_id"
        )
        assert await log.rows(times) == entries
        assert any(since < until for since, until in entries)
