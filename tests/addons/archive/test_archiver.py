"""The archiver as a part of the worker: one leads, it stops between two batches, it
goes on after a failure.
"""

import asyncio
from dataclasses import replace

import pytest
from psycopg import AsyncConnection

from statesvc.addons.archive import archive_jobs as archiving
from statesvc.addons.archive.archive_jobs import BodyArchiver
from statesvc.addons.archive.day import BODY_LEDGER, DayBatchLimits
from statesvc.settings.service_settings import ArchiveSettings
from tests.world.body_archivist import HOT_DAYS, Archivist
from tests.world.shop import says


def archiver(archivist: Archivist, dsn: str | None = None) -> BodyArchiver:
    return BodyArchiver(
        dsn or archivist.service_dsn,
        folder=archivist.folder,
        keyring=archivist.shop.keyring,
        settings=ArchiveSettings(),
        telemetry=archivist.shop.context.telemetry,
    )


def counted(archivist: Archivist, name: str) -> float:
    value = archivist.shop.context.telemetry.registry.get_sample_value(name)
    return value or 0.0


async def test_a_round_archives_and_counts_and_a_second_archiver_lets_the_first_lead(
    archivist: Archivist,
) -> None:
    await archivist.shop.say({"number": "A1", "status": "in_transit"})
    day = await archivist.today()
    await archivist.days_pass(HOT_DAYS + 1)
    async with await AsyncConnection.connect(archivist.service_dsn, autocommit=True) as leader:
        assert await BODY_LEDGER.try_lead(leader)
        assert await archiver(archivist).once() is None
    outcome = await archiver(archivist).once()
    assert outcome is not None
    assert day in outcome.archived
    assert counted(archivist, "statesvc_archive_bodies_total") == 1
    assert counted(archivist, "statesvc_archive_failures_total") == 0


async def test_told_to_stop_it_ends_between_two_batches_and_leaves_the_day_for_the_next(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_BODIES_FIRST_SECONDS", 0.001)
    await archivist.shop.push(
        *(says({"number": f"N{n}", "status": "in_transit"}) for n in range(9))
    )
    await archivist.shop.work()
    day = await archivist.today()
    await archivist.days_pass(HOT_DAYS + 1)
    part = archiver(archivist)
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
    assert await archivist.partition(day) is not None
    assert [name for name in archivist.files() if day.isoformat() in name] == []
    outcome = await archiver(archivist).once()
    assert outcome is not None
    assert day in outcome.archived


async def test_a_database_that_is_away_ends_nothing(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_BODIES_FIRST_SECONDS", 0.001)
    part = archiver(archivist, "postgresql://nobody@127.0.0.1:1/none")
    running = asyncio.create_task(part.run())
    async with asyncio.timeout(10):
        # a metric tells nobody
        while not counted(archivist, "statesvc_archive_failures_total"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        part.stop()
        await running


async def test_a_folder_that_is_not_the_archive_is_counted_and_looked_at_again_soon(
    archivist: Archivist,
) -> None:
    await archivist.archived()
    archivist.folder.rename(archivist.folder.with_name("away"))
    part = archiver(archivist)
    assert await part._pass() == archiving._AGAIN_SECONDS  # noqa: SLF001 - when the next pass comes
    assert counted(archivist, "statesvc_archive_failures_total") == 1
