"""The ledger of archived months."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from psycopg import AsyncConnection, Connection
from psycopg.rows import class_row

from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "log_months")
# A reader of the whole log does this first, on a session that lasts as long.
SHARE_MONTHS = _SQL["share_months"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMonth:
    month: date
    begins: datetime
    ends: datetime
    begun_at: datetime
    file_name: str | None
    sha256: bytes | None
    index_sha256: bytes | None
    size_bytes: int | None
    tree_size: int | None
    first_index: int | None
    last_index: int | None
    first_batch: int | None
    last_batch: int | None
    events: int | None
    conflicts: int | None
    transitions: int | None
    fanouts: int | None
    attempts: int | None
    observations: int | None
    actions: int | None
    written_at: datetime | None
    verified_at: datetime | None
    leaving_at: datetime | None
    dropped_at: datetime | None
    packed_at: datetime | None
    lost_at: datetime | None
    failures: int
    failed_at: datetime | None
    failure: str | None

    @property
    def entries(self) -> int:
        counts = (
            self.events,
            self.conflicts,
            self.transitions,
            self.fanouts,
            self.attempts,
            self.observations,
            self.actions,
        )
        return sum(count or 0 for count in counts)


async def months(connection: AsyncConnection[Any]) -> list[LogMonth]:
    """Return the whole ledger, the oldest month first."""
    return await (
        await connection.cursor(binary=True, row_factory=class_row(LogMonth)).execute(
            _SQL["months"]
        )
    ).fetchall()


def archived_months(connection: Connection[Any]) -> list[LogMonth]:
    """Return the months that have left the database."""
    with connection.cursor(binary=True, row_factory=class_row(LogMonth)) as cursor:
        return [month for month in cursor.execute(_SQL["months"]) if month.dropped_at is not None]


class Archived(NamedTuple):
    """Months of the log and days of bodies that are in files only."""

    months: int
    days: int

    def __str__(self) -> str:
        return f"{self.months} months of the log and {self.days} days of bodies are archived"


async def count_archived(connection: AsyncConnection[Any]) -> Archived:
    row = await (await connection.execute(_SQL["archived"])).fetchone()
    return Archived(*row or (0, 0))
