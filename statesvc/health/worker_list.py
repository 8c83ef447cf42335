"""The running processes, for people."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import kwargs_row

from statesvc.database.queries import queries

_SQL = queries("statesvc.health", "heartbeat")

WORKERS_MAX: Final = 1000
RESCUES_MAX: Final = 100_000
# Three missed heartbeats of a worker; an ingress beats more often.
SILENT_SECONDS: Final = 30.0


class WorkerState(StrEnum):
    """State of a worker by its last heartbeat."""

    ALIVE = "alive"
    STOPPING = "stopping"
    SILENT = "silent"
    """Killed, frozen, or cut off from the database; its leases are taken over as they end."""
    FOREIGN = "foreign"
    """Holds messages and has no row: a worker in another language, last seen at its latest
    claim.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """One start of one process.

    `leases`: messages and notifications it holds; `leases_lost`: messages taken
    over from it in a day.
    """

    worker_id: str
    state: WorkerState
    role: str | None
    host: str | None
    pid: int | None
    version: str | None
    started_at: datetime | None
    stopping_at: datetime | None
    last_seen_at: datetime | None
    seen_seconds_ago: float | None
    leases: int
    leases_lost: int


async def list_workers(connection: AsyncConnection[Any]) -> list[WorkerStatus]:
    """Return the workers, the latest seen first, `WORKERS_MAX` at most."""
    cursor = connection.cursor(row_factory=kwargs_row(_listed))
    await cursor.execute(_SQL["workers"], {"limit": WORKERS_MAX})
    return await cursor.fetchall()


async def rescues_last_hour(connection: AsyncConnection[Any]) -> int:
    """Return messages that were taken over because a lease had ended, counted as far as
    `RESCUES_MAX`.
    """
    row = await (await connection.execute(_SQL["rescues"], {"count_max": RESCUES_MAX})).fetchone()
    return 0 if row is None else row[0]


def _listed(**row: Any) -> WorkerStatus:  # noqa: ANN401 - the columns of the query
    is_silent = row.pop("is_silent")
    return WorkerStatus(
        state=_state(row["role"], is_silent=is_silent, stopping_at=row["stopping_at"]), **row
    )


def _state(
    role: str | None, *, is_silent: bool | None, stopping_at: datetime | None
) -> WorkerState:
    if role is None:
        return WorkerState.FOREIGN
    if is_silent:
        return WorkerState.SILENT
    return WorkerState.ALIVE if stopping_at is None else WorkerState.STOPPING
