"""One worker process against messages that wait: from the release of the hold until the table is
empty as the database sees it.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from psycopg import AsyncConnection

from tests.bench.bench import Bench
from tests.bench.inbox import RELEASE, WAITS
from tests.bench.server import Place

_LOOK_SECONDS = 0.02
_LONGEST_SECONDS = 900.0
_EVENTS = "SELECT count(*) FROM statesvc.event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """Result of one worker.

    `told`: notifications in the outbox; `undone`: dead letters of messages.
    """

    seconds: float
    messages: int
    events: int
    told: int
    undone: int
    peak_rss_bytes: int
    cpu_seconds: float

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def messages_per_second(self) -> float:
        return self.messages / self.seconds


async def drain(bench: Bench, template: str) -> Drained:
    """Run the role `worker` on a copy of `template`."""
    async with bench.server.database(template) as place:
        return await drain_in_place(bench, place)


async def drain_in_place(bench: Bench, place: Place) -> Drained:
    """Run the role `worker` on a database whose messages are held."""
    async with bench.service(place) as service:
        (worker,) = await service.start("worker")
        messages = await place.value("SELECT count(*) FROM statesvc.inbox")
        known = await place.value(_EVENTS)
        before = cpu_seconds(worker.process.pid)
        seconds = await until_empty(place)
        return Drained(
            seconds=seconds,
            messages=messages,
            events=await place.value(_EVENTS) - known,
            told=await place.value("SELECT count(*) FROM statesvc.outbox"),
            undone=await place.value(
                "SELECT count(*) FROM statesvc.dead_letter WHERE kind = 'message'"
            ),
            peak_rss_bytes=peak_rss_bytes(worker.process.pid),
            cpu_seconds=cpu_seconds(worker.process.pid) - before,
        )


async def until_empty(place: Place) -> float:
    """Release the hold; return the seconds until no message waits."""
    async with await AsyncConnection.connect(place.owner, autocommit=True) as connection:
        async with asyncio.timeout(_LONGEST_SECONDS):
            started = time.perf_counter()
            for statement in RELEASE:
                await connection.execute(statement.encode())
            while True:
                row = await (await connection.execute(WAITS)).fetchone()
                if row is not None and not row[0]:
                    return time.perf_counter() - started
                await asyncio.sleep(_LOOK_SECONDS)


def peak_rss_bytes(pid: int) -> int:
    """Return the most memory that a process held; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    kilobytes = next(
        line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(kilobytes) * 1024


def cpu_seconds(pid: int) -> float:
    """Return what a process used of the processors; 0.0 where the system does not tell."""
    stat = Path(f"/proc/{pid}/schedstat")
    return int(stat.read_text().split()[0]) / 1e9 if stat.exists() else 0.0
