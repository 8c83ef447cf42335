"""A job that a process does now and then, for as long as it lives.

```
start --> [ work > pause ] --stop--> the work in progress ends, then `run`
             ^      +-- fails: logged, retried after a pause that doubles
```
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from statesvc.background.waiting import cancel_fully, set_within

# Failures of a job are logged this often at most; `attempt` counts those in a row.
_LOGGED_EVERY_SECONDS: Final = 60.0

log = structlog.get_logger()


class Periodic:
    """`work` may answer for how many seconds to pause instead of `every_seconds`.

    `jitter`: so that processes do not work in step.

    `run` and `stop`, or `start` and `close`: each idempotent, and safe in any order.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[float | None]],
        *,
        every_seconds: float,
        first_seconds: float = 0.0,
        retry_seconds: float,
        retry_seconds_max: float | None = None,
        jitter: float = 0.0,
    ) -> None:
        self.name = name
        self.stopping = asyncio.Event()
        self._work = work
        self._every_seconds = every_seconds
        self._first_seconds = first_seconds
        self._retry_seconds = retry_seconds
        self._retry_seconds_max = retry_seconds if retry_seconds_max is None else retry_seconds_max
        self._jitter = jitter
        self._failures = 0
        self._logged_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run until `stop`; errors do not end it."""
        pause = self._first_seconds
        while not await self._paused(pause):
            try:
                answer = await self._work()
            # a job that ends unnoticed is worse than one that fails again
            except Exception as error:  # noqa: BLE001
                pause = self._retry(error)
            else:
                # only a success ends the row: the pause doubles until then
                self._failures = 0
                pause = self._every_seconds if answer is None else answer

    def stop(self) -> None:
        """End `run` after the work in progress."""
        self.stopping.set()

    def start(self) -> None:
        """Run as a task of its own; log if it ends before `stop`."""
        if self._task is None:
            self._task = asyncio.create_task(self.run(), name=self.name)
            self._task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel the task that `start` began, with its work in progress, and wait for its end."""
        if self._task is not None:
            self.stop()
            await cancel_fully(self._task)

    async def _paused(self, seconds: float) -> bool:
        """Pause; return whether it was stopped."""
        return await set_within(
            self.stopping,
            # guards nothing
            seconds * random.uniform(1 - self._jitter, 1 + self._jitter),  # noqa: S311
        )

    def _retry(self, error: Exception) -> float:
        self._failures += 1
        delay: float = min(
            self._retry_seconds * 2 ** min(self._failures - 1, 16), self._retry_seconds_max
        )
        now = time.monotonic()
        # a database that is away fails every job of every process
        if now >= self._logged_at + _LOGGED_EVERY_SECONDS:
            self._logged_at = now
            log.warning(
                "background_job_failed",
                task=self.name,
                attempt=self._failures,
                delay_seconds=delay,
                exc_info=error,
            )
        return delay

    def _ended(self, task: asyncio.Task[None]) -> None:
        # nobody awaits this task, so its exception would be seen at its collection, if ever
        if not self.stopping.is_set():
            log.error(
                "task_died", task=self.name, exc_info=None if task.cancelled() else task.exception()
            )
