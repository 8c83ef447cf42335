"""A log that nobody touched is sound, whatever its state, and however it is verified."""

from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.addons.verify import log_state, tree
from statesvc.addons.verify import verify_log as run
from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import AbandonedError, LogAccess, connect
from statesvc.log.signing_keys import retire, rotate
from tests.world.attack import attack, places, sealed_story, verify
from tests.world.log_builder import MASTER, LogBuilder, scan

pytestmark = pytest.mark.slow


async def test_an_untouched_log_is_sound(database: Any, sealed_log: LogBuilder) -> None:
    report = verify(database)
    assert places(report) == []
    leaves = await sealed_log.leaves()
    assert (report.size, report.entries, report.heads) == (len(leaves), len(leaves), 4)
    assert report.events == len(await sealed_log.rows("SELECT FROM statesvc.event"))
    assert report.consistent


async def test_a_run_that_nobody_waits_for_ends(database: Any) -> None:
    async with sealed_story(database):
        verification = Verification(
            VerificationRequest(access=LogAccess(dsn=database.service_dsn)), lambda *_: None
        )
        verification.abandon()
        with pytest.raises(AbandonedError):
            verification.run()


async def test_an_empty_log_is_sound(database: Any) -> None:
    assert places(verify(database)) == []


async def test_what_waits_to_be_sealed_is_checked_too(
    database: Any, sealed_log: LogBuilder
) -> None:
    await sealed_log.parcel("1Z0009")
    report = verify(database)
    assert places(report) == []
    assert (report.waiting, report.entries - report.size) == (5, 10)
    await attack(
        database,
        "UPDATE statesvc.event SET kind = 'info' WHERE carrier_code = 'T/X1' AND version = 5",
    )
    assert {fault.field for fault in verify(database).faults} == {"kind"}


@pytest.mark.usefixtures("own_processes")
async def test_several_processes_find_the_same(database: Any, sealed_log: LogBuilder) -> None:
    for _ in range(300):
        await sealed_log.act()
    await sealed_log.seal()
    alone = verify(database)
    together = verify(database, processes=2)
    assert places(together) == []
    assert (together.entries, together.batches, together.heads) == (
        alone.entries,
        alone.batches,
        alone.heads,
    )
    await attack(database, "UPDATE statesvc.action SET actor = 'x' WHERE batch_id % 50 = 0")
    found = places(verify(database, processes=2))
    assert found == places(verify(database))
    assert len(found) > 4


async def test_many_stretches_make_one_log(
    database: Any, sealed_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "RANGE_LEAVES", 256)
    monkeypatch.setattr(run, "RANGE_LEAVES", 256)
    monkeypatch.setattr(log_state.read_snapshot, "__kwdefaults__", {"range_entries": 7})
    for _ in range(4):
        for _ in range(200):
            await sealed_log.act()
        await sealed_log.seal()
    report = verify(database)
    assert places(report) == []
    assert report.size > 850


async def test_a_log_that_grows_meanwhile_is_sound(
    database: Any, sealed_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        await AsyncConnection.connect(database.service_dsn) as held,
    ):
        await held.execute("SET timezone = 'UTC'")
        await type(sealed_log)(held, sealed_log.keyring).append(
            scan("1ZHELD", 1, None), commit=False
        )
        with connect(database.service_dsn) as connection:
            seen = log_state.read_snapshot(connection)
        # committed late, grown, sealed: all after the first look
        await held.commit()
        await sealed_log.append(scan("1Z0001", 70, None))
        await sealed_log.seal()
        await sealed_log.act()
        monkeypatch.setattr(run, "read_snapshot", lambda _connection: seen)
        assert places(verify(database)) == []


async def test_a_rotated_key_is_believed_by_its_announcement(
    database: Any, sealed_log: LogBuilder
) -> None:
    async with sealed_log.connection.transaction():
        await rotate(sealed_log.connection, MASTER, actor="cli:ops", why="a test")
    await sealed_log.seal()
    old = (
        await sealed_log.rows("SELECT key_id FROM statesvc.signing_key ORDER BY created_at LIMIT 1")
    )[0][0]
    async with sealed_log.connection.transaction():
        await retire(sealed_log.connection, old, actor="cli:ops", why="a test")
    await sealed_log.act()
    head = await sealed_log.seal()
    assert places(verify(database)) == places(verify(database, note=head.note)) == []


async def test_without_master_keys_all_but_the_sealed_parts_is_checked(database: Any) -> None:
    async with sealed_story(database):
        await attack(database, "UPDATE statesvc.event SET sealed_part = '\\x00' WHERE version = 1")
        assert places(verify(database, master_keys=None)) == []
        assert {fault.field for fault in verify(database).faults} == {"sealed_part"}


async def test_what_was_erased_is_passed_over_where_an_entry_says_so(
    database: Any, sealed_log: LogBuilder
) -> None:
    await attack(
        database,
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = now() WHERE number = '1Z0001'",
    )
    (fault,) = verify(database).faults
    assert (fault.table, fault.field) == ("stream", "sealed_key")
    assert "no `erase` entry of the log says so" in fault.why
    ((shipment_id,),) = await sealed_log.rows(
        "SELECT shipment_id FROM statesvc.stream WHERE number = '1Z0001'"
    )
    await sealed_log.act(f"shipment {shipment_id}", verb="erase")
    await sealed_log.seal()
    assert places(verify(database)) == []


async def test_an_erased_shipment_whose_key_is_back_is_found(
    database: Any, sealed_log: LogBuilder
) -> None:
    ((shipment_id,),) = await sealed_log.rows(
        "SELECT shipment_id FROM statesvc.stream WHERE number = '1Z0002'"
    )
    await sealed_log.act(f"shipment {shipment_id}", verb="erase")
    (fault,) = verify(database).faults
    assert (fault.row, fault.field) == (f"shipment_id={shipment_id}", "sealed_key")
    assert "is back" in fault.why


async def test_a_version_whose_batch_was_left_behind_is_named_and_is_no_change(
    database: Any, event_log: LogBuilder
) -> None:
    for place in range(3):
        await event_log.append(scan("1ZTURNED", place, None))
    await attack(
        database,
        "CREATE TABLE statesvc.late AS SELECT * FROM statesvc.unsealed WHERE batch_id ="
        " (SELECT min(batch_id) + 1 FROM statesvc.unsealed)",
        "DELETE FROM statesvc.unsealed u USING statesvc.late l WHERE u.batch_id = l.batch_id",
    )
    await event_log.seal()
    await attack(database, "INSERT INTO statesvc.unsealed SELECT * FROM statesvc.late")
    await event_log.seal()
    report = verify(database)
    (fault,) = report.remarks
    assert report.consistent
    assert (fault.table, fault.field, fault.why) == (
        "event",
        "version",
        "is sealed at index 2, after version 3 at 1",
    )


async def test_a_later_version_under_a_lower_batch_id_is_named(
    database: Any, event_log: LogBuilder
) -> None:
    # as somebody writes who appends past the head's lock: the batch ids then descend with the
    # versions, and are sealed in their order
    await event_log.append(scan("1ZTURNED", 0, None))
    for next_id, place in ((3, 1), (2, 2)):
        await attack(database, f"SELECT setval('statesvc.batch_id_seq', {next_id}, false)")
        await event_log.append(scan("1ZTURNED", place, None))
    await attack(database, "SELECT setval('statesvc.batch_id_seq', 3, true)")
    await event_log.seal()
    (fault,) = verify(database).faults
    assert (fault.table, fault.field, fault.why) == (
        "event",
        "version",
        "is sealed at index 2, after version 3 at 1",
    )
