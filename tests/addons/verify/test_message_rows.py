"""Rows outside the log that its entries bind: verdicts and bodies of messages, numbers of
shipments, counters of conflicts.
"""

import pytest

from statesvc.addons.verify.message_rows import UNREADABLE
from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from tests.world.attack import attack, places, sealed_story, verify
from tests.world.body_archiver import HOT_DAYS, KEEP_MONTHS, Archiver
from tests.world.database import Database
from tests.world.worker_harness import WorkerHarness

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
