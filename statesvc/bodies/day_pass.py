"""One pass of the archiver: write > verify > drop the days that are due, expire those whose months are over, check one old file.

Each step ends in the ledger before the next begins, so a crash anywhere leaves what the next pass goes on from.
"""

import asyncio
import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.bodies.archive_check import fault_of
from statesvc.bodies.archive_file import ArchiveFileError, ArchiveReader, BodyRecord
from statesvc.bodies.day import any_hold
from statesvc.bodies.day_files import day_name, leftovers
from statesvc.bodies.day_ledger import (
    ArchivedDay,
    begin_day,
    drop_day,
    due_days,
    expire_day,
    expiring_days,
    forget_written,
    longest_unchecked,
    newest_hold,
    note_checked,
    note_deleted,
    note_failure,
    note_verified,
    note_written,
    undeleted_days,
)
from statesvc.bodies.retained_bodies import held_among, prune_retained, retain_archived
from statesvc.bodies.verify_day import NotVerifiedError, verify_day
from statesvc.bodies.write_day import Pause, write_day
from statesvc.database.brief_locks import TRIES, until_let_go
from statesvc.database.sql_errors import Failure, failure
from statesvc.log.archive.folder import remove

log = structlog.get_logger()

CHECKED_DAYS: Final = 30
"""Every file is read again at least this often: one that nobody checks is lost without anyone's noticing."""
_RECORDS_AT_ONCE: Final = 500
Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyArchiving:
    """What a pass needs, and how long bodies are retained."""

    folder: Path
    keyring: Keyring
    hot_days: int
    keep_months: int
    pause: Pause
    drop_tries: int = TRIES


@dataclass(slots=True, kw_only=True)
class DayPassResult:
    """What a pass did. `busy`: verified days whose partition others would not let go."""

    archived: list[date] = field(default_factory=list)
    busy: list[date] = field(default_factory=list)
    failed: list[date] = field(default_factory=list)
    expired: list[date] = field(default_factory=list)
    faults: list[date] = field(default_factory=list)
    bodies: int = 0
    pruned: int = 0


async def archive_days(connection: Connection, archiving: BodyArchiving) -> DayPassResult:
    """Does what is due. The caller's session leads; the connection is in autocommit. Database errors pass through."""
    outcome = DayPassResult()
    for day in await due_days(connection, hot_days=archiving.hot_days):
        try:
            await _archive(connection, archiving, day, outcome)
        except OSError as error:
            await _failed(connection, day, f"the archive's folder: {errno.errorcode.get(error.errno or 0, 'error')}", outcome)
        except SealError as error:
            # not a body, but the key of a shipment: nothing is left out for that
            await _failed(connection, day, f"a shipment's key does not open: {error}", outcome)
        except NotVerifiedError as error:
            await forget_written(connection, day)
            await _failed(connection, day, str(error), outcome)
    await _expire(connection, archiving, outcome)
    outcome.pruned = await prune_retained(connection)
    await _check_oldest(connection, archiving, outcome)
    return outcome


async def _archive(connection: Connection, archiving: BodyArchiving, day: date, outcome: DayPassResult) -> None:
    folder = archiving.folder
    progress = await begin_day(connection, day)
    for path in await asyncio.to_thread(leftovers, folder, day_name(archiving.keyring, day), keep=progress.file_name):
        await asyncio.to_thread(remove, path)
    file_name, sha256 = progress.file_name, progress.sha256
    if file_name is None or sha256 is None:
        written = await write_day(connection, archiving.keyring, folder, day, pause=archiving.pause)
        await note_written(connection, day, written)
        file_name, sha256 = written.file_name, written.finished.sha256
    if not progress.verified:
        outcome.bodies += await verify_day(connection, archiving.keyring, folder / file_name, day, sha256=sha256, pause=archiving.pause)
        await note_verified(connection, day, sha256)
    elif fault := await fault_of(folder / file_name, sha256):
        # verified by a pass that did not come to the drop: the file may have suffered since
        raise NotVerifiedError(f"{file_name}: {fault}")
    await _drop(connection, archiving, day, sha256, outcome)


async def _drop(connection: Connection, archiving: BodyArchiving, day: date, sha256: bytes, outcome: DayPassResult) -> None:
    try:
        retained = await until_let_go(partial(drop_day, connection, day, sha256), tries=archiving.drop_tries)
    except psycopg.Error as error:
        if failure(error) is Failure.NOT_ARCHIVED:
            raise NotVerifiedError(error.diag.message_primary or "refused") from error
        raise
    if retained is None:
        outcome.busy.append(day)
        log.warning("archive_drop_busy", day=day.isoformat())
    else:
        outcome.archived.append(day)
        log.info("bodies_archived", day=day.isoformat(), retained=retained)


async def _expire(connection: Connection, archiving: BodyArchiving, outcome: DayPassResult) -> None:
    for archive in await expiring_days(connection, keep_months=archiving.keep_months):
        holds_known = await newest_hold(connection)
        try:
            await retain_held(connection, archiving, archive)
        except (OSError, ArchiveFileError) as error:
            # what a hold may stand on is in there: the file does not end before someone repaired it
            await _faulty(connection, archive.day, str(error) if isinstance(error, ArchiveFileError) else "it cannot be read", outcome)
            continue
        if await expire_day(connection, archive.day, holds_known=holds_known):
            outcome.expired.append(archive.day)
    for archive in await undeleted_days(connection):
        await asyncio.to_thread(remove, archiving.folder / archive.file_name)
        await note_deleted(connection, archive.day)


async def retain_held(connection: Connection, archiving: BodyArchiving, archive: ArchivedDay) -> None:
    """Copies out what a legal hold stands on: it outlives the file."""
    if not await any_hold(connection):
        return
    with await asyncio.to_thread(ArchiveReader, archiving.folder / archive.file_name) as reader:
        records = iter(reader)
        while batch := await asyncio.to_thread(_some, records):
            held = await held_among(connection, archive.day, batch)
            for record in batch:
                if record.message_id in held:
                    await retain_archived(connection, record)
            await archiving.pause()


async def _check_oldest(connection: Connection, archiving: BodyArchiving, outcome: DayPassResult) -> None:
    """Checks the file that was not checked for the longest time."""
    found = await longest_unchecked(connection, days=CHECKED_DAYS)
    if found is None:
        return
    archive, sha256 = found
    fault = await fault_of(archiving.folder / archive.file_name, sha256)
    if fault is None:
        await note_checked(connection, archive.day, fault=None)
    else:
        await _faulty(connection, archive.day, fault, outcome)


def _some(records: Iterator[BodyRecord]) -> list[BodyRecord]:
    return list(islice(records, _RECORDS_AT_ONCE))


async def _failed(connection: Connection, day: date, why: str, outcome: DayPassResult) -> None:
    outcome.failed.append(day)
    await note_failure(connection, day, why)
    log.error("archive_failed", day=day.isoformat(), why=why)


async def _faulty(connection: Connection, day: date, why: str, outcome: DayPassResult) -> None:
    outcome.faults.append(day)
    await note_checked(connection, day, fault=why)
    log.error("archive_faulty", day=day.isoformat(), why=why)
