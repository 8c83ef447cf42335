"""A month of the log: its row in the ledger, its entries in the order of the log, its dedupe keys.

Every step of the ledger is a statement, so a crash leaves a row to continue from.

Dedupe keys of archived shipments are packed into eight bytes each in the shipment's own row. A pass
walks all keys in order, in short transactions, each of which packs and deletes the same keys
(functions/packed_keys.sql in `migrations/`), so a crash loses no key, and the next pass begins
again. Packed keys leave the walk.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_pass import ArchiveLedger, ArchiveProgress
from statesvc.addons.archive.file_names import LOG_FILES
from statesvc.database.queries import queries
from statesvc.log.checkpoints import SignedHead, covering_head
from statesvc.log.entry_kinds import ENTRY_KINDS
from statesvc.log.entry_row import LogEntry, entry_statements

_SQL = queries("statesvc.addons.archive", "month")
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


_BOUNDS: Final = entry_statements(_SQL["batch_bounds"])
_ENTRIES: Final = entry_statements(_SQL["entries"])
# Indexes in a range and so in a row group: some 10 MB.
RANGE_INDEXES: Final = 8_192
_INDEX: Final = attrgetter("index")


class NotSealedError(RuntimeError):
    """Something of the month has no place in the signed log yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthExtent:
    """Extent of a month in the log.

    `low` and `high` bound the first indexes of its batches; `head` covers them all.
    """

    month: Month
    first_batch: int
    last_batch: int
    low: int
    high: int
    counts: Mapping[str, int]
    head: SignedHead


async def extent_of(connection: AsyncConnection[Any], month: Month) -> MonthExtent | None:
    """Return the month's extent; None: it has no entries. Raises NotSealedError."""
    batches: list[int] = []
    counts: dict[str, int] = {}
    for name, statement in _BOUNDS.items():
        async for low, high, count in await connection.execute(statement, month._asdict()):
            batches += [low, high] if count else []
            counts[name] = count
    if not batches:
        return None
    first_batch, last_batch = min(batches), max(batches)
    parameters = {"low": first_batch, "high": last_batch, "ends": month.ends}
    low, high, waiting = await (
        await connection.execute(_SQL["index_bounds"], parameters)
    ).fetchone() or (None, None, True)
    if low is None or high is None or waiting:
        raise NotSealedError(f"some entries of {month} are not sealed: is a sealer running?")
    head = await covering_head(connection, high)
    if head is None:
        raise NotSealedError(
            f"no published checkpoint covers all entries of {month}: is a sealer running?"
        )
    return MonthExtent(
        month=month,
        first_batch=first_batch,
        last_batch=last_batch,
        low=low,
        high=high,
        counts=counts,
        head=head,
    )


async def entry_ranges(
    connection: AsyncConnection[Any], extent: MonthExtent
) -> AsyncIterator[list[LogEntry]]:
    """Yield all entries of the month; none of the lists is empty."""
    for low in range(extent.low, extent.high, RANGE_INDEXES):
        bounds = {
            "low": low,
            "high": low + RANGE_INDEXES,
            "begins": extent.month.begins,
            "ends": extent.month.ends,
        }
        entries: list[LogEntry] = []
        for kind in ENTRY_KINDS:
            cursor = await connection.execute(_ENTRIES[kind.name], bounds, binary=True)
            async for index, *row in cursor:
                entries.append(LogEntry.of(kind, index, row))
        if entries:
            yield sorted(entries, key=_INDEX)


_KEYS_AT_ONCE: Final = 20_000


async def is_packing_due(connection: AsyncConnection[Any]) -> bool:
    """Return whether keys of an archived month are still unpacked."""
    return bool(await _rows(connection, "unpacked"))


async def pack_keys(connection: AsyncConnection[Any], *, keys_at_once: int = _KEYS_AT_ONCE) -> int:
    """Run a pass; return the number of packed keys.

    The connection is in autocommit, and its session leads the archive of the log.
    """
    months = [month for (month,) in await _rows(connection, "unpacked")]
    carrier_id, event_id, done = "", "", 0
    while True:
        ((last_carrier, last_event, packed),) = await _rows(
            connection, "pack_keys", carrier_id=carrier_id, event_id=event_id, limit=keys_at_once
        )
        if last_carrier is None:
            break
        carrier_id, event_id, done = last_carrier, last_event, done + packed
    await connection.execute(_SQL["note_packed"], {"months": months})
    return done


async def _rows(connection: AsyncConnection[Any], name: str, **parameters: object) -> list[Any]:
    return await (await connection.execute(_SQL[name], parameters)).fetchall()
