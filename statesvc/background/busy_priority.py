"""Lowers a process's priority while it has much to do, and only then.

Behind a flood the rest of the machine comes first: an ACK must not wait for the work that it
caused. At the load of an ordinary day the same niceness would delay a message by a second, without
any gain.
"""

import os
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

# Items in a second; six times the load of a day of eight million.
BUSY_PER_SECOND: Final = 500
_CALM_SECONDS: Final = 2.0
# For good, where the system does not let a process take its niceness back: between both.
UNPRIVILEGED_NICENESS: Final = 5
_CAP_SYS_NICE: Final = 23
_SESSION: Final = Path("/proc/self/autogroup")


class BusyPriority:
    """`niceness`: applied while busy; 0: never."""

    def __init__(self, niceness: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._niceness = niceness
        self._clock = clock
        self._items = 0
        self._counted_from = clock()
        self._busy_at = float("-inf")
        self._is_back = False
        self._is_free = may_return()
        # once and for good: raised niceness cannot be taken back without the right to it
        if niceness and not self._is_free:
            _set_process(min(niceness, UNPRIVILEGED_NICENESS))

    def claimed(self, items: int, *, has_backlog: bool) -> None:
        """Note a claim. `has_backlog`: it brought as much as it may, so more waits."""
        if not self._niceness:
            return
        now = self._clock()
        self._items += items
        # either: a backlog of costly messages may be few a second
        if has_backlog or self._items > BUSY_PER_SECOND:
            self._busy_at = now
        if now - self._counted_from >= 1.0:
            self._items, self._counted_from = 0, now
        is_back = now - self._busy_at < _CALM_SECONDS
        if is_back != self._is_back:
            self._is_back = is_back
            self._apply(self._niceness if is_back else 0)

    def _apply(self, niceness: int) -> None:
        # where the kernel groups by session, niceness counts within the session alone, and the
        # session has one that anyone may take back
        with suppress(OSError):
            if _SESSION.exists():
                _SESSION.write_text(str(niceness))
        if self._is_free:
            _set_process(niceness)


def may_return() -> bool:
    """Return whether this process may take a niceness back."""
    with suppress(OSError, AttributeError, StopIteration, ValueError):
        if resource.getrlimit(resource.RLIMIT_NICE)[0] in {resource.RLIM_INFINITY, *range(20, 41)}:
            return True
        status = Path("/proc/self/status").read_text("utf-8", "replace").splitlines()
        capabilities = next(line for line in status if line.startswith("CapEff:")).split()[1]
        return bool(int(capabilities, 16) >> _CAP_SYS_NICE & 1)
    return False


def _set_process(niceness: int) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
