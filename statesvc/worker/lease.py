"""Extending a batch's lease while it is processed, and how much time goes to taking over leases that ended.

A batch that takes longer than half its lease extends it, a bounded number of times: one that hangs is taken over in the end. Losing the
lease stops the work; a commit that is too late is fenced off by the token.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog

from statesvc.background.waiting import cancel_fully

log = structlog.get_logger()

EXTENSIONS_MAX: Final = 8
"""Each is worth half a lease."""

RESCUE_SECONDS: Final = 0.5
"""Seconds of rescues, before the lanes get as much."""

T = TypeVar("T")


class LeaseLostError(Exception):
    """Another worker took the messages over, all of them."""


async def under_lease(
    work: Coroutine[Any, Any, T],
    *,
    extend: Callable[[], Awaitable[int]],
    lease_seconds: float,
    extensions_max: int = EXTENSIONS_MAX,
) -> T:
    """Run the work, and call `extend` every half lease until it is done; `extend` returns how many messages are still leased.

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
    """Return whether messages are still leased; a failed request to extend says nothing about the lease."""
    try:
        held = await extend()
    except Exception:
        log.warning("lease_extension_failed", exc_info=True)
        return True
    return held > 0


@dataclass(slots=True)
class RescueShare:
    """Half of the time for leases that ended, half for the carriers' lanes; neither waits for the end of the other.

    Messages of a dead worker are taken over one at a time, with nothing else in progress, and one dead worker may have held a
    thousand. Times are seconds of a monotonic clock.
    """

    rescues_began: float | None = None
    lanes_until: float = float("-inf")

    def rescue_first(self, now: float) -> bool:
        """Return whether the next claim asks for ended leases before the lanes."""
        return now >= self.lanes_until

    def rescued(self, *, began: float, ended: float) -> None:
        """Note that a message was taken over and processed."""
        if self.rescues_began is None:
            self.rescues_began = began
        if ended - self.rescues_began >= RESCUE_SECONDS:
            self.lanes_until = ended + (ended - self.rescues_began)
            self.rescues_began = None

    def lanes_served(self) -> None:
        """Note that a claim came from the lanes."""
        self.rescues_began = None
