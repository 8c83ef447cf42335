"""Pings for the watchdog of systemd (`WatchdogSec=`), from the event loop: a process that is
silent is started again.

Silent where systemd did not ask this process: the children of `statesvc up` inherit its variables,
and are watched by it.
"""

import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from statesvc.background.periodic import Periodic


def watchdog(environment: Mapping[str, str], *, pid: int) -> Periodic | None:
    """Return a job that pings twice an interval; None: not configured."""
    address, interval = environment.get("NOTIFY_SOCKET"), environment.get("WATCHDOG_USEC", "")
    if (
        not address
        or not interval.isdecimal()
        or environment.get("WATCHDOG_PID", str(pid)) != str(pid)
    ):
        return None
    every_seconds = int(interval) / 2_000_000
    # an abstract address is written with an @
    target = f"\0{address[1:]}" if address.startswith("@") else address

    async def ping() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, suppress(OSError):
            notify.setblocking(False)
            notify.sendto(b"WATCHDOG=1", target)

    return Periodic("watchdog", ping, every_seconds=every_seconds, retry_seconds=every_seconds)


@asynccontextmanager
async def watchdog_pings() -> AsyncIterator[None]:
    """Send the pings of this process for the time of the block."""
    pings = watchdog(os.environ, pid=os.getpid())
    if pings is not None:
        pings.start()
    try:
        yield
    finally:
        if pings is not None:
            await pings.close()
