"""Rows outside the log that its entries bind are what it says, and `verify` names the one that is not."""

from typing import Any

import pytest

from statesvc.addons.verify.message_rows import UNREADABLE
from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from tests.world.attack import attack, attacker, places, sealed_story, verify
from tests.world.body_archiver import HOT_DAYS, KEEP_MONTHS, Archiver
from tests.world.database import Database
from tests.world.log_builder import LogBuilder, scan
from tests.world.worker_harness import WorkerHarness

INSERT = "INSERT INTO statesvc.event_key SELECT 'ups', 'd1-x', shipment_id, '', '',"
FACTS = "UPDATE statesvc.event_key SET facts_digest ="
NATIVE = "event_id = 'scan-1Z0002'"
DERIVED = (
    "(carrier_id, event_id) = (SELECT carrier_id, event_id FROM statesvc.event WHERE event_id LIKE"
    " 'd1-%' ORDER BY batch_id LIMIT 1)"
)
OTHER = "(SELECT shipment_id FROM statesvc.stream WHERE number = '1Z0003')"


async def aliased(log: LogBuilder) -> None:
    """Make a scan that has a second id: an answer of the carrier's prints none."""
    await log.append(scan("SF0001", 3, None, native_id="77"), carrier_id="sf_express")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "field", "why"),
    [
        (f"DELETE FROM statesvc.event_key WHERE {DERIVED}", "event_id", "was deleted"),
        (f"DELETE FROM statesvc.event_key WHERE {NATIVE}", "event_id", "was deleted"),
        (f"{INSERT} NULL FROM statesvc.stream LIMIT 1", "event_id", "inserted"),
        (
            f"UPDATE statesvc.event_key SET shipment_id = {OTHER} WHERE {DERIVED}",
            "shipment_id",
            "but the event is in shipment",
        ),
        (
            f"UPDATE statesvc.event_key SET event_id = 'other' WHERE {NATIVE}",
            "event_id",
            "was deleted",
        ),
        (
            f"{FACTS} set_byte(facts_digest, 4, 255 - get_byte(facts_digest, 4)) WHERE {NATIVE}",
            "facts_digest",
            "is not that",
        ),
        (f"{FACTS} '' WHERE {NATIVE}", "facts_digest", "is not that"),
        (
            f"UPDATE statesvc.event_key SET alias_of = 'scan-1Z0002' WHERE {DERIVED}",
            "alias_of",
            "an alias of scan-1Z0002",
        ),
        ("DELETE FROM statesvc.event_key WHERE alias_of IS NOT NULL", "event_id", "has this alias"),
        (
            "UPDATE statesvc.event_key SET alias_of = 'none' WHERE alias_of IS NOT NULL",
            "alias_of",
            "no row of none",
        ),
        (
            f"UPDATE statesvc.event_key SET shipment_id = {OTHER} WHERE alias_of IS NOT NULL",
            "shipment_id, facts_digest, attribute_digests",
            "is not what the row",
        ),
        (
            (
                "INSERT INTO statesvc.event_key SELECT 'ups', 'a', shipment_id, '', '', 'b' FROM"
                " statesvc.stream LIMIT 1"
            ),
            "alias_of",
            "no row of b",
        ),
    ],
)
async def test_a_row_that_is_not_what_the_log_says_is_named(
    database: Any, sealed_log: LogBuilder, change: str, field: str, why: str
) -> None:
    await aliased(sealed_log)
    assert places(verify(database)) == []
    await attack(database, change)
    found = verify(database).faults
    assert {fault.table for fault in found} == {"event_key"}
    assert any(fault.field == field and why in fault.why for fault in found), found


async def test_two_events_of_one_id_are_found_though_each_has_a_row(
    database: Any, sealed_log: LogBuilder
) -> None:
    # as if the key had not been there when the scan came again: a row more hides the count
    async with attacker(database) as hand:
        await hand.execute(
            "CREATE TABLE statesvc.gone AS SELECT * FROM statesvc.event_key WHERE"
            f" {NATIVE}".encode()
        )
        await hand.execute(f"DELETE FROM statesvc.event_key WHERE {NATIVE}".encode())
    await sealed_log.append(scan("1Z0002", 50, None, code="A1", native_id="scan-1Z0002"))
    assert any("another event of the log has it too" in each for each in places(verify(database)))


@pytest.mark.usefixtures("own_processes")
async def test_rows_are_compared_across_processes_and_after_a_stop(database: Any) -> None:
    async with sealed_story(database):
        await attack(database, f"DELETE FROM statesvc.event_key WHERE {DERIVED}")
        assert places(verify(database, processes=2)) == places(verify(database)) != []


FIRST = "(SELECT message_id FROM statesvc.message ORDER BY message_id LIMIT 1)"


async def three_messages(harness: WorkerHarness) -> None:
    for number in ("A1", "A2", "A3"):
        await harness.ingest(
            {"number": number, "status": "in_transit"},
            {"number": number, "status": "delivered", "minute": 5},
        )


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (f"DELETE FROM statesvc.message WHERE message_id = {FIRST}", "message"),
        (f"DELETE FROM statesvc.body WHERE message_id = {FIRST}", "body"),
        (f"UPDATE statesvc.body SET commitment = sha256('x') WHERE message_id = {FIRST}", "body"),
        ("UPDATE statesvc.stream SET number = 'A9' WHERE number = 'A1'", "stream"),
        ("UPDATE statesvc.stream SET discriminator = 'x' WHERE number = 'A1'", "stream"),
    ],
)
async def test_a_row_that_the_log_binds_is_not_changed_unnoticed(
    harness: WorkerHarness, database: Database, statement: str, named: str
) -> None:
    await three_messages(harness)
    assert places(verify(database)) == []
    await attack(database, statement)
    (fault,) = verify(database).faults
    assert fault.table == named


async def test_deleted_rows_are_named_each(harness: WorkerHarness, database: Database) -> None:
    await three_messages(harness)
    await attack(database, "DELETE FROM statesvc.message", "DELETE FROM statesvc.body")
    tables = [fault.table for fault in verify(database).faults]
    assert sorted(tables) == ["body"] * 3 + ["message"] * 3


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM statesvc.conflict_key",
        "UPDATE statesvc.conflict_key SET shipment_id = gen_random_uuid()",
        "UPDATE statesvc.conflict_key SET recorded_at = recorded_at - interval '1 day'",
        """INSERT INTO statesvc.conflict_key
            (carrier_id, event_id, facts_digest, shipment_id, claimed_shipment_id, recorded_at, last_seen_at)
        SELECT k.carrier_id, 'planted', k.facts_digest, k.shipment_id, k.claimed_shipment_id, k.recorded_at, k.last_seen_at
        FROM statesvc.conflict_key k LIMIT 1""",
    ],
)
async def test_a_counter_is_of_a_conflict_of_the_log(database: Database, statement: str) -> None:
    async with sealed_story(database):
        assert places(verify(database)) == []
        await attack(database, statement)
        assert {fault.table for fault in verify(database).faults} == {"conflict_key"}


async def test_what_left_by_its_archive_is_not_missing(
    archiver: Archiver, database: Database
) -> None:
    harness = archiver.harness
    await three_messages(harness)
    assert places(verify(database)) == []
    await archiver.archived()
    assert await harness.value("SELECT count(*) FROM statesvc.body") == 0
    assert places(verify(database)) == []
    await archiver.days_pass(31 * KEEP_MONTHS)
    await archiver.run_pass()
    await archiver.days_pass(31 * 3)
    await archiver.run_pass()
    assert await harness.value("SELECT count(*) FROM statesvc.message") == 0
    assert places(verify(database)) == []


async def test_a_body_is_missing_until_its_own_day_is_archived(
    archiver: Archiver, database: Database
) -> None:
    await three_messages(archiver.harness)
    await archiver.days_pass(HOT_DAYS + 1)
    await archiver.harness.ingest({"number": "B1", "status": "in_transit"})
    await archiver.run_pass()
    assert places(verify(database)) == []
    await attack(database, "DELETE FROM statesvc.body")
    assert [fault.table for fault in verify(database).faults] == ["body"]


async def test_an_auditor_is_told_that_messages_were_not_compared(
    harness: WorkerHarness, database: Database
) -> None:
    await three_messages(harness)
    report = Verification(
        VerificationRequest(access=LogAccess(dsn=database.auditor_dsn)), lambda *_: None
    ).run()
    assert (places(report), report.unchecked[UNREADABLE]) == ([], 3)
