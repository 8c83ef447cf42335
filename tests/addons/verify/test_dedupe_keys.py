"""The dedupe keys say what the log says, and `verify` names the row that does not."""

from typing import Any

import pytest

from tests.world.attack import attack, attacker, places, sealed_story, verify
from tests.world.log_builder import LogBuilder, scan

pytestmark = pytest.mark.slow

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
