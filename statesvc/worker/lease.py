"""Keeping a batch's lease while the batch is worked on.

A batch that takes longer than half its lease extends it, within a bound, so that one which hangs is handed on in the end. Losing the
lease stops the work; what was about to commit is fenced off by the token all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog

from statesvc.background.cancellation import cancel_fully

log = structlog.get_logger()

EXTENSIONS_MAX: Final = 8
"""Each is worth half a lease."""

T = TypeVar("T")


class LeaseLostError(Exception):
    """Another worker took the messages over, all of them."""


async def under_lease(
    work: Coroutine[Any, Any, T], *, extend: Callable[[], Awaitable[int]], lease_seconds: float, extensions_max: int = EXTENSIONS_MAX
) -> T:
    """Works, and calls `extend` every half lease until the work is done; it answers how many messages are still held.

    Raises LeaseLostError, and whatever the work raises.
    """
    task = asyncio.create_task(work, name="batch-under-lease")
    try:
        for _ in range(extensions_max):
            done, _ = await asyncio.wait({task}, timeout=lease_seconds / 2)
            if done:
                break
            if not await _still_held(extend):
                raise LeaseLostError
        return await task
    finally:
        if not task.done():
            await cancel_fully(task)


async def _still_held(extend: Callable[[], Awaitable[int]]) -> bool:
    """An extension that cannot be asked for says nothing about the lease."""
    try:
        held = await extend()
    except Exception:
        log.warning("lease_extension_failed", exc_info=True)
        return True
    return held > 0
