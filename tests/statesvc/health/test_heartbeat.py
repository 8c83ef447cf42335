"""Signs of life: one row a start, which goes with a clean exit and comes again
where it was forgotten.
"""

import asyncio
from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from statesvc.api.service_status import read_status
from statesvc.database.pool import Pool
from statesvc.health.heartbeat import Heartbeat, Incarnation
from statesvc.health.ingest_report import IngestReport
from statesvc.health.running_processes import count_silent, last_minute, read_processes
from statesvc.health.worker_list import WorkerState, WorkerStatus, list_workers

ME = Incarnation(worker_id="h-worker-1-0a0b0c0d", role="worker", host="h", pid=1, version="0")
HOUR_SECONDS = 3600.0
"""Beats that do not come again within a test."""


async def _until(service: AsyncConnection[Any], *states: WorkerState) -> list[WorkerStatus]:
    async with asyncio.timeout(10):
        while True:
            found = await list_workers(service)
            if [worker.state for worker in found] == list(states):
                return found
            await asyncio.sleep(0.01)


async def test_a_process_shows_from_its_start_to_its_clean_exit(
    pool: Pool, service: AsyncConnection[Any]
) -> None:
    stopping = asyncio.Event()
    heartbeat = Heartbeat(pool, [ME], stopping=stopping, beat_seconds=0.02)
    await heartbeat.stop()
    await heartbeat.start()
    (first,) = await _until(service, WorkerState.ALIVE)
    assert (first.worker_id, first.role, first.leases) == (ME.worker_id, "worker", 0)
    await service.execute("DELETE FROM statesvc.worker")
    (again,) = await _until(service, WorkerState.ALIVE)
    assert again.started_at is not None
    assert first.started_at is not None
    assert abs((again.started_at - first.started_at).total_seconds()) < 0.5, (
        "the start is the start, whenever the row was made"
    )
    stopping.set()
    await _until(service, WorkerState.STOPPING)
    await heartbeat.stop()
    await _until(service)


async def test_who_takes_webhooks_reports_the_last_minute_until_silent(
    database: Any, pool: Pool, service: AsyncConnection[Any]
) -> None:
    heartbeat = Heartbeat(
        pool,
        [replace(ME, role="ingress")],
        stopping=asyncio.Event(),
        ingest_beat_seconds=HOUR_SECONDS,
    )
    report = IngestReport(
        acknowledged=3,
        refused={"storage_low": 1, "bad_signature": 2},
        disk_free_bytes=5,
        disk_free_bytes_min=9,
    )
    heartbeat.report_ingest(lambda: report)
    await heartbeat.start()
    await _until(service, WorkerState.ALIVE)
    (process,) = await read_processes(service)
    assert (process.role, process.ingest, process.is_silent) == ("ingress", report, False)
    assert last_minute([process]) == (3, {"storage_low": 1, "bad_signature": 2})
    await database.clock.advance(3 * HOUR_SECONDS + 1)
    await _until(service, WorkerState.SILENT)
    process = replace(process, is_silent=True)
    assert (last_minute([process]), count_silent([process])) == ((0, {}), {"ingress": 1})
    assert count_silent([replace(process, is_replaced=True)]) == {"ingress": 0}
    await heartbeat.stop()


async def test_who_takes_pushes_beats_faster_than_who_is_idle(
    pool: Pool, service: AsyncConnection[Any]
) -> None:
    heartbeat = Heartbeat(
        pool, [ME], stopping=asyncio.Event(), beat_seconds=0.02, ingest_beat_seconds=0.01
    )
    report = IngestReport(acknowledged=0)
    heartbeat.report_ingest(lambda: report)
    await heartbeat.start()
    await _until_beating(service, every_seconds=0.02)
    report = IngestReport(acknowledged=0, refused={"storage_low": 1})
    await _until_beating(service, every_seconds=0.01)
    report = IngestReport(acknowledged=0)
    await _until_beating(service, every_seconds=0.02)
    await heartbeat.stop()


async def _until_beating(service: AsyncConnection[Any], *, every_seconds: float) -> None:
    async with asyncio.timeout(10):
        while True:
            row = await (
                await service.execute("SELECT beat_seconds::numeric::float8 FROM statesvc.worker")
            ).fetchone()
            if row == (every_seconds,):
                return
            await asyncio.sleep(0.01)


async def test_a_beat_that_fails_is_followed_by_another(
    pool: Pool, service: AsyncConnection[Any], owner: AsyncConnection[Any]
) -> None:
    await owner.execute("ALTER TABLE statesvc.worker RENAME TO worker_away")
    heartbeat = Heartbeat(pool, [ME], stopping=asyncio.Event(), beat_seconds=0.02)
    await heartbeat.start()
    await asyncio.sleep(0.1)
    await owner.execute("ALTER TABLE statesvc.worker_away RENAME TO worker")
    await _until(service, WorkerState.ALIVE)
    await heartbeat.stop()


async def test_add_ons_that_differ_between_processes_are_named(
    pool: Pool, service: AsyncConnection[Any]
) -> None:
    beats = [
        replace(ME, addons=["archive", "console"]),
        replace(ME, worker_id="h-api-2", role="api", pid=2, addons=["archive"]),
    ]
    heartbeat = Heartbeat(pool, beats, stopping=asyncio.Event(), beat_seconds=HOUR_SECONDS)
    await heartbeat.start()
    await _until(service, WorkerState.ALIVE, WorkerState.ALIVE)
    found = [one.text for one in (await read_status(service)).troubles if one.about == "add-ons"]
    (text,) = found
    assert text.endswith(": api on h: archive; worker on h: archive,console")
    # 0.1.0 has no such setting: it beats without the column
    await service.execute("UPDATE statesvc.worker SET addons = NULL WHERE role = 'api'")
    assert [one for one in (await read_status(service)).troubles if one.about == "add-ons"] == []
    await heartbeat.stop()
