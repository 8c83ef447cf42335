"""The archiver as a part of the worker: one leads, it stops between two batches, it goes on after a
failure; and bodies in an object store.
"""

import asyncio
from dataclasses import replace

import pytest
from psycopg import AsyncConnection

from statesvc.addons.archive import archive_jobs as archiving
from statesvc.addons.archive.archive_identity import MARKER
from statesvc.addons.archive.archive_jobs import BodyArchiver
from statesvc.addons.archive.day import BODY_LEDGER, DayBatchLimits
from statesvc.bodies.find_bodies import ArchiveUnavailableError
from statesvc.files.archive_folder import archive_at, writing_folder
from statesvc.settings.service_settings import ArchiveSettings
from tests.world.body_archiver import HOT_DAYS, Archiver
from tests.world.object_store import ObjectStore
from tests.world.worker_harness import push_body


def archiving_job(archiver: Archiver, dsn: str | None = None) -> BodyArchiver:
    return BodyArchiver(
        dsn or archiver.service_dsn,
        folder=archiver.folder,
        keyring=archiver.harness.keyring,
        settings=ArchiveSettings(),
        telemetry=archiver.harness.context.telemetry,
    )


def counted(archiver: Archiver, name: str) -> float:
    value = archiver.harness.context.telemetry.registry.get_sample_value(name)
    return value or 0.0


async def test_a_round_archives_and_counts_and_a_second_archiver_lets_the_first_lead(
    archiver: Archiver,
) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    async with await AsyncConnection.connect(archiver.service_dsn, autocommit=True) as leader:
        assert await BODY_LEDGER.try_lead(leader)
        assert await archiving_job(archiver).once() is None
    outcome = await archiving_job(archiver).once()
    assert outcome is not None
    assert day in outcome.archived
    assert counted(archiver, "statesvc_archive_bodies_total") == 1
    assert counted(archiver, "statesvc_archive_failures_total") == 0


async def test_told_to_stop_it_ends_between_two_batches_and_leaves_the_day_for_the_next(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_BODIES_FIRST_SECONDS", 0.001)
    await archiver.harness.push(
        *(push_body({"number": f"N{n}", "status": "in_transit"}) for n in range(9))
    )
    await archiver.harness.work()
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    part = archiving_job(archiver)
    rest = part._rest  # noqa: SLF001 - the moment between two batches
    rests = 0

    async def stopping() -> None:
        nonlocal rests
        rests += 1
        if rests == 2:
            part.stop()
        await rest()

    # as above
    slowly = replace(part._archiving, pause=stopping, batches=DayBatchLimits(bodies_max=2))  # noqa: SLF001
    monkeypatch.setattr(part, "_archiving", slowly)
    async with asyncio.timeout(10):
        await part.run()
    assert await archiver.partition(day) is not None
    assert [name for name in archiver.files() if day.isoformat() in name] == []
    outcome = await archiving_job(archiver).once()
    assert outcome is not None
    assert day in outcome.archived


async def test_a_database_that_is_away_ends_nothing(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_BODIES_FIRST_SECONDS", 0.001)
    part = archiving_job(archiver, "postgresql://nobody@127.0.0.1:1/none")
    running = asyncio.create_task(part.run())
    async with asyncio.timeout(10):
        # a metric tells nobody
        while not counted(archiver, "statesvc_archive_failures_total"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        part.stop()
        await running


async def test_bodies_go_there_come_from_there_and_end_there(
    archiver: Archiver, object_store: ObjectStore
) -> None:
    harness = archiver.harness
    archiver.archiving = replace(archiver.archiving, folder=archive_at(object_store.place()))
    message_ids = await harness.push(
        *(
            bodies := [
                push_body({"number": f"N{n % 5}", "status": "in_transit", "minute": n})
                for n in range(40)
            ]
        )
    )
    await harness.work()
    day = await archiver.archived()
    assert str((await archiver.ledger())[day].file_name) in object_store.objects
    assert [await archiver.body(message_id) for message_id in message_ids] == bodies
    object_store.cut()
    with pytest.raises(ArchiveUnavailableError, match="did not answer"):
        await archiver.body(message_ids[0])
    # a check that gets no answer says nothing of the file
    await archiver.days_pass(30)
    assert "did not answer" in str((await archiver.run_pass()).refused)
    assert (await archiver.ledger())[day].fault is None
    object_store.heal()
    await archiver.days_pass(26 * 31)
    assert day in (await archiver.run_pass()).expired
    assert [key.startswith(MARKER) for key in object_store.objects] == [True]
    writing_folder(archiver.archiving.folder).rmdir()
