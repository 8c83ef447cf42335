"""Extending a batch's lease while it is processed, and the share of time for expired leases.

A batch that takes longer than half its lease extends it, a bounded number of times: the messages of
a hanging batch are taken over in the end. Losing the lease stops the work; the token fences off a
commit that is too late.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog

from statesvc.background.waiting import cancel_fully

log = structlog.get_logger()

# Each is worth half a lease.
EXTENSIONS_MAX: Final = 8

# Seconds of rescues before the lanes get equal time.
RESCUE_SECONDS: Final = 0.5

T = TypeVar("T")


class LeaseLostError(Exception):
    """Other workers took over all messages of the lease."""


async def under_lease(
    work: Coroutine[Any, Any, T],
    *,
    extend: Callable[[], Awaitable[int]],
    lease_seconds: float,
    extensions_max: int = EXTENSIONS_MAX,
) -> T:
    """Run the work, and call `extend` every half lease until it is done; `extend` returns how many
    messages are still leased.

    Raises LeaseLostError, and whatever the work raises.
    """
    task = asyncio.create_task(work, name="batch-under-lease")
    try:
        for _ in range(extensions_max):
            # half: one extension may fail, or come late, and the next is still in time. `wait`,
            # unlike `wait_for`, leaves the work running at the timeout
            done, _ = await asyncio.wait({task}, timeout=lease_seconds / 2)
            if done:
                break
            # its transaction would be fenced off at the end: stop before it costs more
            if not await _still_held(extend):
                raise LeaseLostError
        # without further extensions: a batch that hangs is taken over when its lease ends
        return await task
    finally:
        # also when this was cancelled: the work must not outlive its lease
        if not task.done():
            await cancel_fully(task)


async def _still_held(extend: Callable[[], Awaitable[int]]) -> bool:
    """Return whether messages are still leased.

    A failed request to extend proves neither.
    """
    try:
        held = await extend()
    except Exception:
        log.warning("lease_extension_failed", exc_info=True)
        # the connection failed, the lease may stand; the token fences the commit if it does not
        return True
    return held > 0


@dataclass(slots=True)
class RescueShare:
    """Half of the time for expired leases, half for the carriers' lanes; neither starves the other.

    A dead worker's messages are taken over one at a time, alone, and it may have held a
    thousand. Times are seconds of a monotonic clock.
    """

    rescues_began: float | None = None
    lanes_until: float = float("-inf")

    def rescue_first(self, now: float) -> bool:
        """Return whether the next claim asks for ended leases before the lanes."""
        return now >= self.lanes_until

    def rescued(self, *, began: float, ended: float) -> None:
        """Record that a message was taken over and processed."""
        if self.rescues_began is None:
            self.rescues_began = began
        # as long as the rescues took: one slow message may take far longer than the share
        if ended - self.rescues_began >= RESCUE_SECONDS:
            self.lanes_until = ended + (ended - self.rescues_began)
            self.rescues_began = None

    def lanes_served(self) -> None:
        """Record a claim from the lanes."""
        self.rescues_began = None
