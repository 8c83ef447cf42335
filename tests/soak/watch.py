"""Watch of the service's lag, four times a second, and of how long it needs to be itself again
after each disturbance.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

LOOK_SECONDS: Final = 0.25
RECOVERED_SECONDS: Final = 2.0
"""Recovered: no ready message, and no push without an ACK, is older than this."""
_AGES: Final = """
SELECT coalesce(extract(epoch FROM now.at - min(q.available_at) FILTER (WHERE q.available_at <= now.at)), 0)::float8,
    coalesce(extract(epoch FROM now.at - min(q.received_at)), 0)::float8, count(*)
FROM (SELECT statesvc.clock() AS at) now LEFT JOIN statesvc.inbox q ON true GROUP BY now.at
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Ages in seconds; None while the server does not answer. `ready`: free, or its lease has ended;
    `waiting`: not settled.
    """

    at: float
    unanswered: float
    ready: float | None
    waiting: float | None
    backlog: int

    @property
    def recovered(self) -> bool:
        return self.ready is not None and max(self.ready, self.unanswered) < RECOVERED_SECONDS


@dataclass(slots=True)
class Disturbance:
    """Disturbance from `began` to `ended`, on the monotonic clock."""

    what: str
    began: float
    ended: float = field(default=float("inf"))


class Watch:
    """Looks past any proxy, with a connection of its own.

    `unanswered`: the age of the oldest push without an ACK.
    """

    def __init__(self, dsn: str, unanswered: Callable[[], float]) -> None:
        self._dsn = dsn
        self._unanswered = unanswered
        self.looks: list[Look] = []
        self.disturbances: list[Disturbance] = []

    async def run(self) -> None:
        """Watch until it is cancelled."""
        connection: AsyncConnection[Any] | None = None
        try:
            while True:
                try:
                    async with asyncio.timeout(3):
                        if connection is None:
                            connection = await AsyncConnection.connect(
                                self._dsn, autocommit=True, connect_timeout=2
                            )
                        ready, waiting, backlog = await (
                            await connection.execute(_AGES)
                        ).fetchone() or (None, None, 0)
                except (psycopg.Error, OSError, TimeoutError):
                    ready, waiting, backlog = None, None, 0
                    if connection is not None:
                        await connection.close()
                    connection = None
                self.looks.append(
                    Look(time.monotonic(), self._unanswered(), ready, waiting, backlog)
                )
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            if connection is not None:
                await connection.close()

    def recoveries(self) -> list[tuple[Disturbance, float]]:
        """Return for each disturbance the seconds from its end until the service had recovered;
        without those that another one overtook.
        """
        found = []
        for place, disturbance in enumerate(self.disturbances):
            until = (
                self.disturbances[place + 1].began
                if place + 1 < len(self.disturbances)
                else float("inf")
            )
            recovered = next(
                (look.at for look in self.looks if look.at > disturbance.ended and look.recovered),
                float("inf"),
            )
            if recovered < until:
                found.append((disturbance, recovered - disturbance.ended))
        return found
