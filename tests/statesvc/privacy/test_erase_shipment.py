"""Erased: nothing that the service holds opens any more, everything that was bound to it still
verifies, and the shipment lives on.
"""

import asyncio
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.bodies.sealed_message import seal_message
from statesvc.log.json_compression import decompress_json
from statesvc.maintenance.upkeep import once
from statesvc.privacy.erasure import (
    DeadLetterSearch,
    Erased,
    ErasedDeadLetters,
    Erasure,
    UnderLegalHoldError,
    erase,
    erase_dead_letters,
    names,
)
from statesvc.shipments.rebuild.rebuild import Rebuild
from statesvc.spool.drainer import Drainer, ServerClock
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import SpoolBounds, SpooledMessage
from tests.statesvc.conftest import ANOTHER_WAITS, one
from tests.statesvc.privacy.legible_values import legible
from tests.statesvc.worker.log_check import check_log
from tests.world.waiting import until
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

pytestmark = pytest.mark.slow

WORDS = ("Zebedee Quux", "Under the blue pot", "Zanzibar Lane 77")
OTHERS = "Mortimer Other"


async def forget(harness: WorkerHarness, number: str, **more: Any) -> Erased:
    wanted = Erasure(
        carrier_id=CARRIER_ID,
        tracking_number=number,
        why="asked to",
        actor="tester",
        backup_days=7,
        **more,
    )
    return await erase(harness.connection, wanted)


async def live(harness: WorkerHarness) -> None:
    """Push a parcel of one person, one of another, and a push about both."""
    await harness.ingest({"number": "A1", "status": "in_transit", "description": WORDS[1]})
    await harness.ingest(
        {
            "number": "A1",
            "status": "delivered",
            "minute": 9,
            "signed_by": WORDS[0],
            "delivery_address": WORDS[2],
            "native_id": "N",
        }
    )
    await harness.ingest(
        {"number": "B1", "status": "delivered", "signed_by": OTHERS, "native_id": "M"}
    )
    await harness.ingest(
        {"number": "A1", "minute": 20, "description": WORDS[1]},
        {"number": "B1", "minute": 21, "description": OTHERS},
    )
    await harness.ingest(
        {"number": "B1", "status": "lost", "native_id": "N", "signed_by": WORDS[0]}
    )


async def seen(harness: WorkerHarness) -> set[str]:
    everything = await legible(harness.connection)
    return {word for word in (*WORDS, OTHERS) if word.encode() in everything}


async def test_nothing_in_any_table_opens_any_more_and_the_log_still_verifies(
    harness: WorkerHarness, log: io.StringIO
) -> None:
    await live(harness)
    assert await seen(harness) == {*WORDS, OTHERS}, "the search finds what is there"
    leaves = await harness.rows(
        "SELECT canonical FROM statesvc.event ORDER BY shipment_id, version"
    )
    assert (await forget(harness, "a-1")).shipments == [shipment("A1")]
    assert await seen(harness) == {OTHERS}
    assert (
        await harness.rows("SELECT canonical FROM statesvc.event ORDER BY shipment_id, version")
        == leaves
    )
    assert await check_log(harness.connection, harness.keyring) > len(leaves)
    assert not any(word in log.getvalue() for word in (*WORDS, OTHERS))


async def test_a_later_push_is_applied_and_brings_nothing_personal_back(
    harness: WorkerHarness,
) -> None:
    await live(harness)
    await forget(harness, "A1")
    version = await harness.value(
        "SELECT version FROM statesvc.shipment WHERE shipment_id = %s", shipment("A1")
    )
    await harness.ingest(
        {
            "number": "A1",
            "status": "returning",
            "minute": 90,
            "signed_by": WORDS[0],
            "description": WORDS[1],
        }
    )
    await harness.ingest(
        {"number": "A1", "minute": 95, "description": WORDS[1]},
        {"number": "B1", "minute": 95, "description": "fine"},
    )
    assert (
        await harness.value(
            "SELECT version FROM statesvc.shipment WHERE shipment_id = %s", shipment("A1")
        )
        > version
    )
    assert await seen(harness) == {OTHERS}
    assert await check_log(harness.connection, harness.keyring) > 0


@pytest.mark.usefixtures("own_processes")
async def test_a_later_signature_leaves_no_digest_and_a_rebuild_finds_no_drift(
    harness: WorkerHarness,
) -> None:
    await live(harness)
    await forget(harness, "A1")
    before = await personal_ids(harness)
    signed = {
        "number": "A1",
        "status": "delivered",
        "minute": 200,
        "signed_by": WORDS[0],
        "native_id": "S",
    }
    await harness.ingest(signed)
    await harness.ingest({**signed, "signed_by": WORDS[1]}, envelope=1)
    late = {
        "number": "A1",
        "status": "delivered",
        "minute": 5,
        "signed_by": WORDS[0],
        "code": "EARLIER",
    }
    await harness.ingest(late)
    assert not any("signer_digest" in event for event in (await harness.events("A1"))[3:])
    stored = await harness.value(
        "SELECT state FROM statesvc.shipment WHERE shipment_id = %s", shipment("A1")
    )
    assert (
        harness.keyring.carrier_digest(CARRIER_ID)(
            b"signer\x1f" + shipment("A1").bytes + WORDS[1].encode()
        )[:16].hex()
        not in decompress_json(stored).decode()
    )
    assert await personal_ids(harness) == before, "an id that is a digest of the signer"
    assert (await rebuild(harness).compare())[1] == []


async def test_a_signature_that_waited_while_its_shipment_was_erased_leaves_no_digest(
    harness: WorkerHarness,
) -> None:
    await live(harness)
    before = await personal_ids(harness)
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute("LOCK TABLE statesvc.stream IN EXCLUSIVE MODE")
        saying = asyncio.create_task(
            harness.ingest(
                {
                    "number": "A1",
                    "status": "delivered",
                    "minute": 200,
                    "signed_by": "Yolanda",
                    "native_id": "S",
                }
            )
        )
        # the digest is made by now; the append waits for the stream
        await until(lambda: one(other, ANOTHER_WAITS))
        await forget(replace(harness, connection=other), "A1")
        await other.commit()
        await saying
    assert await personal_ids(harness) == before
    assert "signer_digest" not in (await harness.events("A1"))[-1]


def rebuild(harness: WorkerHarness) -> Rebuild:
    return Rebuild(
        owner_dsn=harness.database.owner_dsn, actor="tester", processes=1, progress=lambda *_: None
    )


async def personal_ids(harness: WorkerHarness) -> int:
    """Count the digests of values that a carrier added to its scans."""
    found: int = await harness.value(
        "SELECT count(*) FILTER (WHERE event_id LIKE 'e1-%%') +"
        " sum(octet_length(attribute_digests)) FROM statesvc.event_key WHERE shipment_id = %s",
        shipment("A1"),
    )
    return found


async def test_a_message_that_waited_while_its_shipment_was_erased_keeps_nothing(
    harness: WorkerHarness,
) -> None:
    await live(harness)
    await harness.push(push_body({"number": "A1", "minute": 50, "description": WORDS[1]}))
    messages = await harness.claim()
    await forget(harness, "A1")
    await harness.process(messages)
    assert await seen(harness) == {OTHERS}


async def test_a_message_drained_after_the_erasure_keeps_nothing(
    harness: WorkerHarness, tmp_path: Path
) -> None:
    await live(harness)
    spool = FileSpool(tmp_path, SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600))
    body = push_body({"number": "A1", "minute": 50, "description": WORDS[1], "signed_by": WORDS[0]})
    message = seal_message(harness.keyring, CARRIER_ID, body, "{}")
    await spool.keep(SpooledMessage(message, datetime.now(UTC)))
    await forget(harness, "A1")
    drainer = Drainer(spool, ServerClock(), dsn=harness.database.service_dsn)
    assert not await drainer.drain_all()
    await drainer.disconnect()
    await spool.close()
    assert drainer.stored == 1
    await harness.work()
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 0
    assert await seen(harness) == {OTHERS}


async def test_an_erasure_is_complete_once_no_spool_may_hold_the_number(
    harness: WorkerHarness,
) -> None:
    backups = (await forget(harness, "A1")).complete_at
    await harness.connection.execute(
        "INSERT INTO statesvc.spool (name, seen_at, held_seconds)"
        " VALUES ('file:1', statesvc.clock(), 10 * 86400)"
    )
    with_spool = (await forget(harness, "A1")).complete_at
    assert timedelta(days=3) <= with_spool - backups < timedelta(days=4)


async def test_pushes_that_say_nothing_or_only_contradict_are_as_unreadable(
    harness: WorkerHarness,
) -> None:
    await live(harness)
    await harness.ingest(envelope=WORDS[0], named=["a1"])
    await harness.ingest(envelope=WORDS[1], named=["A1"], rejected=1)
    await harness.ingest(
        {"number": "B1", "status": "lost", "native_id": "N", "description": WORDS[2]}, envelope=1
    )
    await harness.ingest({"number": "B1", "minute": 55}, envelope=WORDS[0], named=["A-1"])
    assert await seen(harness) == {*WORDS, OTHERS}
    await forget(harness, "A1")
    assert await seen(harness) == {OTHERS}
    assert (
        await harness.rows("SELECT message_id FROM statesvc.message WHERE shipments = '{}'") == []
    )
    await harness.ingest(envelope=WORDS[0] + " again", named=["A1"])
    await harness.ingest({"number": "B1", "minute": 56}, envelope=WORDS[0] + " again", named=["A1"])
    await harness.ingest(
        {
            "number": "B1",
            "status": "lost",
            "native_id": "N",
            "description": WORDS[2],
            "city": "Elsewhere",
        }
    )
    assert await seen(harness) == {OTHERS}
    assert await check_log(harness.connection, harness.keyring) > 0


async def test_a_claimed_shipment_that_nothing_else_is_known_of_can_be_erased(
    harness: WorkerHarness,
) -> None:
    await harness.ingest(
        {"number": "A1", "status": "delivered", "native_id": "N", "description": OTHERS}
    )
    await harness.ingest(
        {"number": "C1", "status": "lost", "native_id": "N", "description": WORDS[0]}
    )
    assert await seen(harness) == {WORDS[0], OTHERS}
    await forget(harness, "C1")
    assert await seen(harness) == {OTHERS}


@pytest.mark.usefixtures("own_processes")
async def test_a_number_that_was_only_named_is_no_shipment_until_something_is_said_of_it(
    harness: WorkerHarness,
) -> None:
    await harness.ingest(envelope=WORDS[0], named=["A1"])
    assert await harness.rows("SELECT version, sealed_key IS NULL FROM statesvc.stream") == [
        (0, False)
    ]
    assert await harness.rows("SELECT * FROM statesvc.shipment") == []
    assert (await rebuild(harness).compare())[1] == []
    await harness.ingest({"number": "A1", "status": "delivered", "signed_by": WORDS[1]})
    assert await harness.rows("SELECT version FROM statesvc.stream") == [(1,)]
    assert await check_log(harness.connection, harness.keyring) == 2
    assert await seen(harness) == set(WORDS[:2])
    await forget(harness, "A1")
    assert await seen(harness) == set()


@pytest.mark.usefixtures("own_processes")
async def test_a_number_that_was_never_seen_can_be_erased(harness: WorkerHarness) -> None:
    assert (await forget(harness, "A1")).shipments == [shipment("A1")]
    assert (await forget(harness, "A1")).already == [shipment("A1")]
    await harness.ingest(envelope=WORDS[0], named=["A1"])
    await harness.ingest(
        {
            "number": "A1",
            "status": "delivered",
            "signed_by": WORDS[0],
            "description": WORDS[1],
            "delivery_address": WORDS[2],
        }
    )
    assert await seen(harness) == set()
    assert await harness.value("SELECT status FROM statesvc.shipment") == "delivered"
    assert (await rebuild(harness).compare())[1] == []
    assert await harness.rows("SELECT actor, verb, target FROM statesvc.action") == [
        ("tester", "erase", f"shipment {shipment('A1')}")
    ]


@pytest.mark.parametrize(("count", "readable"), [(32, True), (33, False)])
async def test_a_push_that_says_nothing_about_many_numbers_keeps_no_body(
    harness: WorkerHarness,
    count: int,
    readable: bool,  # noqa: FBT001
) -> None:
    message_id = await harness.ingest(
        envelope=WORDS[0], named=[f"A{number}" for number in range(count)]
    )
    assert await seen(harness) == ({WORDS[0]} if readable else set())
    named = await harness.value(
        "SELECT cardinality(shipments) FROM statesvc.message WHERE message_id = %s", message_id
    )
    assert (
        named
        == await harness.value("SELECT count(*) FROM statesvc.stream")
        == (count if readable else 0)
    )


async def test_a_body_is_wrapped_once_however_many_shipments_it_names(
    harness: WorkerHarness,
) -> None:
    await harness.ingest(*({"number": f"A{number}", "minute": number} for number in range(300)))
    assert await harness.value("SELECT octet_length(sealed_key) FROM statesvc.message") < 100
    assert await harness.value("SELECT cardinality(shipments) FROM statesvc.message") == 300


async def test_a_stream_with_nothing_but_a_key_goes_with_the_last_message_that_named_it(
    harness: WorkerHarness,
) -> None:
    await harness.ingest(envelope=1, named=["A1", "B1", "C1"])
    await harness.ingest({"number": "B1"})
    await forget(harness, "C1")
    numbers = "SELECT number FROM statesvc.stream ORDER BY number"
    await once(harness.connection)
    assert await harness.rows(numbers) == [("A1",), ("B1",), ("C1",)]
    await harness.as_owner("UPDATE statesvc.stream SET named_at = '2020-01-01'")
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute("UPDATE statesvc.stream SET named_at = now() WHERE number = 'A1'")
        await once(harness.connection)
        await other.commit()
    assert await harness.rows(numbers) == [("A1",), ("B1",), ("C1",)], (
        "it was named again meanwhile"
    )
    await harness.as_owner("UPDATE statesvc.stream SET named_at = '2020-01-01' WHERE number = 'A1'")
    await once(harness.connection)
    assert await harness.rows(numbers) == [("B1",), ("C1",)]
    assert (
        await harness.rows("SELECT named_at FROM statesvc.stream WHERE named_at IS NOT NULL") == []
    )


async def test_a_legal_hold_stands_in_the_way(harness: WorkerHarness) -> None:
    await live(harness)
    await harness.as_owner(
        "INSERT INTO statesvc.legal_hold (carrier_id, number, tracking_number, placed_at,"
        f" placed_by, why) VALUES ('{CARRIER_ID}', 'A1', 'A1', now(), 'counsel', 'a lawsuit')"
    )
    with pytest.raises(UnderLegalHoldError):
        await forget(harness, "A1")
    assert await seen(harness) == {*WORDS, OTHERS}
    await forget(harness, "A1", override_hold=True)
    assert await seen(harness) == {OTHERS}


async def test_dead_letters_that_name_the_number_become_unreadable_and_no_others(
    harness: WorkerHarness,
) -> None:
    await live(harness)
    await harness.push(
        f"unreadable <x>a-1</x> {WORDS[0]}".encode(),
        f"unreadable B1 {OTHERS}".encode(),
        "unreadable A\u200b1".encode("utf-16"),
    )
    await harness.work()
    await forget(harness, "A1")
    assert await seen(harness) == {WORDS[0], OTHERS}, "nobody could tell whom it is about"
    search = DeadLetterSearch(
        carrier_id=CARRIER_ID, number="A1", actor="tester", keyring=harness.keyring, folder=None
    )
    assert await erase_dead_letters(harness.connection, search) == ErasedDeadLetters(
        searched=3, named=2, next_after=None
    )
    assert await seen(harness) == {OTHERS}
    assert (
        await harness.rows(
            "SELECT resolution, resolved_by FROM statesvc.dead_letter WHERE sealed_key IS NULL"
        )
        == [("discarded", "tester")] * 2
    )
    assert (await erase_dead_letters(harness.connection, search)).named == 0


async def test_a_later_dead_letter_of_an_erased_number_keeps_no_body(
    harness: WorkerHarness,
) -> None:
    await forget(harness, "A1")
    await harness.push(
        json.dumps({"defect": 1, "number": "a-1", "who": WORDS[0]}).encode(),
        json.dumps({"defect": 1, "number": "B1", "who": OTHERS}).encode(),
    )
    await harness.work()
    assert await seen(harness) == {OTHERS}
    assert dict(
        await harness.rows("SELECT resolution, count(*) FROM statesvc.dead_letter GROUP BY 1")
    ) == {"discarded": 1, None: 1}


FAILS = """CREATE FUNCTION statesvc.test_fails() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION USING ERRCODE = '{sqlstate}', MESSAGE = 'x'; END $$;
    CREATE TRIGGER test_fails BEFORE INSERT ON statesvc.event FOR EACH ROW EXECUTE FUNCTION statesvc.test_fails()"""


@pytest.mark.parametrize(
    ("sqlstate", "cause"),
    [("22003", "normalizer_failed"), ("57014", "attempts_exhausted")],
    ids=["refused", "given_back_too_often"],
)
async def test_what_fails_as_it_is_appended_and_names_an_erased_number_keeps_no_body(
    harness: WorkerHarness, sqlstate: str, cause: str
) -> None:
    await forget(harness, "A1")
    await harness.as_owner(FAILS.format(sqlstate=sqlstate))
    await harness.push(
        push_body({"number": "B1", "signed_by": WORDS[0]}, named=["A1"]),
        push_body({"number": "B2", "signed_by": WORDS[0]}, {"number": "A1", "minute": 3}),
        push_body({"number": "B3", "signed_by": OTHERS}),
    )
    await harness.as_owner("UPDATE statesvc.inbox SET retries = 20")
    assert await seen(harness) == {WORDS[0], OTHERS}
    # the lease leaves no time for a second try
    await harness.process(await harness.claim(), lease_seconds=1)
    assert await seen(harness) == {OTHERS}
    letters = await harness.rows(
        "SELECT cause, sealed_key IS NULL, resolution FROM statesvc.dead_letter ORDER BY 2"
    )
    assert letters == [(cause, False, None), (cause, True, "discarded"), (cause, True, "discarded")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "latin-1"])
def test_a_number_is_found_in_any_spelling_and_encoding(encoding: str) -> None:
    assert names("ab 1z-99 \n9 cd".encode(encoding), "1Z999")
    assert not names("ab 1z-98 \n9 cd".encode(encoding), "1Z999")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "latin-1"])
def test_a_short_number_counts_only_where_it_stands_alone(encoding: str) -> None:
    assert names('{"number": "70 41-6", "weight": 1}'.encode(encoding), "70416")
    assert not names('{"number": "1704160", "weight": 1}'.encode(encoding), "70416")


def test_a_long_number_counts_within_another_text() -> None:
    assert names(b"420902109405511899223344556677", "9405511899223344556677")
