"""Ending a task for certain.

On Python 3.11 `asyncio.wait_for`, through which the pool of psycopg waits, loses a cancellation that coincides with its result: the
task then goes on as if nothing had happened. One `cancel()` is therefore not enough (`asyncio.timeout` has no such gap).
"""

import asyncio
from typing import Any, Final

_AGAIN_SECONDS: Final = 0.1


async def cancel_fully(task: asyncio.Task[Any]) -> None:
    """Cancels until the task has ended. Its outcome is left to the task that awaits it."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_AGAIN_SECONDS)
