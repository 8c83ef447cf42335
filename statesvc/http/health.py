"""Whether the process is alive, and whether it may get traffic.

`/livez` depends on nothing: a database that is away must not restart processes. `/readyz` asks the database within one
second, and says no as soon as the process drains. Answers are remembered for a quarter of a second, so that
no one can load the database through a call without a key.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Final, Protocol

import psycopg
from aiohttp import web

from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.http.operation import Route, answer, raw_route
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

    async def reasons(self) -> list[str]:
        """Why the process should get no traffic; empty: it should."""


class Readiness:
    """Why the process should get no traffic. `migrations` are the versions that the database must have."""

    def __init__(self, pool: Connections, *, migrations: Iterable[int], now: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._migrations = frozenset(migrations)
        self._draining: str | None = None
        self._watched: list[Callable[[], str | None]] = []
        self._asking = asyncio.Lock()
        self._now = now
        self._asked_at = float("-inf")
        self._remembered: list[str] = []

    def drain(self, why: str = "the process is stopping") -> None:
        """From now on not ready; there is no way back."""
        self._draining = why

    def watch(self, check: Callable[[], str | None]) -> None:
        """Asked each time: why the process cannot do its work, or None."""
        self._watched.append(check)

    @property
    def is_draining(self) -> bool:
        """Whether the process is about to stop."""
        return self._draining is not None

    async def reasons(self) -> list[str]:
        """Empty: ready."""
        if self._draining is not None:
            return [self._draining]
        async with self._asking:
            if self._now() >= self._asked_at + REMEMBERED_SECONDS:
                self._remembered = await self._ask()
                self._asked_at = self._now()
            return [*self._remembered, *(why for check in self._watched if (why := check()) is not None)]

    async def _ask(self) -> list[str]:
        try:
            async with asyncio.timeout(READY_SECONDS), self._pool.connection() as connection:
                await connection.execute(_SQL["alive"])
                applied = {version for (version,) in await (await connection.execute(_SQL["applied"])).fetchall()}
                pending = sorted(self._migrations - applied)
                refusal = None if pending else await (await connection.execute(_SQL["refusal"])).fetchone()
        except psycopg.errors.UndefinedTable:
            return ["the database has no schema yet: run `statesvc migrate`"]
        except (psycopg.Error, TimeoutError) as error:
            return [f"the database does not answer within {READY_SECONDS:g} s ({type(error).__name__})"]
        if pending:
            return [f"migrations are pending ({', '.join(f'{version:04}' for version in pending)}): run `statesvc migrate`"]
        return [] if refusal is None else [f"the sealer refuses this log: {refusal[0]}"]


def health_routes(readiness: Ready) -> list[Route]:
    """`/livez` and `/readyz` of any role."""

    async def livez(_request: web.Request) -> web.StreamResponse:
        return answer({"status": "alive"})

    async def readyz(_request: web.Request) -> web.StreamResponse:
        reasons = await readiness.reasons()
        if reasons:
            raise Problem(Code.NOT_READY, "; ".join(reasons), members={"reasons": reasons})
        return answer({"status": "ready"})

    return [
        raw_route("GET /livez", livez, operation_id="check_alive", summary="Is the process alive?", scope=None, tag="health"),
        raw_route(
            "GET /readyz",
            readyz,
            operation_id="check_ready",
            summary="May it get traffic?",
            scope=None,
            tag="health",
            problems=(Code.NOT_READY,),
        ),
    ]
