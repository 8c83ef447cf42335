"""One pass of the archiver of the log: write > compare > give notice > take out of the database, for each month that is due.

Each step ends in the ledger before the next begins, so a crash anywhere leaves what the next pass goes on from.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.database.brief_locks import TRIES, until_let_go
from statesvc.database.sql_errors import Failure, failure
from statesvc.log.actions import record_action
from statesvc.log.archive.compare_files import compare_month
from statesvc.log.archive.file_names import fault_of, index_of, leftovers, month_name
from statesvc.log.archive.folder import remove
from statesvc.log.archive.log_archive_errors import LogArchiveError, NotSoundError
from statesvc.log.archive.month import MonthExtent, NotSealedError, extent_of
from statesvc.log.archive.month_ledger import (
    ArchiveMonth,
    Month,
    begin_month,
    clock,
    drop_month,
    due_months,
    forget_written,
    give_notice,
    note_failure,
    note_verified,
    note_written,
)
from statesvc.log.archive.write_month import write_month

log = structlog.get_logger()

Connection = AsyncConnection[Any]
Wait = Callable[[float], Awaitable[None]]
"""Until the notice of a month is over, in seconds; may return early, then the month goes in a later pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogArchiving:
    """What a pass needs, and how many whole months stay in the database."""

    folder: Path
    keyring: Keyring
    hot_months: int
    wait: Wait
    drop_tries: int = TRIES


@dataclass(slots=True, kw_only=True)
class MonthPassResult:
    """What a pass did. `leaving`: verified months whose notice is not over; `busy`: whose tables others would not let go."""

    archived: list[date] = field(default_factory=list)
    leaving: list[date] = field(default_factory=list)
    busy: list[date] = field(default_factory=list)
    waiting: list[date] = field(default_factory=list)
    failed: list[date] = field(default_factory=list)
    entries: int = 0
    stayed: int = 0
    """Shipments that stay in the database."""


async def archive_months(connection: Connection, archiving: LogArchiving) -> MonthPassResult:
    """Does what is due. The caller's session leads; the connection is in autocommit. Database errors pass through."""
    outcome = MonthPassResult()
    for month in await due_months(connection, hot_months=archiving.hot_months):
        try:
            await _archive(connection, archiving, month, outcome)
        except NotSealedError as error:
            outcome.waiting.append(month.month)
            log.warning("log_archive_waits", month=str(month), why=str(error))
            return outcome
        except OSError as error:
            await _failed(connection, month, f"the archive's folder: {errno.errorcode.get(error.errno or 0, 'error')}", outcome)
        except LogArchiveError as error:
            await forget_written(connection, month)
            await _failed(connection, month, str(error), outcome)
    return outcome


async def _archive(connection: Connection, archiving: LogArchiving, month: Month, outcome: MonthPassResult) -> None:
    extent = await extent_of(connection, month)
    if extent is None:
        return
    progress = await begin_month(connection, month)
    begin = month_name(archiving.keyring, month)
    for path in await asyncio.to_thread(leftovers, archiving.folder, begin, keep=progress.file_name):
        await asyncio.to_thread(remove, path)
    sha256 = await _complete(connection, archiving, extent, progress, outcome)
    goes_at = await give_notice(connection, month, sha256)
    if not await _noticed(connection, archiving, goes_at):
        outcome.leaving.append(month.month)
        return
    await _drop(connection, archiving, month, sha256, outcome)


async def _complete(
    connection: Connection, archiving: LogArchiving, extent: MonthExtent, progress: ArchiveMonth, outcome: MonthPassResult
) -> bytes:
    """Files that were compared with the month; the digest of the entries'."""
    month, folder = extent.month, archiving.folder
    file_name, sha256, index_sha256 = progress[:3]
    if file_name is None or sha256 is None or index_sha256 is None:
        written = await write_month(connection, folder, month_name(archiving.keyring, month), extent)
        await note_written(connection, month, written)
        file_name, sha256, index_sha256 = written.file_name, written.sha256, written.index_sha256
    path = folder / file_name
    if not progress.verified:
        outcome.entries += await compare_month(connection, path, extent, sha256=sha256, index_sha256=index_sha256)
        await note_verified(connection, month, sha256)
    else:
        # compared by a pass that did not come to the end: the files may have suffered since
        for file, digest in ((path, sha256), (index_of(path), index_sha256)):
            if fault := await asyncio.to_thread(fault_of, file, digest):
                raise NotSoundError(f"{file.name}: {fault}")
    return sha256


async def _noticed(connection: Connection, archiving: LogArchiving, goes_at: datetime) -> bool:
    now, _ = await clock(connection, hot_months=archiving.hot_months)
    if now < goes_at:
        await archiving.wait((goes_at - now).total_seconds())
        now, _ = await clock(connection, hot_months=archiving.hot_months)
    return now >= goes_at


async def _drop(connection: Connection, archiving: LogArchiving, month: Month, sha256: bytes, outcome: MonthPassResult) -> None:
    _, active_since = await clock(connection, hot_months=archiving.hot_months)

    async def swap() -> int:
        async with connection.transaction():
            details = {"sha256": sha256.hex()}
            await record_action(connection, actor="archiver", verb="log.archive", target=f"log {month}", details=details)
            return await drop_month(connection, month, sha256, active_since=active_since)

    try:
        stayed = await until_let_go(swap, tries=archiving.drop_tries)
    except psycopg.Error as error:
        if failure(error) is Failure.NOT_ARCHIVED:
            raise NotSoundError(error.diag.message_primary or "refused") from error
        raise
    if stayed is None:
        outcome.busy.append(month.month)
        log.warning("log_archive_busy", month=str(month))
    else:
        outcome.archived.append(month.month)
        outcome.stayed += stayed
        log.info("log_archived", month=str(month), stayed=stayed)


async def _failed(connection: Connection, month: Month, why: str, outcome: MonthPassResult) -> None:
    outcome.failed.append(month.month)
    await note_failure(connection, month, why)
    log.error("log_archive_failed", month=str(month), why=why)
