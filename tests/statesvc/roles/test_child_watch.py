"""A child that does not answer is named, ended and started again; a supervisor that slept concludes
nothing from its sleep.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from structlog.testing import capture_logs

from statesvc.roles.supervisor.child_process import ChildProcess, ChildProgram
from statesvc.roles.supervisor.child_watch import KILL_ASKS, ChildWatch
from statesvc.roles.supervisor.start_child import spawn
from tests.world.waiting import until

pytestmark = pytest.mark.usefixtures("own_processes")
ASK_SECONDS = 0.1
CHILD = """
import asyncio, sys
from pathlib import Path
from statesvc.roles.metrics_address import serving_metrics
from statesvc.settings.http_settings import HttpSettings
from statesvc.telemetry.metrics import Telemetry

async def main():
    async with serving_metrics(HttpSettings(), Telemetry(), role="worker", port=0, control=Path(sys.argv[1])):
        await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[ChildProcess, ChildWatch]]:
    with TemporaryDirectory(prefix="statesvc-") as folder:
        watch = ChildWatch("worker", Path(folder, "worker.control"), ask_seconds=ASK_SECONDS)
        start = spawn([sys.executable, "-c", CHILD, str(watch.control)], dict(os.environ))
        child = ChildProcess(ChildProgram(name="worker", start=start, watch=watch))
        running = asyncio.create_task(child.run())
        try:
            yield child, watch
        finally:
            child.kill()
            await asyncio.wait_for(running, 10)


async def answering(
    watch: ChildWatch, child: ChildProcess, *, other_than: int | None = None
) -> int:
    await until(
        lambda: (
            child.pid not in {None, other_than} and watch.control.exists() and watch.has_answered
        ),
        60,
    )
    assert child.pid is not None
    return child.pid


async def test_a_frozen_child_is_named_and_replaced() -> None:
    with capture_logs() as lines:
        async with watched() as (child, watch):
            first = await answering(watch, child)
            os.kill(first, signal.SIGSTOP)
            second = await answering(watch, child, other_than=first)
            assert second != first
    told = [line["event"] for line in lines if line["event"].startswith("child_")]
    assert told == [
        "child_started",
        "child_silent",
        "child_killed",
        "child_died",
        "child_started",
        "child_answers",
    ]
    assert {line["pid"] for line in lines if line["event"] in {"child_silent", "child_killed"}} == {
        first
    }


async def test_a_supervisor_that_slept_kills_nobody() -> None:
    async with watched() as (child, watch):
        first = await answering(watch, child)
        for _ in range(2):
            # as SIGSTOP of the supervisor, or a machine that was suspended
            time.sleep(ASK_SECONDS * KILL_ASKS * 2)  # noqa: ASYNC251
            await asyncio.sleep(ASK_SECONDS * 2)
        assert child.pid == first
        assert watch.answers


async def test_a_child_that_is_frozen_shortly_goes_on() -> None:
    async with watched() as (child, watch):
        first = await answering(watch, child)
        os.kill(first, signal.SIGSTOP)
        await until(lambda: not watch.answers)
        os.kill(first, signal.SIGCONT)
        await until(lambda: watch.answers)
        assert child.pid == first
