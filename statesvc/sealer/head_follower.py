"""A job that does something with new heads beside the sealer, and never delays it."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Connections
from statesvc.telemetry.metrics import Telemetry

_STANDBY_SECONDS: Final = 1.0


class HeadFollower(Periodic):
    """`leads`: whether this process signs; `sealed` is set whenever there is a new head."""

    def __init__(
        self,
        name: str,
        pool: Connections,
        *,
        leads: Callable[[], bool],
        sealed: asyncio.Event,
        telemetry: Telemetry,
        every_seconds: float,
        retry_seconds: float,
        retry_seconds_max: float,
    ) -> None:
        super().__init__(
            name,
            self._while_leading,
            every_seconds=every_seconds,
            retry_seconds=retry_seconds,
            retry_seconds_max=retry_seconds_max,
        )
        self._pool = pool
        self._leads = leads
        self._sealed = sealed
        self._telemetry = telemetry

    def stop(self) -> None:
        """End `run`. Idempotent, safe before `run`."""
        super().stop()
        self._sealed.set()

    @abstractmethod
    async def _follow(self) -> float | None:
        """Take the newest head; `Periodic` has the meaning of the answer."""

    async def _while_leading(self) -> float | None:
        if not self._leads():
            return _STANDBY_SECONDS
        # before the head is read: one that is signed meanwhile must wake it again
        self._sealed.clear()
        return await self._follow()
