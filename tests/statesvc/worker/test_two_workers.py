"""Two workers of one machine: a wake-up is for the first, and the second is there
when the first is not.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX
from tests.world.shop import Shop, says

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
LISTENING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'statesvc listener' AND query ~ '^LISTEN'
"""


@contextmanager
def worker_process(shop: Shop, folder: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    program = Path(__file__).with_name("worker_process.py")
    command = [sys.executable, str(program), shop.database.service_dsn, folder, name]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        try:
            yield process
        finally:
            process.kill()
            os.kill(process.pid, signal.SIGCONT)


@pytest.mark.usefixtures("own_processes")
async def test_what_comes_while_the_first_worker_is_stopped_is_picked_up_by_the_second_within_a_second(
    shop: Shop,
) -> None:
    with tempfile.TemporaryDirectory(prefix="wake-") as folder:
        waker = Waker(shop.database.service_dsn, folder=Path(folder))
        await waker.start()

        async def push(n: int) -> None:
            await shop.push(says({"number": f"N{n}", "status": "in_transit"}))
            waker.wake(INBOX)

        with worker_process(shop, folder, "first") as first:
            await shop.until(LISTENING, 1, seconds=30)
            with worker_process(shop, folder, "second"):
                await shop.until(LISTENING, 2, seconds=30)
                await push(0)
                await shop.until("SELECT count(*) FROM statesvc.message", 1)
                os.kill(first.pid, signal.SIGSTOP)
                seconds = []
                for n in range(1, 4):
                    began = time.monotonic()
                    await push(n)
                    await shop.until("SELECT count(*) FROM statesvc.message", 1 + n)
                    seconds.append(time.monotonic() - began)
                assert (
                    await shop.value(
                        "SELECT count(*) FROM statesvc.message WHERE worker = 'second'"
                    )
                    >= 3
                )
                assert min(seconds) < 1
        await waker.stop()
