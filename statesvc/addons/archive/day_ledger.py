"""The ledger of archived days.

Every step is a statement, so a crash leaves a row to continue from.
"""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.addons.archive.archive_pass import ArchiveLedger, ArchiveProgress
from statesvc.addons.archive.day import Fate, WrittenDay
from statesvc.database.queries import queries

_SQL = queries("statesvc.addons.archive", "day_ledger")
BODY_LEDGER = ArchiveLedger(_SQL)
Connection = AsyncConnection[Any]


class ArchivedDay(NamedTuple):
    day: date
    file_name: str
    is_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRecord:
    day: date
    begun_at: datetime
    file_name: str | None
    sha256: bytes | None
    size_bytes: int | None
    bodies: int | None
    compressed: int | None
    unopened: int | None
    erased: int | None
    written_at: datetime | None
    verified_at: datetime | None
    dropped_at: datetime | None
    expired_at: datetime | None
    deleted_at: datetime | None
    checked_at: datetime | None
    fault: str | None
    lost_at: datetime | None
    failures: int
    failed_at: datetime | None
    failure: str | None


async def due_days(connection: Connection, *, hot_days: int) -> list[date]:
    """Return days to archive, the oldest first."""
    return [
        day async for (day,) in await connection.execute(_SQL["due_days"], {"hot_days": hot_days})
    ]


async def begin_day(connection: Connection, day: date) -> ArchiveProgress:
    """Open the day's row, or find how far it came."""
    cursor = await connection.execute(_SQL["begin_day"], {"day": day}, binary=True)
    row = await cursor.fetchone()
    if row is None:
        raise LookupError("an upsert answers with its row")
    file_name, sha256, verified = row
    return ArchiveProgress({} if file_name is None else {file_name: sha256}, verified)


async def note_written(connection: Connection, day: date, written: WrittenDay) -> None:
    """Note that the file is complete and on the disk."""
    await connection.execute(
        _SQL["note_written"],
        {
            "day": day,
            "file_name": written.file_name,
            "sha256": written.finished.sha256,
            "size_bytes": written.finished.size_bytes,
            **{fate.value: written.fates[fate] for fate in Fate},
        },
    )


async def drop_day(connection: Connection, day: date, sha256: bytes) -> int:
    """Drop the partition; return how many bodies were retained because they still wait.

    Raises where the lock does not come at once.
    """
    row = await (
        await connection.execute(_SQL["drop_day"], {"day": day, "sha256": sha256})
    ).fetchone()
    return 0 if row is None else int(row[0])


async def expiring_days(connection: Connection, *, keep_months: int) -> list[ArchivedDay]:
    cursor = await connection.execute(_SQL["expiring_days"], {"keep_months": keep_months})
    return [ArchivedDay(*row) for row in await cursor.fetchall()]


async def drop_expired_messages(connection: Connection) -> date | None:
    """Drop the verdicts of the month with expired bodies, and return it; None: none is due.

    Raises if the lock is not free at once.
    """
    row = await (await connection.execute(_SQL["drop_expired_messages"])).fetchone()
    return None if row is None else row[0]


async def newest_hold(connection: Connection) -> int:
    """Return the last legal hold that was placed; 0: none ever."""
    row = await (await connection.execute(_SQL["newest_hold"])).fetchone()
    return 0 if row is None else int(row[0])


async def expire_day(connection: Connection, day: date, *, holds_known: int) -> bool:
    """End the day, unless a hold was placed after `holds_known`: then its bodies
    are to be searched first.
    """
    async with connection.transaction():
        await connection.execute(_SQL["stop_holds"])
        if await newest_hold(connection) != holds_known:
            return False
        await connection.execute(_SQL["note_expired"], {"day": day})
    return True


async def undeleted_days(connection: Connection) -> list[ArchivedDay]:
    """Return expired archives with files to delete."""
    return [
        ArchivedDay(*row)
        for row in await (await connection.execute(_SQL["undeleted_days"])).fetchall()
    ]


async def note_deleted(connection: Connection, day: date) -> None:
    await connection.execute(_SQL["note_deleted"], {"day": day})


async def longest_unchecked(
    connection: Connection, *, days: int
) -> tuple[ArchivedDay, bytes] | None:
    """Return the file that was not checked for longest, for more than `days`, and its digest."""
    row = await (
        await connection.execute(_SQL["longest_unchecked"], {"days": days}, binary=True)
    ).fetchone()
    return None if row is None else (ArchivedDay(row[0], row[1]), row[2])


async def note_checked(connection: Connection, day: date, *, fault: str | None) -> None:
    await connection.execute(_SQL["note_checked"], {"day": day, "fault": fault})


async def archives(connection: Connection) -> list[DayRecord]:
    return await (
        await connection.cursor(binary=True, row_factory=class_row(DayRecord)).execute(
            _SQL["archives"]
        )
    ).fetchall()
