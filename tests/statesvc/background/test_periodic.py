"""A periodic job goes on whatever fails, says so now and then, and ends when it is stopped,
in any order of calls.
"""

import asyncio

import pytest
from structlog.testing import capture_logs

from statesvc.background.periodic import Periodic
from tests.world.waiting import until


def job(fails: int = 0, *, every_seconds: float = 0.001) -> tuple[Periodic, list[int]]:
    runs: list[int] = []

    async def work() -> None:
        runs.append(len(runs))
        if len(runs) <= fails:
            raise ValueError("it is away")

    return Periodic(
        "job", work, every_seconds=every_seconds, retry_seconds=0.001, retry_seconds_max=0.002
    ), runs


async def test_it_works_until_it_is_stopped() -> None:
    periodic, runs = job()
    running = asyncio.create_task(periodic.run())
    await until(lambda: len(runs) >= 3)
    periodic.stop()
    periodic.stop()
    await asyncio.wait_for(running, 1)


async def test_a_stop_before_the_run_ends_it_at_once_and_one_in_a_pause_ends_the_pause() -> None:
    stopped, runs = job()
    stopped.stop()
    await asyncio.wait_for(stopped.run(), 1)
    assert runs == []
    resting, runs = job(every_seconds=3600)
    running = asyncio.create_task(resting.run())
    await until(lambda: runs)
    resting.stop()
    await asyncio.wait_for(running, 1)


async def test_started_and_closed_in_any_order() -> None:
    periodic, runs = job(every_seconds=3600)
    await periodic.close()
    periodic.start()
    periodic.start()
    await until(lambda: runs)
    await periodic.close()
    await periodic.close()
    assert runs == [0]


async def test_failures_are_retried_and_logged_at_a_bounded_rate() -> None:
    periodic, runs = job(fails=20)
    with capture_logs() as logged:
        running = asyncio.create_task(periodic.run())
        await until(lambda: len(runs) >= 21)
        periodic.stop()
        await running
    assert [(line["event"], line["task"], line["attempt"]) for line in logged] == [
        ("background_job_failed", "job", 1)
    ]


async def test_one_that_dies_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    periodic, _ = job()

    async def dying() -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(periodic, "_work", dying)
    with capture_logs() as logged:
        periodic.start()
        await asyncio.sleep(0.05)
    assert [(line["event"], line["task"]) for line in logged] == [("task_died", "job")]


async def test_work_that_waits_is_cancelled_by_close() -> None:
    began = asyncio.Event()

    async def work() -> None:
        began.set()
        await asyncio.Event().wait()

    periodic = Periodic("job", work, every_seconds=1, retry_seconds=1)
    periodic.start()
    await began.wait()
    async with asyncio.timeout(1):
        await periodic.close()
