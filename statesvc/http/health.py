"""Health checks: whether the process is alive, and whether it may get traffic.

`/livez` depends on nothing: an unreachable database must not restart processes. `/readyz` means
that a push would be acknowledged now: it asks the database within a second whether it takes writes,
and fails as soon as the process drains. Answers are kept for a quarter of a second, so that calls
without a key cannot load the database.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Protocol

import psycopg
from aiohttp import web

from statesvc.database.pool import Connections, Pool, PoolBusyError, connection_fault
from statesvc.health.storable import storage_findings
from statesvc.http.operation import Route, answer, operation
from statesvc.http.problem import Code, Problem

_MIGRATION: Final = re.compile(r"(\d{4})_\w+\.sql")
READY_SECONDS: Final = 1.0
REMEMBERED_SECONDS: Final = 0.25


@cache
def shipped_migrations() -> frozenset[int]:
    """Return the versions of the migrations that came with this code."""
    names = (_MIGRATION.fullmatch(entry.name) for entry in files("migrations").iterdir())
    return frozenset(int(match[1]) for match in names if match is not None)


class Ready(Protocol):
    async def failing(self) -> Mapping[str, str]:
        """Return why the process should get no traffic, by check; empty: it should."""


# Returns the reason why the process cannot work, or None. It must not wait.
Check = Callable[[], str | None]


class Readiness:
    """Checks whether the database would store writes now.

    `migrations`: the versions it must have.
    """

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
        self._spares: dict[str, Check] = {}
        self._asking = asyncio.Lock()
        self._now = now
        self._wall_clock = wall_clock
        self._asked_at = float("-inf")
        self._remembered: str | None = None

    def drain(self, why: str = "the process is stopping") -> None:
        """Stop being ready, for good."""
        self._draining = why

    def watch(self, name: str, check: Check) -> None:
        self._checks[name] = check

    def spare(self, name: str, check: Check) -> None:
        """Stay ready if the check of this name fails, as long as the spare one does not."""
        self._spares[name] = check

    @property
    def is_draining(self) -> bool:
        return self._draining is not None

    async def failing(self) -> dict[str, str]:
        """Return why it is not ready, by the name of the check; empty: ready."""
        if self._draining is not None:
            return {"process": self._draining}
        async with self._asking:
            if self._now() >= self._asked_at + REMEMBERED_SECONDS:
                self._remembered = await self._ask()
                self._asked_at = self._now()
        found = {
            "database": self._remembered,
            **{name: check() for name, check in self._checks.items()},
        }
        return {
            name: why
            for name, why in found.items()
            if why is not None and (name not in self._spares or self._spares[name]() is not None)
        }

    async def reasons(self) -> list[str]:
        """Return why it is not ready, as sentences; empty: ready."""
        return [*(await self.failing()).values()]

    async def _ask(self) -> str | None:
        has_connection = False
        try:
            async with asyncio.timeout(READY_SECONDS), self._pool.connection() as connection:
                has_connection = True
                found = await storage_findings(
                    connection, migrations=self._migrations, wall_clock=self._wall_clock
                )
                return next((finding.text for finding in found), None)
        except psycopg.errors.UndefinedTable:
            return "the database has no schema yet: run `statesvc migrate`"
        except (psycopg.Error, TimeoutError) as error:
            is_late = isinstance(error, TimeoutError | PoolBusyError) and not has_connection
            if is_late and self._is_busy():
                return None
            why = connection_fault(self._pool)
            if why is not None:
                return f"no connection to the database: {why}"
            return (
                f"the database does not answer within {READY_SECONDS:g} s ({type(error).__name__})"
            )

    def _is_busy(self) -> bool:
        """Return whether the question only waited behind calls that the database answers."""
        return isinstance(self._pool, Pool) and self._pool.served_within(READY_SECONDS)


def health_routes(readiness: Ready) -> list[Route]:
    async def livez(_request: web.Request) -> web.StreamResponse:
        return answer({"status": "alive"})

    async def readyz(_request: web.Request) -> web.StreamResponse:
        if failing := await readiness.failing():
            raise Problem(
                Code.NOT_READY,
                "; ".join(failing.values()),
                members={"reasons": [*failing.values()], "checks": [*failing]},
            )
        return answer({"status": "ready"})

    return [
        Route(
            "GET",
            "/livez",
            livez,
            operation(
                operation_id="check_alive",
                summary="Check whether the process is alive",
                scope=None,
                tag="health",
            ),
        ),
        Route(
            "GET",
            "/readyz",
            readyz,
            operation(
                operation_id="check_ready",
                summary="Check whether the process may get traffic",
                scope=None,
                tag="health",
                problems=(Code.NOT_READY,),
            ),
        ),
    ]
