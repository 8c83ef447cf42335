"""Waiting for something, but not for ever."""

import asyncio
import contextlib


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Returns once the event is set or so much time has passed (None: however long that takes), and whether it is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
