"""The entries of a month in the database, in the order of the log, range by range."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.archive.month_ledger import Month
from statesvc.database.queries import queries
from statesvc.log.checkpoints import SignedHead, covering_head
from statesvc.log.entry_kinds import ENTRY_KINDS
from statesvc.log.entry_row import LogEntry
from statesvc.log.entry_statements import entry_statements

_SQL = queries("statesvc.addons.archive", "month")
_BOUNDS: Final = entry_statements(_SQL["batch_bounds"])
_ENTRIES: Final = entry_statements(_SQL["entries"])
RANGE_INDEXES: Final = 8_192
"""Indexes in a range and so in a row group: some 10 MB."""
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
