"""Lag of the event loop: a timer that notes by how much it was missed."""

import time
from typing import Final

from statesvc.background.periodic import Periodic
from statesvc.telemetry.metrics import Telemetry

_EVERY_SECONDS: Final = 2.0


def loop_lag(telemetry: Telemetry) -> Periodic:
    """Return a job that measures every other second."""
    # the first measurement has nothing to be late for
    due = float("inf")

    async def work() -> None:
        nonlocal due
        now = time.monotonic()
        telemetry.loop_lag.record(max(0.0, now - due))
        due = now + _EVERY_SECONDS

    return Periodic("loop lag", work, every_seconds=_EVERY_SECONDS, retry_seconds=_EVERY_SECONDS)
