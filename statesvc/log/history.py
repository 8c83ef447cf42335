"""The way to archived entries for all readers of the log.

By shipment: `restore_shipments` copies a shipment's archived entries into the database before they
are read, so statements need not know of archives. The copies stay. By index: `entries` reads the
files.

Without archives this costs a small statement every few seconds; a shipment that began after the
newest archived month costs none. A separate, short-lived process reads the files, so no worker
holds pyarrow in memory.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from psycopg import AsyncConnection, Rollback

from events.identity.ids import webhook_id
from projections.notification_type import type_of_change
from statesvc.database.queries import queries
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.files.archive_folder import ArchivePath
from statesvc.log import entry_documents
from statesvc.log.archived_files import EntriesByKind, FileQuery, archived_files
from statesvc.log.entry_documents import FanoutDocument
from statesvc.log.entry_kinds import KINDS_BY_NAME
from statesvc.log.entry_row import LogEntry, entry_statements
from statesvc.log.json_compression import decompress_json
from statesvc.log.log_months import LogMonth, months

_SQL = queries("statesvc.log", "history")
_RESTORE: Final = entry_statements(_SQL["restore"])
# Age that the horizon may have: well below the notice that a month is given before it goes.
_AGAIN_SECONDS: Final = 10.0
_COLUMNS: Final = ("batch_id", "ordinal", "canonical", "sealed_part")
Connection = AsyncConnection[Any]
T = TypeVar("T")


@dataclass(slots=True)
class _Horizon:
    until: datetime | None = None
    end: int = 0
    read_at: float = float("-inf")


@dataclass(slots=True)
class History:
    """The files in `folder`.

    None: no archive here, and entries archived elsewhere cannot be read.
    """

    folder: ArchivePath | None
    _horizon: _Horizon = field(default_factory=_Horizon)

    async def restore_shipments(self, connection: Connection, shipments: Iterable[UUID]) -> None:
        """Restore all entries of these shipments to the database. Raises UnreadableArchiveError."""
        if await self._known(connection):
            await self._take_in(
                connection, await _rows(connection, "away", {"shipment_ids": list(set(shipments))})
            )

    async def restore_number(self, connection: Connection, carrier_id: str, number: str) -> None:
        if await self._known(connection):
            await self._take_in(
                connection,
                await _rows(
                    connection, "away_of_number", {"carrier_id": carrier_id, "number": number}
                ),
            )

    async def restore_period(
        self, connection: Connection, since: datetime, until: datetime
    ) -> None:
        """Restore all shipments with a status change in a period; a long period may have many."""
        await self._known(connection)
        if self._horizon.until is None or since >= self._horizon.until:
            return
        reaching = [
            each
            for each in await months(connection)
            if each.leaving_at is not None and each.begins < until and each.ends > since
        ]
        for month in reaching:
            shipments = await _in_child(
                archived_files().of_period, self.path_of(month.file_name), since, until
            )
            for begin in range(0, len(shipments), 500):
                await self.restore_shipments(connection, shipments[begin : begin + 500])

    async def reaches(self, connection: Connection, begin: int) -> bool:
        """Return whether an entry from this index on may be archived."""
        await self._known(connection)
        return begin < self._horizon.end

    async def entries(
        self, connection: Connection, begin: int, end: int
    ) -> list[tuple[LogEntry, datetime]]:
        """Return the archived entries from index `begin` up to but not including `end`,
        with when each was sealed.

        Raises UnreadableArchiveError.
        """
        found: dict[int, LogEntry] = {}
        for month in await _dropped(connection):
            if (month.first_index or 0) >= end or (month.last_index or 0) < begin:
                continue
            for entry in await asyncio.to_thread(
                archived_files().of_range, self.path_of(month.file_name), begin, end
            ):
                found[entry.index] = entry
        sealed = dict(await _rows(connection, "sealed_at", {"indexes": list(found)}))
        return [(found[index], sealed[index]) for index in sorted(found)]

    async def index_of(self, connection: Connection, carrier_id: str, event_id: str) -> int | None:
        """Return the index of an event with a packed dedupe key. Raises UnreadableArchiveError.

        Only the files know its shipment.
        """
        files = await _dropped(connection) if await self._known(connection) else []
        return (
            await _in_child(
                archived_files().of_event,
                [self.path_of(month.file_name) for month in reversed(files)],
                carrier_id,
                event_id,
            )
            if files
            else None
        )

    async def _known(self, connection: Connection) -> bool:
        """Return whether anything is archived, or about to be."""
        if time.monotonic() >= self._horizon.read_at + _AGAIN_SECONDS:
            read_at = time.monotonic()
            ((until, end),) = await _rows(connection, "horizon", {})
            self._horizon = _Horizon(until, end or 0, read_at)
        return self._horizon.until is not None

    async def _take_in(self, connection: Connection, away: Sequence[tuple[UUID, date]]) -> None:
        parameters = {
            "shipment_ids": [shipment for shipment, _ in away],
            "months": [month for _, month in away],
        }
        taken = not away
        while not taken:
            # before the transaction: a file may take longer than one may pause
            gone = await self._gone(connection, away)
            found = await _in_child(archived_files().of_shipments, gone) if gone else {}
            async with connection.transaction():
                # its lock keeps the months as they are, here or gone, until the commit
                await _rows(connection, "take_in", parameters)
                taken = await self._gone(connection, away) == gone
                if taken:
                    await _restore(connection, found)
                    await _restore_notifications(connection, {shipment for shipment, _ in away})
                else:
                    raise Rollback

    async def _gone(
        self, connection: Connection, away: Sequence[tuple[UUID, date]]
    ) -> list[FileQuery]:
        asked = {month for _, month in away}
        return [
            FileQuery(
                self.path_of(gone.file_name),
                tuple(shipment for shipment, own in away if own == gone.month),
            )
            for gone in await _dropped(connection)
            if gone.month in asked
        ]

    def path_of(self, file_name: str | None) -> ArchivePath:
        """Return where a file of the ledger is. Raises UnreadableArchiveError."""
        archived_files()
        if self.folder is None:
            raise UnreadableArchiveError(
                f"a part of the log is archived in {file_name}, and no STATESVC_ARCHIVE_DIR is set"
                " here"
            )
        return self.folder / (file_name or "")


async def _dropped(connection: Connection) -> list[LogMonth]:
    """Return the months whose entries are in their files alone, the oldest first."""
    return [month for month in await months(connection) if month.dropped_at is not None]


async def _restore(connection: Connection, found: EntriesByKind) -> None:
    for name, rows in found.items():
        columns = (*_COLUMNS, *KINDS_BY_NAME[name].columns)
        async with connection.cursor() as cursor:
            await cursor.executemany(
                _RESTORE[name], [dict(zip(columns, row, strict=True)) for row in rows]
            )


async def _restore_notifications(connection: Connection, shipments: Collection[UUID]) -> None:
    """Restore the notifications of these shipments' fan-outs from the entries."""
    rows = []
    for stored, created_at, occurred_at, offset, carrier_id, number in await _rows(
        connection, "fanned_out", {"shipment_ids": list(shipments)}
    ):
        fanout: FanoutDocument = entry_documents.fanout(decompress_json(stored))
        said = {
            "shipment_id": fanout.shipment_id,
            "sequence": fanout.sequence,
            "created_at": created_at,
            "occurred_at": occurred_at,
            "occurred_offset_seconds": offset,
            "type": type_of_change(fanout.from_status, fanout.to_status),
            "carrier_id": carrier_id,
            "tracking_number": number,
            "from_status": fanout.from_status,
            "to_status": fanout.to_status,
            "epoch": fanout.epoch,
        }
        event = bytes.fromhex(fanout.event)
        rows += [
            {**said, "subscription_id": each, "webhook_id": webhook_id(UUID(each), event)}
            for each in fanout.subscriptions
        ]
    async with connection.cursor() as cursor:
        await cursor.executemany(_SQL["restore_notification"], rows)


async def _rows(connection: Connection, query: str, parameters: dict[str, Any]) -> list[Any]:
    return await (await connection.execute(_SQL[query], parameters, binary=True)).fetchall()


async def _in_child(work: Callable[..., T], *arguments: object) -> T:
    """Run the work in a process that ends with it."""
    child = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    try:
        return await asyncio.get_running_loop().run_in_executor(child, work, *arguments)
    finally:
        # not waited for: its end does not concern the caller
        child.shutdown(wait=False)


_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
# An archived month leaves the tables by DDL, of which an older snapshot would see only a part. None
# leaves while this lock is held.
_PARTITIONS: Final = "LOCK TABLE statesvc.event IN ACCESS SHARE MODE"


async def take_snapshot(connection: AsyncConnection[Any]) -> None:
    """Run the first statements of the caller's transaction."""
    await connection.execute(_SNAPSHOT)
    await connection.execute(_PARTITIONS)
