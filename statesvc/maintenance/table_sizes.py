"""Size and growth of the database, table by table.

What a table grows by is its bytes an entry times the entries that the log got a day, over the last seven days: every table grows with
the log, and nothing need be remembered for it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.maintenance.storage_forecast import LEAVING, Leaving, TableSize

_SQL = queries("statesvc.maintenance", "table_sizes")
_WEEK: Final = timedelta(days=7)
_YOUNGEST: Final = timedelta(days=1)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredData:
    """`entries_per_day` None: the log is younger than a day, and what it will grow by is not known."""

    tables: list[TableSize]
    entries: int
    entries_per_day: float | None
    body_archive_bytes: int
    log_archive_bytes: int

    @property
    def size_bytes(self) -> int:
        """Size of all tables."""
        return sum(table.size_bytes for table in self.tables)


async def read_stored_data(connection: AsyncConnection[Any]) -> StoredData:
    """Read all sizes, the largest table first."""
    ((now, first, entries, week_ago),) = await _rows(connection, "entries")
    age = now - (first or now)
    per_day = (entries - week_ago) / (min(age, _WEEK) / _DAY) if age >= _YOUNGEST else None
    tables = []
    for name, size_bytes, begins in await _rows(connection, "table_sizes"):
        since = (
            first if begins is None else max(datetime.combine(begins, time.min, UTC), first or now)
        )
        held = (
            entries
            if begins is None
            else entries - (await _rows(connection, "entries_before", instant=since))[0][0]
        )
        tables.append(
            TableSize(
                name=name,
                size_bytes=size_bytes,
                bytes_per_day=size_bytes / held * per_day if per_day is not None and held else 0.0,
                held_days=(now - (since or now)) / _DAY,
                leaving=LEAVING.get(name, Leaving.NEVER),
            )
        )
    tables.sort(key=lambda table: -table.size_bytes)
    ((bodies, months),) = await _rows(connection, "archives")
    return StoredData(
        tables=tables,
        entries=entries,
        entries_per_day=per_day,
        body_archive_bytes=bodies,
        log_archive_bytes=months,
    )


async def _rows(connection: AsyncConnection[Any], name: str, **parameters: object) -> list[Any]:
    return await (await connection.execute(_SQL[name], parameters)).fetchall()
