"""No change of the log goes unnoticed by whoever holds an earlier checkpoint, and the place is
named.
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from psycopg import AsyncConnection, sql
from psycopg.types.json import Jsonb

from events.entry.canonical_json import canonical_bytes
from events.merkle.checkpoint import Checkpoint, NoteSigner
from statesvc.addons.verify import chain
from statesvc.log.batch_row import write_batch
from statesvc.log.checkpoints import latest_head
from statesvc.log.json_compression import decompress_json
from statesvc.log.signing_keys import read_keys
from statesvc.log.tree_nodes import tree_root
from statesvc.sealer.leadership import signers_of
from tests.world.attack import attack, attacker, places, sealed_story, verify
from tests.world.log_builder import MASTER, LogBuilder

pytestmark = pytest.mark.slow

TABLES = (
    "event",
    "conflict",
    "transition",
    "fanout",
    "attempt",
    "observation",
    "action",
    "batch",
    "sealed_batch",
    "subtree",
    "checkpoint",
)
UNBOUND = {("batch", "writer")}
"""A label for people; nothing rests on it."""


def flips(value: Any, dice: random.Random) -> Iterator[Any]:
    """Yield the value with one bit changed, a few times."""
    match value:
        case bytes():
            for bit in {0, len(value) * 8 - 1, dice.randrange(len(value) * 8)}:
                changed = bytearray(value)
                changed[bit // 8] ^= 1 << bit % 8
                yield bytes(changed)
        case bool():
            yield not value
        case int():
            yield value ^ 1 << dice.randrange(4)
        case datetime():
            yield value + timedelta(microseconds=1 << dice.randrange(20))
        case UUID():
            yield UUID(int=value.int ^ 1 << dice.randrange(128))
        case str():
            place = dice.randrange(len(value))
            yield value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :]
        case list():
            yield [UUID(int=value[0].int ^ 1 << dice.randrange(128)), *value[1:]]
        case None:
            yield "x"
        case _:
            raise TypeError(type(value))


@pytest.mark.parametrize("table", TABLES)
async def test_a_flipped_bit_in_any_column_is_found_and_its_row_named(
    database: Any, sealed_log: LogBuilder, table: str
) -> None:
    dice = random.Random(table)
    async with AsyncExitStack() as stack:
        if table == "subtree":
            for _ in range(300):
                await sealed_log.act()
            await sealed_log.seal()
        hand = await stack.enter_async_context(attacker(database))
        note = (
            await sealed_log.rows("SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1")
        )[0][0]
        cursor = await hand.execute(
            f"SELECT tableoid::regclass::text, ctid::text, * FROM statesvc.{table}".encode(),
            binary=True,
        )
        names = [column.name for column in cursor.description or ()][2:]
        rows = await cursor.fetchall()
        for place, name in enumerate(names, start=2):
            partition, ctid, *_ = row = dice.choice(rows)
            for changed in [Jsonb([{"number": 1}])] if name == "tries" else flips(row[place], dice):
                if (table, name) in UNBOUND:
                    continue
                assign = sql.SQL(
                    "UPDATE {} SET {} = %s WHERE ctid = %s::tid RETURNING ctid::text"
                ).format(sql.Identifier(*partition.split(".")), sql.Identifier(name))
                moved = await (await hand.execute(assign, (changed, ctid))).fetchone()
                assert moved is not None
                report = verify(database, note=note)
                assert report.faults, (table, name)
                assert any(
                    fault.table in {table, "batch", "sealed_batch"} for fault in report.faults
                ), (name, places(report))
                back = await (await hand.execute(assign, (row[place], moved[0]))).fetchone()
                assert back is not None
                ctid = back[0]
            rows = [each if each is not row else (partition, ctid, *each[2:]) for each in rows]
        assert places(verify(database, note=note)) == []


async def earlier(log: LogBuilder) -> str:
    """Return the head that the verifier kept: the second of three."""
    note: str = (
        await log.rows("SELECT note FROM statesvc.checkpoint ORDER BY tree_size OFFSET 1 LIMIT 1")
    )[0][0]
    return note


async def test_a_deleted_event_is_missed(database: Any, sealed_log: LogBuilder) -> None:
    await attack(
        database,
        "DELETE FROM statesvc.event WHERE version = 2 AND carrier_code = 'T/X1' AND"
        " shipment_id = (" + OLDEST + ")",
    )
    found = places(verify(database, note=await earlier(sealed_log)))
    assert any(
        "the entry with leaf hash" in each and each.startswith("batch (batch_id=") for each in found
    )
    assert any("version 2 is missing" in each for each in found)


OLDEST = "SELECT shipment_id FROM statesvc.stream WHERE number = '1Z0001'"


async def test_a_shipment_s_last_event_is_missed_though_all_around_it_was_mended(
    database: Any, sealed_log: LogBuilder
) -> None:
    (batch_id,) = (
        await sealed_log.rows(
            f"SELECT batch_id FROM statesvc.event WHERE version = 5 AND shipment_id = ({OLDEST})"
        )
    )[0]
    await attack(
        database,
        "UPDATE statesvc.stream s SET version = 4, head_hash ="
        " statesvc.leaf_hash(b.leaf_hashes, e.ordinal), recorded_at = e.recorded_at FROM"
        " statesvc.event e JOIN statesvc.batch b USING (batch_id) WHERE e.shipment_id ="
        f" s.shipment_id AND e.version = 4 AND s.shipment_id = ({OLDEST})",
        f"DELETE FROM statesvc.event WHERE batch_id = {batch_id}",
        f"DELETE FROM statesvc.transition WHERE batch_id = {batch_id}",
        f"DELETE FROM statesvc.batch WHERE batch_id = {batch_id}",
        f"DELETE FROM statesvc.sealed_batch WHERE batch_id = {batch_id}",
    )
    found = verify(database, note=await earlier(sealed_log)).faults
    assert ("sealed_batch", "first_index") in {(fault.table, fault.field) for fault in found}
    # and the places closed up
    await attack(
        database,
        "CREATE TABLE statesvc.moved AS SELECT sum(entries) OVER (ORDER BY first_index) -"
        " entries AS first_index, batch_id, recorded_from, recorded_to, entries, sealed_at FROM"
        " statesvc.sealed_batch",
        "DELETE FROM statesvc.sealed_batch",
        "INSERT INTO statesvc.sealed_batch SELECT * FROM statesvc.moved",
    )
    found = verify(database, note=await earlier(sealed_log)).faults
    assert ("checkpoint", "root") in {(fault.table, fault.field) for fault in found}


async def rewrite(hand: AsyncConnection[Any], table: str, where: str, **changes: Any) -> None:
    """Write an entry anew and mend its hashes, columns and batch: only the tree knows."""
    query = f"SELECT batch_id, ordinal, canonical FROM statesvc.{table} WHERE {where}"
    row = await (await hand.execute(query.encode(), binary=True)).fetchone()
    assert row is not None
    batch_id, ordinal, canonical = row
    document = orjson.loads(decompress_json(canonical)) | changes
    rewritten = canonical_bytes(document)
    leaf_hash = hashlib.sha256(b"\x00" + rewritten).digest()
    assign = f"UPDATE statesvc.{table} SET canonical = %s WHERE batch_id = %s AND ordinal = %s"
    await hand.execute(assign.encode(), (rewritten, batch_id, ordinal))
    await hand.execute(
        "UPDATE statesvc.batch SET leaf_hashes = overlay(leaf_hashes PLACING %s FROM %s FOR 32)"
        " WHERE batch_id = %s",
        (leaf_hash, 32 * ordinal + 1, batch_id),
    )


async def test_a_back_dated_entry_is_found_though_its_hashes_were_mended(
    database: Any, sealed_log: LogBuilder
) -> None:
    async with attacker(database) as hand:
        await rewrite(
            hand,
            "action",
            "batch_id = (SELECT min(batch_id) FROM statesvc.action)",
            recorded_at="2020-01-01T00:00:00+00:00",
        )
        await hand.execute(
            "UPDATE statesvc.action SET recorded_at = recorded_at - interval '1 second'"
            " WHERE batch_id = (SELECT min(batch_id) FROM statesvc.action)"
        )
        found = verify(database, note=await earlier(sealed_log)).faults
        assert ("action", "recorded_at") in {(fault.table, fault.field) for fault in found}
        assert ("checkpoint", "root") in {(fault.table, fault.field) for fault in found}
        await rewrite(
            hand,
            "action",
            "batch_id = (SELECT min(batch_id) FROM statesvc.action)",
            actor="somebody else",
        )


async def test_a_rewritten_entry_is_narrowed_down_by_the_kept_nodes(
    database: Any, sealed_log: LogBuilder
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(600):
            await sealed_log.act()
        await sealed_log.seal()
        hand = await stack.enter_async_context(attacker(database))
        where = "batch_id = (SELECT batch_id FROM statesvc.sealed_batch WHERE first_index = 300)"
        await rewrite(hand, "action", where, actor="cli:ops", target="carrier dpd")
        await hand.execute(
            f"UPDATE statesvc.action SET target = 'carrier dpd' WHERE {where}".encode()
        )
        found = places(verify(database))
        assert any(
            "subtree (level=8 position=1), hash: is not what the leaves 256..511 give" in each
            for each in found
        )


def copied(place: str) -> str:
    """Return SQL that copies one action to another position."""
    return (
        f"INSERT INTO statesvc.action SELECT recorded_at, {place}, actor, verb, target, canonical"
        " FROM (SELECT * FROM statesvc.action ORDER BY batch_id LIMIT 1) a"
    )


@pytest.mark.parametrize(
    ("change", "table", "field"),
    [
        (  # two entries of a batch swapped
            (
                "UPDATE statesvc.event SET ordinal = 1 - ordinal WHERE batch_id = (SELECT"
                " max(batch_id) FROM statesvc.event)"
            ),
            "batch",
            "leaf_hashes, ordinal 0",
        ),
        (  # two batches swapped
            "UPDATE statesvc.sealed_batch SET batch_id = 3 - batch_id WHERE batch_id IN (1, 2)",
            "sealed_batch",
            "recorded_from",
        ),
        (  # one inserted into a batch
            copied("batch_id, ordinal + 1"),
            "action",
            "ordinal",
        ),
        (  # one inserted under an id that comes much later
            copied("4711, ordinal"),
            "batch",
            "batch_id",
        ),
        (  # one inserted under an id that never was
            copied("-1, ordinal"),
            "action",
            "ordinal",
        ),
        (  # a batch with its entry, beside the queue
            "WITH a AS (INSERT INTO statesvc.batch SELECT 0, recorded_at, recorded_at, 1,"
            " sha256('\\x00'::bytea || canonical), 'x' FROM statesvc.action LIMIT 1) "
            + copied("0, 0"),
            "batch",
            "batch_id",
        ),
        ("DELETE FROM statesvc.batch WHERE batch_id = 3", "sealed_batch", "batch_id"),
        (
            (
                "INSERT INTO statesvc.unsealed SELECT batch_id, recorded_from FROM statesvc.batch"
                " LIMIT 1"
            ),
            "unsealed",
            "batch_id",
        ),
        ("INSERT INTO statesvc.subtree VALUES (8, 7, sha256('x'))", "subtree", "position"),
        (
            "UPDATE statesvc.stream SET version = version - 1 WHERE number = '1Z0003'",
            "stream",
            "version",
        ),
        (
            "UPDATE statesvc.stream SET head_hash = sha256('x') WHERE number = '1Z0003'",
            "stream",
            "head_hash",
        ),
        ("DELETE FROM statesvc.stream WHERE number = '1Z0003'", "stream", "shipment_id"),
        (
            (
                "DELETE FROM statesvc.checkpoint WHERE tree_size = (SELECT min(tree_size) FROM"
                " statesvc.checkpoint)"
            ),
            "sealed_batch",
            "sealed_at",
        ),
    ],
)
async def test_what_was_moved_added_or_removed_is_named(
    database: Any, sealed_log: LogBuilder, change: str, table: str, field: str
) -> None:
    note = await earlier(sealed_log)
    await attack(database, change)
    found = verify(database, note=note).faults
    assert (table, field) in {(fault.table, fault.field) for fault in found}, found


CUT = (
    (
        "CREATE TABLE statesvc.gone AS SELECT batch_id FROM statesvc.sealed_batch, (SELECT"
        " min(tree_size) FROM statesvc.checkpoint) c WHERE first_index >= min"
    ),
    "DELETE FROM statesvc.event WHERE batch_id IN (SELECT * FROM statesvc.gone)",
    "DELETE FROM statesvc.transition WHERE batch_id IN (SELECT * FROM statesvc.gone)",
    "DELETE FROM statesvc.action WHERE batch_id IN (SELECT * FROM statesvc.gone)",
    "DELETE FROM statesvc.batch WHERE batch_id IN (SELECT * FROM statesvc.gone)",
    "DELETE FROM statesvc.sealed_batch WHERE batch_id IN (SELECT * FROM statesvc.gone)",
    (
        "DELETE FROM statesvc.event_key k WHERE NOT EXISTS (SELECT FROM statesvc.event e WHERE"
        " e.event_id = k.event_id)"
    ),
    (
        "DELETE FROM statesvc.stream s WHERE NOT EXISTS (SELECT FROM statesvc.event e WHERE"
        " e.shipment_id = s.shipment_id)"
    ),
    (
        "DELETE FROM statesvc.checkpoint WHERE tree_size > (SELECT min(tree_size) FROM"
        " statesvc.checkpoint)"
    ),
)


async def test_a_log_cut_off_at_an_earlier_head_shows_only_against_a_later_one(
    database: Any, sealed_log: LogBuilder
) -> None:
    note = await earlier(sealed_log)
    first = (
        await sealed_log.rows("SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1")
    )[0][0]
    await attack(database, *CUT)
    assert places(verify(database)) == places(verify(database, note=first)) == []
    (fault,) = verify(database, note=note, note_name="kept.txt").faults
    assert fault.table == "kept.txt"
    assert "the log was cut off, or restored" in fault.why


async def sign_over(database: Any, log: LogBuilder, signer: NoteSigner, *, above: int) -> None:
    """Sign all heads above a size anew, for the log as it is now."""
    async with attacker(database) as hand:
        for size, created_at in await log.rows(
            "SELECT tree_size, created_at FROM statesvc.checkpoint"
        ):
            if size > above:
                root = await tree_root(log.connection, size)
                note = Checkpoint(log.origin, size, root).signed([signer], at=created_at)
                await hand.execute(
                    "UPDATE statesvc.checkpoint SET root = %s, note = %s WHERE tree_size = %s",
                    (root, note, size),
                )
        await hand.execute("DELETE FROM statesvc.second_signature")


async def test_who_has_broken_ed25519_alone_cannot_sign_for_those_who_ask_for_ml_dsa(
    database: Any, sealed_log: LogBuilder
) -> None:
    async with attacker(database) as hand:
        (signer,) = await signers_of(sealed_log.connection, MASTER)
        assert signer.cosigner is not None
        keys = [signer.verifier, signer.cosigner]
        assert verify(database, keys=keys).sound
        await rewrite(
            hand, "action", "batch_id = (SELECT max(batch_id) FROM statesvc.action)", actor="x"
        )
        first = (await sealed_log.rows("SELECT min(tree_size) FROM statesvc.checkpoint"))[0][0]
        line = (await sealed_log.rows("SELECT line FROM statesvc.second_signature"))[0][0]
        await sign_over(database, sealed_log, signer, above=first)
        fault = "second_signature (newest head), line: "
        assert fault + "the head has no signature by ML-DSA-44" in places(
            verify(database, keys=keys)
        )
        head = await latest_head(sealed_log.connection)
        assert head is not None
        await hand.execute(
            "INSERT INTO statesvc.second_signature (tree_size, line) VALUES (%s, %s)",
            (head.tree_size, line),
        )
        assert any(each.startswith(fault) for each in places(verify(database, keys=keys)))


async def test_a_key_that_only_the_database_knows_is_not_believed(
    database: Any, sealed_log: LogBuilder
) -> None:
    async with attacker(database) as hand:
        stranger = NoteSigner.fresh(sealed_log.origin)
        first = (await sealed_log.rows("SELECT min(tree_size) FROM statesvc.checkpoint"))[0][0]
        await rewrite(
            hand, "action", "batch_id = (SELECT max(batch_id) FROM statesvc.action)", actor="x"
        )
        await hand.execute(
            "UPDATE statesvc.action SET actor = 'x' WHERE batch_id = (SELECT max(batch_id) FROM"
            " statesvc.action)"
        )
        await hand.execute(
            "INSERT INTO statesvc.signing_key VALUES (%s, %s, %s, '', now(), NULL)",
            (stranger.verifier.key_id, sealed_log.origin, stranger.verifier.public_key),
        )
        await sign_over(database, sealed_log, stranger, above=first)
        found = places(verify(database))
        assert len(found) == 3
        assert all("signed by a key that no trusted key has announced" in each for each in found)


async def test_a_log_signed_over_from_its_first_head_on_shows_against_the_key_or_an_earlier_head(
    database: Any, sealed_log: LogBuilder
) -> None:
    async with attacker(database) as hand:
        note = await earlier(sealed_log)
        ours = [key.verifier for key in await read_keys(sealed_log.connection)]
        stranger = NoteSigner.fresh(sealed_log.origin)
        await hand.execute("DELETE FROM statesvc.signing_key")
        await hand.execute(
            "INSERT INTO statesvc.signing_key VALUES (%s, %s, %s, '', now(), NULL)",
            (stranger.verifier.key_id, sealed_log.origin, stranger.verifier.public_key),
        )
        await sign_over(database, sealed_log, stranger, above=0)
        assert places(verify(database)) == [], (
            "without anything from outside there is nothing to hold it against"
        )
        assert "no known key has signed" in places(verify(database, note=note))[0]
        assert "no trusted key has announced" in places(verify(database, keys=ours))[0]


async def test_a_round_that_is_dated_back_whole_is_found_by_its_signature(database: Any) -> None:
    async with sealed_story(database):
        first = "(SELECT min(created_at) FROM statesvc.checkpoint)"
        await attack(
            database,
            "UPDATE statesvc.sealed_batch SET sealed_at = sealed_at - interval '1 day' WHERE"
            f" sealed_at = {first}",
            "UPDATE statesvc.checkpoint SET created_at = created_at - interval '1 day' WHERE"
            f" created_at = {first}",
        )
        (fault,) = verify(database).faults
        assert (fault.table, fault.field) == ("checkpoint", "created_at")


def test_the_sum_of_a_chain_does_not_depend_on_the_order_but_on_every_link() -> None:
    hashes = [hashlib.sha256(bytes([n])).digest() for n in range(4)]
    links = [
        ("0001", 1, hashes[0], bytes(32)),
        ("0001", 2, hashes[1], hashes[0]),
        ("0001", 3, hashes[2], hashes[1]),
    ]
    other = [("0002", 1, hashes[3], bytes(32))]

    def rest(*wanted: tuple[str, int, bytes, bytes]) -> list[str]:
        sums = chain.Sums()
        chain.add_head(sums, "0001", 3, hashes[2])
        chain.add_head(sums, "0002", 1, hashes[3])
        links = [
            (shipment_id, version, leaf_hash, previous.hex())
            for shipment_id, version, leaf_hash, previous in wanted
        ]
        together, apart = chain.Sums(sums), chain.Sums(sums)
        chain.add_events(together, links)
        for link in links:
            chain.add_events(apart, [link])
        assert {part: rest for part, rest in together.items() if rest} == {
            part: rest for part, rest in apart.items() if rest
        }
        return chain.unequal_parts(together)

    assert rest(*links, *other) == rest(*other, *links[::-1]) == []
    for broken in (
        links,
        [*links[:2], *other],
        [*links[1:], *other],
        [*links, links[0], *other],
        [links[0], links[1], ("0001", 3, hashes[2], hashes[3]), *other],
        [links[0], ("0001", 3, hashes[1], hashes[0]), ("0001", 2, hashes[2], hashes[1]), *other],
        [*links, ("0002", 1, hashes[3], hashes[0])],
        [links[0], links[1], ("0002", 3, hashes[2], hashes[1]), ("0001", 1, hashes[3], bytes(32))],
    ):
        assert rest(*broken) == ["000"]


async def test_a_batch_row_alone_is_no_entry(database: Any, sealed_log: LogBuilder) -> None:
    async with sealed_log.connection.transaction():
        rows = await sealed_log.rows("SELECT statesvc.clock(), nextval('statesvc.batch_id_seq')")
        await write_batch(
            sealed_log.connection,
            batch_id=rows[0][1],
            recorded_at=rows[0][0],
            leaf_hashes=[bytes(32)],
            writer="x",
        )
    (fault,) = verify(database).faults
    assert "is missing: it was deleted" in fault.why
