"""Heartbeats of the last minutes: silent processes, and unacknowledged pushes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.database.session_settings import how_to_reset
from statesvc.health.ingest_report import IngestReport
from statesvc.health.worker_list import WORKERS_MAX

_SQL = queries("statesvc.health", "running_processes")

# Time for which a process that has fallen silent is named: it may have been taken away for good,
# with its machine.
REMEMBERED_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProcess:
    """`is_replaced`: its role has started again on its machine since it was last seen.

    `addons`: None of 0.1.0, which has all.
    """

    role: str
    host: str
    pid: int
    started_seconds_ago: float
    seen_seconds_ago: float
    is_silent: bool
    is_replaced: bool
    ingest: IngestReport | None
    addons: list[str] | None


class Deaths(NamedTuple):
    """Deaths of a role on a machine within `REMEMBERED_SECONDS`, with the manner of the last."""

    role: str
    host: str
    times: int
    seconds_ago: float
    exit_code: int
    out_of_memory: bool


class LastMinutePushes(NamedTuple):
    """Pushes of the last minute, over all processes that take webhooks.

    `refused` by code of the problem.
    """

    acknowledged: int
    refused: Counter[str]


async def read_processes(connection: AsyncConnection[Any]) -> list[RunningProcess]:
    """Read the processes, the latest seen first."""
    asked = {"seconds_max": REMEMBERED_SECONDS, "limit": WORKERS_MAX}
    rows = await (await connection.execute(_SQL["processes"], asked)).fetchall()
    return [
        RunningProcess(
            role=role,
            host=host,
            pid=pid,
            started_seconds_ago=started,
            seen_seconds_ago=seen,
            is_silent=is_silent,
            is_replaced=is_replaced,
            ingest=None if ingest is None else IngestReport(**ingest),
            addons=addons,
        )
        for role, host, pid, started, seen, is_silent, is_replaced, ingest, addons in rows
    ]


async def read_deaths(connection: AsyncConnection[Any]) -> list[Deaths]:
    """Read the recent deaths, the most frequent first."""
    asked = {"seconds_max": REMEMBERED_SECONDS}
    return [
        Deaths(*row) for row in await (await connection.execute(_SQL["deaths"], asked)).fetchall()
    ]


class NotWritable(NamedTuple):
    """The reason why the database takes no writes, and the remedy."""

    why: str
    remedy: str


async def why_not_writable(connection: AsyncConnection[Any]) -> NotWritable | None:
    """Return why the database takes no writes; None: it does."""
    row = await (await connection.execute(_SQL["writable"])).fetchone()
    in_recovery, source = row or (False, None)
    if in_recovery:
        return NotWritable(
            "it is a standby", "lead the service to the primary, or promote this one"
        )
    if source is None:
        return None
    ended_by = how_to_reset("default_transaction_read_only", source)
    return NotWritable(
        "default_transaction_read_only is on",
        f"{ended_by}, unless it fences a server that was moved away",
    )


def count_silent(processes: Sequence[RunningProcess]) -> Counter[str]:
    """Count, by role, those that were not started again; 0 of roles of which none is."""
    counted = Counter({process.role: 0 for process in processes})
    counted.update(
        process.role for process in processes if process.is_silent and not process.is_replaced
    )
    return counted


def count_died(deaths: Sequence[Deaths]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for each in deaths:
        counted[each.role] += each.times
    return counted


def last_minute(processes: Sequence[RunningProcess]) -> LastMinutePushes:
    """Sum the reports of processes that are not silent."""
    reports = [
        process.ingest
        for process in processes
        if process.ingest is not None and not process.is_silent
    ]
    refused: Counter[str] = Counter()
    for report in reports:
        refused.update(report.refused)
    return LastMinutePushes(
        acknowledged=sum(report.acknowledged for report in reports), refused=refused
    )
