"""The heartbeat of a process: a statement every few seconds, not per message.

It shows people the running processes and takes no decision. Whether a message may be taken over
depends on its lease alone.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.background.deaths import read_deaths
from statesvc.background.periodic import Periodic
from statesvc.background.waiting import set_within
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.health.ingest_report import IngestReport

BEAT_SECONDS: Final = 10.0
# Interval of a process that took pushes in the last minute: its silence matters first.
INGEST_BEAT_SECONDS: Final = 4.0
_RETRY_SECONDS: Final = 1.0
_LEAVE_SECONDS: Final = 1.0

_SQL = queries("statesvc.health", "heartbeat")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """A start of a role in a process.

    `normalizers`: those a worker has, as `carrier_id/version`.
    """

    worker_id: str
    role: str
    host: str
    pid: int
    version: str
    normalizers: list[str] = field(default_factory=list)
    zones: str | None = None
    """Release of the IANA time zones by which a worker reads local times."""
    addons: list[str] = field(default_factory=list)


class Heartbeat:
    """Beats from `start` to `stop` for all roles of the process, through database errors.

    `stopping` is set when it is to end. `deaths`: the file in which a supervisor notes dead
    children.
    """

    def __init__(
        self,
        pool: Pool,
        incarnations: Sequence[Incarnation],
        *,
        stopping: asyncio.Event,
        deaths: Path | None = None,
        beat_seconds: float = BEAT_SECONDS,
        ingest_beat_seconds: float = INGEST_BEAT_SECONDS,
    ) -> None:
        self._pool = pool
        self._incarnations = incarnations
        self._stopping = stopping
        self._deaths = deaths
        self._deaths_read = 0
        self._beat_seconds = beat_seconds
        self._ingest_beat_seconds = ingest_beat_seconds
        self._began = time.monotonic()
        self._job: Periodic | None = None
        self._ingest: Callable[[], IngestReport] | None = None

    def report_ingest(self, report: Callable[[], IngestReport]) -> None:
        """Add the report to each beat from now on."""
        self._ingest = report

    async def start(self) -> None:
        """Start the heartbeat without waiting for the first beat."""
        if self._job is None:
            self._job = Periodic(
                "heartbeat",
                self._beat,
                every_seconds=self._beat_seconds,
                retry_seconds=min(_RETRY_SECONDS, self._beat_seconds),
                jitter=0.2,
            )
            self._job.start()

    async def stop(self) -> None:
        """Take the rows away if that takes no second. Safe to call twice, and before `start`."""
        job, self._job = self._job, None
        if job is None:
            return
        await job.close()
        try:
            async with asyncio.timeout(_LEAVE_SECONDS), self._pool.connection() as connection:
                await connection.execute(
                    _SQL["leave"], {"worker_ids": [one.worker_id for one in self._incarnations]}
                )
        except (psycopg.Error, TimeoutError):
            log.info("worker_not_signed_off", exc_info=True)

    async def _beat(self) -> float | None:
        stopping = self._stopping.is_set()
        # an age, not a time: the clock of this machine may be wrong, the database's decides
        age_seconds = time.monotonic() - self._began
        report = None if self._ingest is None else self._ingest()
        beat_seconds = (
            self._ingest_beat_seconds
            if report is not None and report.pushes
            else self._beat_seconds
        )
        beat = {
            "incarnations": orjson.dumps([asdict(one) for one in self._incarnations]).decode(),
            "age_seconds": age_seconds,
            "stopping": stopping,
            "beat_seconds": beat_seconds,
            "ingest": None if report is None else orjson.dumps(asdict(report)).decode(),
        }
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["beat"], beat)
            if self._deaths is not None:
                await self._report_deaths(connection, self._deaths)
            for zones in {one.zones for one in self._incarnations} - {None}:
                await connection.execute(_SQL["note_zones"], {"zones": zones})
        if stopping:
            return None
        # woken when the process is to end, so that people see it at once; at random intervals,
        # because processes that start together would beat together for ever
        await set_within(self._stopping, beat_seconds * random.uniform(0.8, 1.2))  # noqa: S311
        return 0.0

    async def _report_deaths(self, connection: AsyncConnection[Any], path: Path) -> None:
        """Report new deaths; each living sibling does, and the first report counts."""
        deaths, offset = read_deaths(path, self._deaths_read)
        if deaths:
            reporter = self._incarnations[0]
            rows = [
                {
                    "worker_id": f"{reporter.host}-{role}-{death.pid}-{death.ended_at:.3f}",
                    "role": role,
                    "host": reporter.host,
                    "pid": death.pid,
                    "version": reporter.version,
                    "seconds_ago": time.time() - death.ended_at,
                    "how": {"exit_code": death.exit_code, "out_of_memory": death.out_of_memory},
                }
                for death in deaths
                for role in death.roles
            ]
            await connection.execute(_SQL["died"], {"deaths": orjson.dumps(rows).decode()})
        self._deaths_read = offset
