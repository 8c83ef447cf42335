"""Wait, in each of the two worlds."""

import asyncio
import time


def sleep(seconds: float) -> None:
    """Block this thread."""
    time.sleep(seconds)


async def sleep_async(seconds: float) -> None:
    """Let other tasks run meanwhile."""
    await asyncio.sleep(seconds)
