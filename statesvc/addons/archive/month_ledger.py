"""The ledger of archived months.

Every step is a statement, so a crash leaves a row to continue from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_pass import ArchiveLedger, ArchiveProgress
from statesvc.addons.archive.file_names import LOG_FILES
from statesvc.database.queries import queries

_SQL = queries("statesvc.addons.archive", "month_ledger")
LOG_LEDGER = ArchiveLedger(_SQL)


class Month(NamedTuple):
    """A month of the log: everything that was recorded from `begins` up to but not including
    `ends`.
    """

    month: date
    begins: datetime
    ends: datetime

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMonth:
    """A complete pair of files. `counts`: entries by kind."""

    file_name: str
    sha256: bytes
    index_sha256: bytes
    size_bytes: int
    tree_size: int
    first_index: int
    last_index: int
    first_batch: int
    last_batch: int
    counts: Mapping[str, int]

    @property
    def digests(self) -> dict[str, bytes]:
        return _digests(self.file_name, self.sha256, self.index_sha256)


async def due_months(connection: AsyncConnection[Any], *, hot_months: int) -> list[Month]:
    cursor = await connection.execute(_SQL["due_months"], {"hot_months": hot_months})
    return [Month(*row) for row in await cursor.fetchall()]


async def begin_month(connection: AsyncConnection[Any], month: Month) -> ArchiveProgress:
    """Open the month's row, or find how far it came."""
    row = await (
        await connection.execute(_SQL["begin_month"], month._asdict(), binary=True)
    ).fetchone()
    if row is None:
        raise LookupError("an upsert answers with its row")
    file_name, sha256, index_sha256, verified = row
    return ArchiveProgress(
        {} if file_name is None else _digests(file_name, sha256, index_sha256), verified
    )


async def note_written(
    connection: AsyncConnection[Any], month: Month, written: WrittenMonth
) -> None:
    """Note that the files are complete and on the disk."""
    parameters = {
        name: getattr(written, name) for name in WrittenMonth.__slots__ if name != "counts"
    }
    await connection.execute(
        _SQL["note_written"], {"month": month.month, **parameters, **written.counts}
    )


async def give_notice(connection: AsyncConnection[Any], month: Month, sha256: bytes) -> datetime:
    """Have readers count the month as gone from now on; return from when on it may go."""
    row = await (
        await connection.execute(_SQL["give_notice"], {"month": month.month, "sha256": sha256})
    ).fetchone()
    if row is None:
        raise LookupError("a verified month has its row")
    goes_at: datetime = row[0]
    return goes_at


async def drop_month(
    connection: AsyncConnection[Any], month: Month, sha256: bytes, *, active_since: datetime
) -> int:
    """Take the entries out of the database; return how many shipments stay.

    Raises where a lock does not come at once.
    """
    parameters = {"month": month.month, "sha256": sha256, "active_since": active_since}
    row = await (await connection.execute(_SQL["drop_month"], parameters)).fetchone()
    return 0 if row is None else int(row[0])


async def clock(connection: AsyncConnection[Any], *, hot_months: int) -> tuple[datetime, datetime]:
    """Return the time, and since when a statement makes a shipment count as active."""
    row = await (await connection.execute(_SQL["clock"], {"hot_months": hot_months})).fetchone()
    if row is None:
        raise LookupError("a SELECT without FROM has one row")
    return row[0], row[1]


def _digests(file_name: str, sha256: bytes, index_sha256: bytes) -> dict[str, bytes]:
    return dict(zip(LOG_FILES.file_names(file_name), (sha256, index_sha256), strict=False))
