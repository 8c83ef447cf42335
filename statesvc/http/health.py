"""Whether the process is alive, and whether it may get traffic.

`/livez` depends on nothing: a database that is away must not restart processes. `/readyz` means that a push would be acknowledged now:
it asks the database within one second whether it takes writes, and says no as soon as the process drains. Answers are remembered for a
quarter of a second, so that no one can load the database through a call without a key.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, LiteralString, Protocol

import psycopg
from aiohttp import web
from psycopg import AsyncConnection

from statesvc.database.clocks import clock_fault
from statesvc.database.pool import Connections, connection_fault
from statesvc.database.queries import queries
from statesvc.http.operation import Route, answer, operation
from statesvc.http.problem import Code, Problem

_SQL: Final = queries("statesvc.http", "health")
_MIGRATION: Final = re.compile(r"(\d{4})_\w+\.sql")
READY_SECONDS: Final = 1.0
REMEMBERED_SECONDS: Final = 0.25


@cache
def shipped_migrations() -> frozenset[int]:
    """The versions of the migrations that came with this code."""
    names = (_MIGRATION.fullmatch(entry.name) for entry in files("migrations").iterdir())
    return frozenset(int(match[1]) for match in names if match is not None)


class Ready(Protocol):
    """What `/readyz` asks."""

    async def failing(self) -> Mapping[str, str]:
        """Why the process should get no traffic, by the name of the check; empty: it should."""


Check = Callable[[], str | None]
"""Says why the process cannot do its work, or None. It must not wait."""


class Readiness:
    """Whether what the process writes would be stored now. `migrations` are the versions that the database must have."""

    def __init__(
        self,
        pool: Connections,
        *,
        migrations: Iterable[int],
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._pool = pool
        self._migrations = frozenset(migrations)
        self._draining: str | None = None
        self._checks: dict[str, Check] = {}
        self._asking = asyncio.Lock()
        self._now = now
        self._wall_clock = wall_clock
        self._asked_at = float("-inf")
        self._remembered: str | None = None

    def drain(self, why: str = "the process is stopping") -> None:
        """From now on not ready; there is no way back."""
        self._draining = why

    def watch(self, name: str, check: Check) -> None:
        """Adds a check, that is asked each time."""
        self._checks[name] = check

    @property
    def is_draining(self) -> bool:
        """Whether the process is about to stop."""
        return self._draining is not None

    async def failing(self) -> dict[str, str]:
        """Why not, by the name of the check. Empty: ready."""
        if self._draining is not None:
            return {"process": self._draining}
        async with self._asking:
            if self._now() >= self._asked_at + REMEMBERED_SECONDS:
                self._remembered = await self._ask()
                self._asked_at = self._now()
        found = {"database": self._remembered, **{name: check() for name, check in self._checks.items()}}
        return {name: why for name, why in found.items() if why is not None}

    async def reasons(self) -> list[str]:
        """Why not, as sentences. Empty: ready."""
        return [*(await self.failing()).values()]

    async def _ask(self) -> str | None:
        try:
            async with asyncio.timeout(READY_SECONDS), self._pool.connection() as connection:
                return await self._unfit(connection)
        except psycopg.errors.UndefinedTable:
            return "the database has no schema yet: run `statesvc migrate`"
        except (psycopg.Error, TimeoutError) as error:
            why = connection_fault(self._pool)
            if why is not None:
                return f"no connection to the database: {why}"
            return f"the database does not answer within {READY_SECONDS:g} s ({type(error).__name__})"

    async def _unfit(self, connection: AsyncConnection[Any]) -> str | None:
        (only_reads,) = await _row(connection, _SQL["only_reads"])
        if only_reads:
            return "the database is read-only: nothing can be stored"
        applied = {version for (version,) in await (await connection.execute(_SQL["applied"])).fetchall()}
        if pending := sorted(self._migrations - applied):
            return f"migrations are pending ({', '.join(f'{version:04}' for version in pending)}): run `statesvc migrate`"
        refusal, missing, clock = await _row(connection, _SQL["fit_to_write"])
        if missing:
            return self._without_partition(missing, clock)
        return None if refusal is None else f"the sealer refuses this log: {refusal}"

    def _without_partition(self, missing: Sequence[str], clock: datetime) -> str:
        off = clock_fault(clock, self._wall_clock())
        if off is not None:
            return f"{off}: there is no partition for that time, so nothing can be stored"
        return f"nothing can be stored: no partition of today in {', '.join(missing)}; `SELECT statesvc.ensure_partitions()` makes them"


async def _row(connection: AsyncConnection[Any], query: LiteralString) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = await (await connection.execute(query)).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return row


def health_routes(readiness: Ready) -> list[Route]:
    """`/livez` and `/readyz` of any role."""

    async def livez(_request: web.Request) -> web.StreamResponse:
        return answer({"status": "alive"})

    async def readyz(_request: web.Request) -> web.StreamResponse:
        if failing := await readiness.failing():
            raise Problem(Code.NOT_READY, "; ".join(failing.values()), members={"reasons": [*failing.values()], "checks": [*failing]})
        return answer({"status": "ready"})

    return [
        Route("GET", "/livez", livez, operation(operation_id="check_alive", summary="Is the process alive?", scope=None, tag="health")),
        Route(
            "GET",
            "/readyz",
            readyz,
            operation(operation_id="check_ready", summary="May it get traffic?", scope=None, tag="health", problems=(Code.NOT_READY,)),
        ),
    ]
