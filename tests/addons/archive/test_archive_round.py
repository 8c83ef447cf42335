"""Days are written, verified and dropped; whatever is killed on the way, nothing is lost and
the next round goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection, errors

from events.crypto.sealing import COMPRESSED, MasterKeys
from statesvc.addons.archive import day as archived_day
from statesvc.addons.archive import day_pass
from statesvc.addons.archive.archive_file import ArchiveReader
from statesvc.addons.archive.archive_pass import ArchiveLedger
from statesvc.addons.archive.day import BODY_FILES, Fate, drop_day
from statesvc.addons.archive.day_pass import CHECKED_DAYS
from statesvc.bodies.find_bodies import ArchiveUnavailableError, BodyLocation
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.sql_errors import Failure, failure
from statesvc.files.body_record import BodyRecord
from statesvc.ingress.group_commit import put
from tests.world.body_archiver import HOT_DAYS, Archiver
from tests.world.worker_harness import CARRIER_ID, push_body, shipment

pytestmark = pytest.mark.slow


class KilledError(Exception):
    """Stands for SIGKILL: nothing after it runs."""


async def test_a_day_is_archived_when_its_hot_days_are_over_and_not_before(
    archiver: Archiver,
) -> None:
    message_id = await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS)
    assert day not in (await archiver.run_pass()).archived
    assert (await archiver.partition(day) is not None, await archiver.place(message_id)) == (
        True,
        BodyLocation.HOT,
    )
    await archiver.days_pass(1)
    assert day in (await archiver.run_pass()).archived
    assert (await archiver.partition(day), await archiver.place(message_id)) == (
        None,
        BodyLocation.ARCHIVED,
    )
    assert await archiver.body(message_id) == push_body({"number": "A1", "status": "in_transit"})
    row = (await archiver.ledger())[day]
    assert (row.bodies, row.compressed, row.unopened, row.erased, row.failures) == (1, 1, 0, 0, 0)
    with ArchiveReader(archiver.folder / str(row.file_name)) as reader:
        (record,) = reader
        assert (record.message_id, record.sealed[:1], record.carrier_id) == (
            message_id,
            COMPRESSED,
            CARRIER_ID,
        )
        assert reader.sha256() == row.sha256
    assert b"in_transit" not in (archiver.folder / str(row.file_name)).read_bytes()


STEPS: list[tuple[str, bool]] = [
    ("write_day", False),
    ("write_day", True),
    ("note_written", False),
    ("note_written", True),
    ("verify_day", False),
    ("verify_day", True),
    ("note_verified", False),
    ("note_verified", True),
    ("drop_day", False),
    ("drop_day", True),
]


@pytest.mark.parametrize(("step", "done"), STEPS)
async def test_killed_before_or_after_any_step_the_next_round_goes_on(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch, step: str, *, done: bool
) -> None:
    harness = archiver.harness
    message_id = await harness.ingest({"number": "A1", "status": "in_transit"})
    (waiting,) = await harness.push(push_body({"number": "A2", "status": "in_transit"}))
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    owner: Any = ArchiveLedger if step == "note_verified" else day_pass
    genuine: Callable[..., Awaitable[Any]] = getattr(owner, step)
    killed = False

    async def dying(*arguments: Any, **more: Any) -> Any:
        nonlocal killed
        # the first day that is due is the one before: nobody pushed then
        if killed or day not in arguments:
            return await genuine(*arguments, **more)
        killed = True
        if done:
            await genuine(*arguments, **more)
        raise KilledError

    monkeypatch.setattr(owner, step, dying)
    with pytest.raises(KilledError):
        await archiver.run_pass()
    assert await archiver.body(message_id) is not None
    outcome = await archiver.run_pass()
    assert outcome.failed == []
    assert await archiver.partition(day) is None
    assert await archiver.body(message_id) == push_body({"number": "A1", "status": "in_transit"})
    assert await archiver.retained() == {waiting}
    ledger = await archiver.ledger()
    assert archiver.files() == sorted(str(row.file_name) for row in ledger.values())
    assert ledger[day].failures == 0


async def test_a_file_that_was_half_written_is_removed(archiver: Archiver) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    archiver.folder.mkdir()
    crashed = (
        archiver.folder
        / f"{BODY_FILES.prefix(archiver.harness.keyring, day.isoformat(), epoch=1)}-{'0' * 16}.ssb.0a1b2c3d"
    )
    crashed.write_bytes(b"half")
    assert await archiver.archived() == day
    assert not crashed.exists()


async def test_a_file_of_an_epoch_that_was_lost_in_a_restore_stays(archiver: Archiver) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    archiver.folder.mkdir()
    lost = (
        archiver.folder
        / f"{BODY_FILES.prefix(archiver.harness.keyring, day.isoformat(), epoch=1)}-{'0' * 16}.ssb"
    )
    lost.write_bytes(b"bodies that the backup does not have")
    async with await AsyncConnection.connect(archiver.owner_dsn, autocommit=True) as owner:
        await owner.execute("INSERT INTO statesvc.log_epoch VALUES (2, 7, statesvc.clock())")
    assert await archiver.archived() == day
    assert lost.exists()
    written = (await archiver.ledger())[day].file_name or ""
    assert f"-{day.isoformat()}-e2-" in written
    assert written in archiver.files()


async def test_the_drop_gives_way_to_a_reader_and_ingest_does_not_queue_behind_it(
    archiver: Archiver,
) -> None:
    harness = archiver.harness
    await harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    async with await AsyncConnection.connect(archiver.service_dsn) as reader:
        await reader.execute("SELECT count(*) FROM statesvc.body")
        archiving = asyncio.create_task(archiver.run_pass(drop_tries=2))
        # as the ingress has it; a try of the drop takes 100 ms at most
        await harness.connection.execute("SET statement_timeout = '1s'")
        async with asyncio.timeout(30):
            while not archiving.done():
                await put(
                    harness.connection,
                    [
                        seal_message(
                            harness.keyring,
                            CARRIER_ID,
                            f"x{asyncio.get_running_loop().time()}".encode(),
                            "{}",
                        )
                    ],
                )
                await asyncio.sleep(0)
        outcome = await archiving
    assert day in outcome.busy
    assert (await archiver.ledger())[day].failures == 0
    assert day in (await archiver.run_pass()).archived


async def test_only_a_verified_archive_of_the_same_bodies_lets_a_partition_go(
    archiver: Archiver,
) -> None:
    harness = archiver.harness
    await harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    drop = "SELECT statesvc.drop_archived_day(%s, %s)"
    row = (
        "INSERT INTO statesvc.body_archive (day, begun_at, file_name, sha256, size_bytes, bodies,"
        " compressed, unopened, erased, written_at) VALUES (%s, statesvc.clock(), 'f', %s, 1, 2, 2,"
        " 0, 0, statesvc.clock())"
    )
    for statement in (
        None,
        row,
        (
            "UPDATE statesvc.body_archive SET verified_at = statesvc.clock() WHERE day = %s AND"
            " sha256 = %s"
        ),
    ):
        if statement is not None:
            await harness.connection.execute(statement.encode(), (day, bytes(32)))
        with pytest.raises(errors.DatabaseError) as refused:
            await harness.connection.execute(drop, (day, bytes(32)))
        assert failure(refused.value) is Failure.NOT_ARCHIVED
    assert await archiver.partition(day) is not None
    with pytest.raises(errors.InsufficientPrivilege):
        await harness.connection.execute(f"DROP TABLE statesvc.body_{day:%Y%m%d}".encode())


async def test_a_body_that_comes_after_the_writing_has_the_day_written_anew(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = archiver.harness
    first = await harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    late = await harness.ingest({"number": "A2", "status": "in_transit"})
    await harness.as_owner(
        f"CREATE TABLE statesvc.late AS SELECT * FROM statesvc.body WHERE message_id = '{late}'"
    )
    await harness.as_owner(f"DELETE FROM statesvc.body WHERE message_id = '{late}'")
    await archiver.days_pass(HOT_DAYS + 1)

    async def after_another_came(*arguments: Any) -> int:
        if day in arguments:
            await harness.as_owner(
                "INSERT INTO statesvc.body SELECT * FROM statesvc.late ON CONFLICT DO NOTHING"
            )
        return await drop_day(*arguments)

    monkeypatch.setattr(day_pass, "drop_day", after_another_came)
    assert (await archiver.run_pass()).failed == [day]
    assert (await archiver.ledger())[
        day
    ].failure == f"the bodies of {day} stay: 2 are in the partition, 1 were archived"
    assert day in (await archiver.run_pass()).archived
    for message_id in (first, late):
        assert await archiver.body(message_id) is not None


async def test_what_waits_is_kept_claimed_later_and_then_forgotten(archiver: Archiver) -> None:
    harness = archiver.harness
    waiting, unreadable, settled = await harness.push(
        push_body({"number": "A1", "status": "in_transit"}), b"unreadable", push_body()
    )
    for message in await harness.claim():
        if message.message_id != waiting:
            await harness.process([message])
    await harness.as_owner(
        "UPDATE statesvc.inbox SET token = NULL, available_at = received_at, attempts = 0"
    )
    await archiver.archived()
    assert await archiver.retained() == {waiting, unreadable}
    assert await archiver.place(settled) is BodyLocation.ARCHIVED
    assert await archiver.place(waiting) is BodyLocation.HOT
    await harness.as_owner(
        "UPDATE statesvc.dead_letter SET resolved_at = statesvc.clock(), resolution = 'discarded'"
        f" WHERE message_id = '{unreadable}'"
    )
    assert (await archiver.run_pass()).pruned == 1
    assert await archiver.retained() == {waiting}
    await harness.work()
    assert (
        await harness.value(
            "SELECT status FROM statesvc.shipment WHERE shipment_id = %s", shipment("A1")
        )
        == "in_transit"
    )
    assert (await archiver.run_pass()).pruned == 1
    assert await archiver.retained() == set()
    assert await archiver.body(waiting) == push_body({"number": "A1", "status": "in_transit"}), (
        "under the key that its verdict wrapped anew"
    )


async def test_an_erased_shipments_body_stays_unreadable_and_one_erased_before_is_left_out(
    archiver: Archiver,
) -> None:
    harness = archiver.harness
    before = await harness.ingest({"number": "A1", "status": "in_transit"})
    after = await harness.ingest({"number": "A2", "status": "in_transit"})
    both = await harness.ingest(
        {"number": "A2", "status": "delivered"}, {"number": "A3", "status": "delivered"}
    )
    await harness.as_owner(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock() WHERE"
        f" shipment_id = '{shipment('A1')}'"
    )
    day = await archiver.archived()
    row = (await archiver.ledger())[day]
    assert (row.bodies, row.compressed, row.erased) == (3, 2, 1)
    assert await archiver.body(after) is not None
    await harness.as_owner(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock() WHERE"
        f" shipment_id = '{shipment('A2')}'"
    )
    for message_id in (before, after, both):
        assert await archiver.body(message_id) is None
        assert await archiver.place(message_id) is BodyLocation.ERASED


async def test_a_body_that_does_not_open_is_archived_as_it_is(archiver: Archiver) -> None:
    harness = archiver.harness
    broken = await harness.ingest({"number": "A1", "status": "in_transit"})
    good = await harness.ingest({"number": "A2", "status": "in_transit"})
    await harness.as_owner(
        "UPDATE statesvc.body SET sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1) WHERE"
        f" message_id = '{broken}'"
    )
    sealed = await harness.value("SELECT sealed FROM statesvc.body WHERE message_id = %s", broken)
    day = await archiver.archived()
    row = (await archiver.ledger())[day]
    assert (row.compressed, row.unopened) == (1, 1)
    with ArchiveReader(archiver.folder / str(row.file_name)) as reader:
        record = reader.find(broken)
        assert record is not None
        assert record.sealed == sealed
    assert await archiver.body(good) is not None


async def test_a_shipments_key_that_does_not_open_stops_its_day_and_nothing_is_left_out(
    archiver: Archiver,
) -> None:
    harness = archiver.harness
    await harness.ingest({"number": "A1", "status": "in_transit"})
    other = replace(
        archiver.archiving, keyring=replace(harness.keyring, master=MasterKeys([bytes(32)]))
    )
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    assert day in (await replace(archiver, archiving=other).run_pass()).failed
    assert "a shipment's key does not open" in str((await archiver.ledger())[day].failure)
    assert archiver.files() == [name for name in archiver.files() if day.isoformat() not in name]
    assert day in (await archiver.run_pass()).archived


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([{"message_id": UUID(int=2**128 - 1)}], "is missing"),
        ([{"sealed": b"other"}], "not a sealed value"),
        ([{"carrier_id": "other"}], "is described differently"),
        ([{}, {"message_id": UUID(int=2**128 - 1)}], "which the partition does not have"),
    ],
)
async def test_a_wrong_file_is_not_verified_and_the_day_is_written_anew(
    archiver: Archiver,
    monkeypatch: pytest.MonkeyPatch,
    changes: list[dict[str, Any]],
    why: str,
) -> None:
    message_id = await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    sealed_again = archived_day._sealed_again  # noqa: SLF001 - what writes is not trusted

    def wrong(*arguments: Any) -> list[tuple[Fate, BodyRecord]]:
        return [
            (fate, replace(record, **change))
            for fate, record in sealed_again(*arguments)
            if record is not None
            for change in changes
        ]

    with monkeypatch.context() as altered:
        altered.setattr(archived_day, "_sealed_again", wrong)
        assert (await archiver.run_pass()).failed == [day]
    row = (await archiver.ledger())[day]
    assert (row.failures, row.written_at, why in str(row.failure)) == (1, None, True)
    assert await archiver.partition(day) is not None
    assert day in (await archiver.run_pass()).archived
    assert await archiver.body(message_id) is not None


async def test_a_file_that_was_altered_is_found_and_its_bodies_are_not_guessed(
    archiver: Archiver,
) -> None:
    message_id = await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.archived()
    path = archiver.folder / str((await archiver.ledger())[day].file_name)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ArchiveUnavailableError):
        await archiver.body(message_id)
    await archiver.days_pass(CHECKED_DAYS + 1)
    found: set[Any] = set()
    for _ in range(10):
        found |= set((await archiver.run_pass()).faults)
    assert day in found
    assert (await archiver.ledger())[day].fault is not None
