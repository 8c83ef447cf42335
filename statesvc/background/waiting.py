"""Waiting for something, but not for ever; and ending a task for certain."""

import asyncio
import contextlib
from typing import Any, Final

_AGAIN_SECONDS: Final = 0.1


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait until the event is set or so much time has passed (None: without limit);
    return whether it is set.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    # not whether the wait succeeded: an event set at the very end of the time counts
    return event.is_set()


async def cancel_fully(task: asyncio.Task[Any]) -> None:
    """Cancel until the task has ended. Its outcome is left to the task that awaits it.

    On Python 3.11 `asyncio.wait_for`, through which the pool of psycopg waits, loses a
    cancellation that coincides with its result: the task then goes on uncancelled. A single
    `cancel()` is therefore not enough (`asyncio.timeout` has no such gap).
    """
    while not task.done():
        task.cancel()
        # `wait` never raises the task's error, and leaves it to whoever awaits the task
        await asyncio.wait([task], timeout=_AGAIN_SECONDS)
