"""The dedupe keys of shipments that are archived as a whole are packed, and no event takes
effect twice for that.
"""

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from events.identity.ids import identify
from events.vocabulary import Status, Verdict
from statesvc.addons.archive.month import is_packing_due, pack_keys
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append
from tests.addons.verify.test_event_ids import said
from tests.world.attack import attack, places
from tests.world.log_archiver import Archiver, shipment
from tests.world.log_builder import scan

KEYS = "SELECT count(*) FROM statesvc.event_key WHERE shipment_id = '{}'"
PACKED = (
    "SELECT octet_length(packed_keys) / 8, octet_length(packed_values) / 8 FROM statesvc.stream"
    " WHERE shipment_id = '{}'"
)
VERSION = "SELECT version FROM statesvc.stream WHERE shipment_id = '{}'"


async def _value(archiver: Archiver, query: str, number: str) -> Any:
    return (await archiver.log.rows(query.format(shipment(number))))[0][0]


async def verdicts(archiver: Archiver, *readings: Any) -> list[Verdict]:
    """Return what the log would say; nothing of it stays."""
    keyring = archiver.log.keyring
    digest = keyring.carrier_digest("ups")
    read = said("ups", [identify(each, carrier_id="ups", digest=digest) for each in readings])
    async with archiver.connection.transaction(force_rollback=True):
        batch = AppendBatch(archiver.connection, keyring, [read], "worker-1")
        return (await append(batch)).verdicts


@pytest.mark.usefixtures("two_months")
async def test_no_event_takes_effect_twice_after_its_key_was_packed(archiver: Archiver) -> None:
    scans = [
        scan("1Z0001", 0, Status.INFO_RECEIVED),
        scan("1Z0003", 0, Status.INFO_RECEIVED),
        scan("1Z0007", 0, Status.INFO_RECEIVED),
        scan("1Z0002", 50, None, code="B2", native_id="scan-1Z0002"),
        scan("1Z0001", 900, None),
    ]
    before = await verdicts(archiver, *scans)
    events = await _value(archiver, KEYS, "1Z0001")
    await archiver.archived()
    assert await _value(archiver, KEYS, "1Z0001") == 0
    assert await _value(archiver, PACKED, "1Z0001") == events
    # a shipment that goes on keeps its keys, and so does an id that any shipment may be said to
    # have
    assert await _value(archiver, PACKED, "1Z0003") is None
    assert await _value(archiver, KEYS, "1Z0002") == 1
    assert not await is_packing_due(archiver.connection)
    # oldest first
    assert (
        await verdicts(archiver, *scans)
        == before
        == [*map(Verdict, ("duplicate", "duplicate", "duplicate", "conflict", "appended"))]
    )
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_late_scan_of_a_packed_shipment_is_appended_once_and_packed_later(
    archiver: Archiver,
) -> None:
    await archiver.archived()
    version, packed = (
        await _value(archiver, VERSION, "1Z0001"),
        await _value(archiver, PACKED, "1Z0001"),
    )
    for _ in range(2):
        await archiver.log.append(
            scan("1Z0001", 0, Status.INFO_RECEIVED), scan("1Z0001", 900, None)
        )
        assert await _value(archiver, VERSION, "1Z0001") == version + 1
    await archiver.log.seal()
    assert places(archiver.verify()) == []
    await archiver.pass_days(100)
    await archiver.run_pass()
    assert await _value(archiver, KEYS, "1Z0001") == 0
    assert await _value(archiver, PACKED, "1Z0001") == packed + 1
    await archiver.log.append(scan("1Z0001", 900, None))
    assert await _value(archiver, VERSION, "1Z0001") == version + 1
    await archiver.log.seal()
    assert places(archiver.verify()) == []


async def test_what_a_scan_carried_is_not_said_again(archiver: Archiver) -> None:
    first = replace(scan("1Z0009", 0, Status.INFO_RECEIVED), estimated_delivery="2026-11-25")
    other = scan("1Z0009", 5, Status.IN_TRANSIT)
    await archiver.log.append(first, other)
    await archiver.log.seal()
    await archiver.pass_days(70)
    await archiver.archived()
    assert await archiver.log.rows(PACKED.format(shipment("1Z0009"))) == [(2, 1)]
    for reading, version in (
        (first, 2),
        (replace(first, estimated_delivery="2026-11-26"), 3),
        (replace(first, estimated_delivery="2026-11-26"), 3),
        (replace(other, estimated_delivery="2026-11-25"), 4),
    ):
        await archiver.log.append(reading)
        assert await _value(archiver, VERSION, "1Z0009") == version
    await archiver.log.seal()
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_no_key_goes_that_its_set_does_not_hold(archiver: Archiver) -> None:
    await archiver.archived()
    async with await AsyncConnection.connect(archiver.database.owner_dsn, autocommit=True) as owner:
        for packing in ("", "on"):
            await owner.execute("SELECT set_config('statesvc.packing_keys', %s, false)", (packing,))
            with pytest.raises(psycopg.DatabaseError, match="is refused") as refused:
                await owner.execute("DELETE FROM statesvc.event_key")
            assert refused.value.sqlstate == "SS001"


@pytest.mark.usefixtures("two_months")
async def test_a_shipment_that_is_locked_is_packed_by_a_later_pass(archiver: Archiver) -> None:
    await archiver.run_pass()
    async with (
        await AsyncConnection.connect(archiver.database.owner_dsn, autocommit=True) as owner,
        owner.transaction(),
    ):
        await owner.execute("UPDATE statesvc.log_archive SET packed_at = NULL")
    await archiver.log.append(scan("1Z0001", 900, None))
    await archiver.log.seal()
    await archiver.pass_days(100)
    async with (
        await AsyncConnection.connect(archiver.database.service_dsn, autocommit=True) as holder,
        holder.transaction(),
    ):
        await holder.execute(
            "SELECT FROM statesvc.stream WHERE shipment_id = %s FOR NO KEY UPDATE",
            (shipment("1Z0001"),),
        )
        await archiver.run_pass()
        assert await _value(archiver, KEYS, "1Z0001") == 1
    assert await pack_keys(archiver.connection, keys_at_once=2) == 1
    assert await _value(archiver, KEYS, "1Z0001") == 0


@pytest.mark.usefixtures("two_months")
async def test_verify_misses_a_digest_that_was_taken_out_and_finds_one_that_was_put_in(
    archiver: Archiver,
) -> None:
    await archiver.archived()
    own = f"WHERE shipment_id = '{shipment('1Z0001')}'"
    await attack(
        archiver.database, f"UPDATE statesvc.stream SET packed_keys = substr(packed_keys, 9) {own}"
    )
    assert next(fault.why for fault in archiver.verify().faults).startswith("the row is missing")
    await attack(
        archiver.database,
        f"UPDATE statesvc.stream SET packed_keys = packed_keys || '\\x0011223344556677' {own}",
    )
    assert ("stream", "packed_keys") in {
        (fault.table, fault.field) for fault in archiver.verify().faults
    }
