"""Signs of life: one row a start, which goes with a clean exit and comes again
where it was forgotten.
"""

import asyncio
from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from statesvc.api.service_status import read_status
from statesvc.cli.doctor.checks import check_database
from statesvc.database.pool import Pool
from statesvc.health.finding import Finding, Urgency, worst_first
from statesvc.health.heartbeat import Heartbeat, Incarnation
from statesvc.health.ingest_report import MINUTE_SECONDS, IngestReport, LastMinute
from statesvc.health.running_processes import count_silent, last_minute, read_processes
from statesvc.health.storable import read_lock_fault, storage_findings
from statesvc.health.worker_list import WorkerState, WorkerStatus, list_workers
from tests.statesvc.conftest import HandClock
from tests.world.waiting import until

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


DEAD = Finding(urgency=Urgency.NOW, about="processes", text="no worker", page="RoleDown")
WAITS = [
    Finding(urgency=Urgency.NOW, about=name, text="waits", page="Lag", cause="RoleDown")
    for name in ("fedex", "ups")
]
NOTE = Finding(urgency=Urgency.NOTE, about="gls", text="on hold", page="CarrierHeld")
OTHER = Finding(urgency=Urgency.NOW, about="pushes", text="refused", page="AckAvailability")


def test_the_worst_stands_first_and_what_follows_from_it_once_right_behind_it() -> None:
    assert worst_first([NOTE, *WAITS, DEAD, OTHER]) == [DEAD, *WAITS, OTHER, NOTE]
    of_one_cause = Finding(
        urgency=Urgency.NOW, about="processes", text="no sealer", page="RoleDown"
    )
    assert worst_first([*WAITS, DEAD, of_one_cause]) == [DEAD, *WAITS, of_one_cause]
    alone = [replace(finding, cause=None) for finding in WAITS]
    assert worst_first([NOTE, *WAITS]) == [*alone, NOTE]


def test_pushes_are_counted_for_a_minute() -> None:
    clock = HandClock()
    minute = LastMinute(now=clock)
    assert minute.counts() == (0, {})
    for second in range(120):
        clock.seconds = second
        minute.acknowledged()
        if second < 30:
            minute.refused("storage_low")
    acknowledged, refused = minute.counts()
    assert MINUTE_SECONDS - 2 <= acknowledged <= MINUTE_SECONDS + 2
    assert refused == {}
    clock.seconds += MINUTE_SECONDS
    assert minute.counts() == (0, {})


async def test_who_locks_the_inbox_is_named_by_readiness_and_doctor(
    database: Any, service: AsyncConnection[Any]
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn) as other:
        await other.execute("LOCK TABLE statesvc.inbox IN ACCESS EXCLUSIVE MODE")
        found = await until(lambda: storage_findings(service, migrations=()))
        doctor = await read_lock_fault(service)
        status = await read_status(service)
        named = (
            f"statesvc.inbox is locked by pid {other.info.backend_pid} (statesvc_owner, LOCK TABLE,"
            " for "
        )
        assert named in found[0].text
        assert named in (doctor or "")
        assert named in status.troubles[0].text
        unread = {each.about: each.text for each in status.troubles if "not read: " in each.text}
        assert {"queue", "readers"} == unread.keys()
        assert "lock timeout" in unread["queue"]
        assert status.sample.size_bytes
        assert status.sample.promises
    assert await storage_findings(service, migrations=()) == []
    assert not [each for each in (await read_status(service)).troubles if "not read" in each.text]


async def test_an_invalid_index_is_named(
    database: Any, service: AsyncConnection[Any], owner: AsyncConnection[Any]
) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as superuser:
        await superuser.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid ="
            " 'statesvc.inbox_token'::regclass"
        )
    found = [finding.text async for finding in check_database(service)]
    assert [
        each.text for each in (await read_status(service)).troubles if "is invalid" in each.text
    ]
    (named,) = [
        text for text in found if "statesvc.inbox_token of statesvc.inbox is invalid" in text
    ]
    await owner.execute(named.rsplit(", else ", 1)[1].encode())
    found = [finding.text async for finding in check_database(service)]
    assert not [text for text in found if "is invalid" in text]
