"""A pass of the log archiver for each due month: write > verify > notice > leave the database.

Then the dedupe keys of shipments that left are packed.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.addons.archive.archive_identity import ArchiveIdentity
from statesvc.addons.archive.archive_pass import (
    TRIES,
    ArchivePass,
    ArchivePassResult,
    ArchiveProgress,
    NotVerifiedError,
    run_in_archive,
)
from statesvc.addons.archive.file_names import LOG_FILES
from statesvc.addons.archive.month import (
    LOG_LEDGER,
    MonthExtent,
    NotSealedError,
    begin_month,
    clock,
    drop_month,
    due_months,
    extent_of,
    give_notice,
    is_packing_due,
    note_written,
    pack_keys,
)
from statesvc.addons.archive.month_files import compare_month, write_month
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.object_path import ObjectStoreError
from statesvc.log.actions import record_action

log = structlog.get_logger()

Connection = AsyncConnection[Any]
# Until the notice of a month is over, in seconds; may return early, then the month goes in a later
# pass.
Wait = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogArchiving:
    """Dependencies of a pass, and how many whole months stay in the database."""

    folder: ArchivePath
    keyring: Keyring
    hot_months: int
    wait: Wait
    drop_tries: int = TRIES


@dataclass(slots=True, kw_only=True)
class MonthPassResult(ArchivePassResult):
    """`leaving`: verified months in their notice; `waiting`: months that are not wholly sealed."""

    leaving: list[date] = field(default_factory=list)
    waiting: list[date] = field(default_factory=list)
    entries: int = 0
    stayed: int = 0
    packed: int = 0
    """Dedupe keys of shipments that left."""


async def archive_months(connection: Connection, archiving: LogArchiving) -> MonthPassResult:
    """Archive the months that are due.

    The caller's session leads; the connection is in autocommit. Database errors pass through.
    """
    identity, result = (
        ArchiveIdentity(connection, archiving.folder, archiving.keyring),
        MonthPassResult(),
    )
    await run_in_archive(identity, result, partial(_archive_months, identity, archiving, result))
    return result


async def _archive_months(
    identity: ArchiveIdentity, archiving: LogArchiving, result: MonthPassResult
) -> None:
    connection = identity.connection
    steps = _MonthPass(
        identity=identity,
        ledger=LOG_LEDGER,
        names=LOG_FILES,
        drop_tries=archiving.drop_tries,
        hot_months=archiving.hot_months,
        wait=archiving.wait,
        result=result,
    )
    for month in await due_months(connection, hot_months=archiving.hot_months):
        try:
            extent = await extent_of(connection, month)
        except NotSealedError as error:
            result.waiting.append(month.month)
            log.warning("log_archive_waits", month=str(month), why=str(error))
            # months leave in their order: a later one must not be gone while an earlier is still
            # there
            return
        if extent is not None:
            await steps.archive(extent, first=month.month, name=str(month))
    # after the months: only a shipment whose entries have left may lose its keys from the table
    if await is_packing_due(connection):
        result.packed = await pack_keys(connection)


@dataclass(frozen=True, slots=True, kw_only=True)
class _MonthPass(ArchivePass[MonthExtent]):
    hot_months: int
    wait: Wait
    result: MonthPassResult

    async def begin(self, period: MonthExtent) -> ArchiveProgress:
        return await begin_month(self.connection, period.month)

    async def write(self, period: MonthExtent, prefix: str) -> Mapping[str, bytes]:
        written = await write_month(self.connection, self.folder, prefix, period)
        await note_written(self.connection, period.month, written)
        return written.digests

    async def verify(self, period: MonthExtent, path: ArchivePath) -> None:
        try:
            self.result.entries += await compare_month(self.connection, path, period)
        # the store did not answer: that says nothing about the file
        except ObjectStoreError:
            raise
        except UnreadableArchiveError as error:
            raise NotVerifiedError(str(error)) from error

    async def may_leave(self, period: MonthExtent, sha256: bytes) -> bool:
        """Return whether it was given notice for a minute: readers count it as gone
        from the first second on.
        """
        goes_at = await give_notice(self.connection, period.month, sha256)
        now, _ = await clock(self.connection, hot_months=self.hot_months)
        if now < goes_at:
            await self.wait((goes_at - now).total_seconds())
            # the database's clock again: the wait was by this process's
            now, _ = await clock(self.connection, hot_months=self.hot_months)
        if now < goes_at:
            self.result.leaving.append(period.month.month)
        return now >= goes_at

    async def leave(self, period: MonthExtent, sha256: bytes) -> int:
        _, active_since = await clock(self.connection, hot_months=self.hot_months)
        # the entry and the DDL commit together: no month is gone without a word in the log
        async with self.connection.transaction():
            details = {"sha256": sha256.hex()}
            await record_action(
                self.connection,
                actor="archiver",
                verb="log.archive",
                target=f"log {period.month}",
                details=details,
            )
            stayed = await drop_month(
                self.connection, period.month, sha256, active_since=active_since
            )
        self.result.stayed += stayed
        return stayed
