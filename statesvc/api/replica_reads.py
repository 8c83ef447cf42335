"""Reads that may be a little old: answered by a standby that is fresh enough, else by the primary.

A standby shows everything that was committed before the newest transaction that it replayed, so the age of that one's commit bounds how
stale an answer is. The bound holds for a standby that is cut off, where it grows; while nothing else is written, the heartbeats of the
processes hold it below about twelve seconds.

Whatever goes wrong at the standby, what it has not got yet included, the primary answers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection
from pydantic import Field

from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.http.call import Call
from statesvc.http.problem import Problem
from statesvc.log.history import History

STALENESS_HEADER: Final = "Statesvc-Staleness"
STALENESS_SECONDS_MAX: Final = 3600
REPLICA_SECONDS: Final = 3.0
"""Time that a standby may take: one that hangs must not use up the caller's deadline."""
AGAIN_SECONDS: Final = 5.0
"""After a standby that did not answer, nothing is asked of it for so long."""

MaxStaleness = Annotated[
    float | None,
    Field(
        ge=0,
        le=STALENESS_SECONDS_MAX,
        allow_inf_nan=False,
        description="An answer that may be up to this many seconds old, so that a standby of the database can give it; "
        "`Statesvc-Staleness` says how old it is at most. Without it, and where no standby is that fresh: the newest state.",
    ),
]
STALENESS: Final = {
    STALENESS_HEADER: "To `max_staleness`: how many seconds old the answer is at most; 0 where the primary gave it."
}
"""For `response_headers` of operations that take `max_staleness`."""

_SQL = queries("statesvc.database", "replica")
R = TypeVar("R")
Read = Callable[[AsyncConnection[Any], History], Awaitable[R]]


@dataclass(slots=True)
class Replica:
    """A standby. `archive` is its own, and read-only: what it knows of months is as old as its rows. `count` is given the outcome."""

    pool: Connections
    archive: History
    count: Callable[[str], None]
    _away_until: float = float("-inf")
    _asked: set[asyncio.Task[Any]] = field(default_factory=set)

    async def read(self, read: Read[R], *, max_staleness: float) -> tuple[R, float] | None:
        """Return the answer, and how old it is at most; None where the primary has to give it."""
        if time.monotonic() < self._away_until:
            self.count("away")
            return None
        # not a timeout around it: cancelling waits for the server to agree, and one that hangs does not
        task = asyncio.create_task(self._read(read, max_staleness), name="replica-read")
        self._asked.add(task)
        task.add_done_callback(self._answered)
        try:
            done, _ = await asyncio.wait({task}, timeout=REPLICA_SECONDS)
            if done:
                return task.result()
        except (psycopg.Error, OSError):
            pass
        finally:
            task.cancel()
        self._away_until = time.monotonic() + AGAIN_SECONDS
        self.count("away")
        return None

    async def _read(self, read: Read[R], max_staleness: float) -> tuple[R, float] | None:
        async with self.pool.connection() as connection:
            row = await (await connection.execute(_SQL["staleness"])).fetchone()
            staleness = None if row is None else row[0]
            if staleness is None or staleness > max_staleness:
                self.count("stale")
                return None
            try:
                answer = await read(connection, self.archive)
            except (Problem, UnreadableArchiveError, psycopg.errors.SerializationFailure):
                # not here yet, archived months that only the primary takes in again, or in the way of what the standby replays
                self.count("passed_on")
                return None
            self.count("answered")
            return answer, staleness

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self._asked.discard(task)
        if not task.cancelled():
            # asked for, so that what went wrong after the wait does not count as unseen
            task.exception()


@dataclass(frozen=True, slots=True)
class StaleReads:
    """The one way to a connection for reads that take `max_staleness`."""

    primary: Connections
    archive: History
    replica: Replica | None

    async def read(self, call: Call[Any, Any], read: Read[R], *, max_staleness: float | None) -> R:
        """Return what `read` answers on a standby that is fresh enough, or on the primary. `max_staleness` None: on the primary."""
        if max_staleness and self.replica is not None:
            answered = await self.replica.read(read, max_staleness=max_staleness)
            if answered is not None:
                answer, staleness = answered
                call.headers[STALENESS_HEADER] = f"{staleness:.3f}"
                return answer
        async with self.primary.connection() as connection:
            answer = await read(connection, self.archive)
        if max_staleness is not None:
            call.headers[STALENESS_HEADER] = "0"
        return answer
