"""Checks of the archives of bodies and of the log: progress, delays, failures, missing files."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_identity import read_archive_failures, read_refusal
from statesvc.addons.archive.day import DayRecord, archives, due_days
from statesvc.addons.archive.file_names import index_of
from statesvc.addons.archive.month import due_months
from statesvc.background.duration import duration
from statesvc.files.archive_folder import (
    ArchivePath,
    archive_folder,
    file_fault,
    size_fault,
    size_of,
)
from statesvc.files.object_path import ObjectStoreError
from statesvc.health.finding import Finding, Urgency, fail, ok, warn
from statesvc.health.own_check import OwnCheck
from statesvc.log.log_months import LogMonth, months
from statesvc.settings.service_settings import Settings


async def _find(connection: AsyncConnection[Any]) -> list[Finding]:
    found = []
    if (refusal := await read_refusal(connection)) is not None:
        text = (
            f"for {duration(refusal.seconds)} nothing is archived and nothing leaves the database:"
            f" {refusal.why}"
        )
        found.append(
            Finding(urgency=Urgency.NOW, about="archive", text=text, page="ArchiveRefused")
        )
    for failure in await read_archive_failures(connection):
        text = (
            f"{failure.periods:,} {failure.unit} cannot be archived and stay in the database; the"
            f" last: {failure.why}"
        )
        found.append(
            Finding(urgency=Urgency.HUMAN, about="archive", text=text, page="ArchiveRefused")
        )
    return found


CHECK: Final = OwnCheck("archive", "refuses nothing", _find)


# Bytes of files that are read whole, the newest first; of the others only presence and size are
# checked.
READ_BYTES_MAX: Final = 1 << 30
LATE_DAYS: Final = 2
NAMED_MAX: Final = 5
_LOG: Final = "log archive"


async def check_archives(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    for check in (check_body_archive, check_log_archive):
        async for finding in check(connection, settings):
            yield finding


async def check_body_archive(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    try:
        async for finding in _body_archive(connection, settings):
            yield finding
    except ObjectStoreError as error:
        yield fail("archive", str(error))


async def _body_archive(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    ledger = await archives(connection)
    folder = archive_folder(settings)
    if folder is None:
        unset = "STATESVC_ARCHIVE_DIR is not set"
        if any(_is_retained(archive) for archive in ledger):
            yield fail("archive", f"bodies are archived, but {unset} here: they cannot be read")
        else:
            yield warn("archive", f"off: {unset}, so every body stays in the database for good")
        return
    if (refusal := await read_refusal(connection)) is not None:
        yield fail(
            "archive",
            f"since {refusal.since:%Y-%m-%d %H:%M} nothing is archived and nothing leaves the"
            f" database: {refusal.why}",
        )
    if lost := [
        archive for archive in ledger if archive.lost_at is not None and archive.expired_at is None
    ]:
        yield warn("archive", f"{len(lost)} days were given up as lost: {_named(lost)}")
    for finding in (
        *_progress(
            ledger, await due_days(connection, hot_days=settings.archive.hot_days + LATE_DAYS)
        ),
        *_failures(ledger),
    ):
        yield finding
    async for finding in _files(ledger, folder):
        yield finding


def _is_retained(archive: DayRecord) -> bool:
    return archive.dropped_at is not None and archive.expired_at is None and archive.lost_at is None


def _progress(ledger: Sequence[DayRecord], late: Sequence[date]) -> Iterator[Finding]:
    done = [archive.day for archive in ledger if archive.dropped_at is not None]
    if late:
        yield fail(
            "archive",
            f"{len(late)} days are overdue, the oldest is {late[0]}: is a worker running that has"
            " the folder?",
        )
    elif done:
        yield ok(
            "archive",
            f"up to {done[-1]}, {sum(_is_retained(archive) for archive in ledger)} days are stored",
        )
    else:
        yield ok("archive", "nothing was old enough yet")
    unopened = [archive for archive in ledger if _is_retained(archive) and archive.unopened]
    if unopened:
        count = sum(archive.unopened or 0 for archive in unopened)
        yield warn(
            "archive",
            f"{count} bodies did not open when they were archived ({_named(unopened)}); they are"
            " stored as they were",
        )


def _failures(ledger: Sequence[DayRecord]) -> Iterator[Finding]:
    """Report failures of days that are still in the database; later successes end a failure."""
    for archive in islice(
        (archive for archive in ledger if archive.failures and archive.dropped_at is None),
        NAMED_MAX,
    ):
        last = "" if archive.failed_at is None else f", last at {archive.failed_at:%Y-%m-%d %H:%M}"
        yield fail(
            "archive",
            f"{archive.day} failed {archive.failures} times{last}: {archive.failure}; its bodies"
            " are still in the database",
        )


async def _files(ledger: Sequence[DayRecord], folder: ArchivePath) -> AsyncIterator[Finding]:
    left, read, faulty = READ_BYTES_MAX, 0, 0
    retained = [archive for archive in reversed(ledger) if _is_retained(archive)]
    for archive in retained:
        if archive.file_name is None or archive.sha256 is None or archive.size_bytes is None:
            continue
        path = folder / archive.file_name
        fault = await asyncio.to_thread(size_fault, path, archive.size_bytes)
        if fault is None and archive.size_bytes <= left:
            left -= archive.size_bytes
            read += 1
            fault = await asyncio.to_thread(file_fault, path, archive.sha256)
        elif fault is None:
            fault = archive.fault
        if fault is not None:
            faulty += 1
            if faulty <= NAMED_MAX:
                yield fail("archive", f"{archive.file_name}: {fault}; bring it back from a backup")
    if faulty > NAMED_MAX:
        yield fail("archive", f"... and {faulty - NAMED_MAX} files more")
    if retained and not faulty:
        yield ok(
            "archive",
            f"{len(retained)} files are there, {read} of them read and as they were written",
        )


def _named(days: Sequence[DayRecord]) -> str:
    shown = ", ".join(archive.day.isoformat() for archive in days[:NAMED_MAX])
    return shown if len(days) <= NAMED_MAX else f"{shown} and {len(days) - NAMED_MAX} more"


async def check_log_archive(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    """Check the ledger and that the files are there, without reading them:
    `statesvc verify` does that.
    """
    try:
        async for finding in _log_archive(connection, settings):
            yield finding
    except ObjectStoreError as error:
        yield fail(_LOG, str(error))


async def _log_archive(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    ledger, folder = await months(connection), archive_folder(settings)
    gone = [month for month in ledger if month.dropped_at is not None and month.lost_at is None]
    hot_months = settings.archive.log_hot_months
    if gone and folder is None:
        yield fail(
            _LOG,
            f"{len(gone)} months are archived, but STATESVC_ARCHIVE_DIR is not set here: they"
            " cannot be read",
        )
        return
    for finding in _troubled_months(ledger):
        yield finding
    late = [] if hot_months is None else await due_months(connection, hot_months=hot_months + 1)
    if late:
        yield fail(
            _LOG,
            f"{len(late)} months are overdue, the oldest is {late[0]}: is a worker running that has"
            " the folder and pyarrow?",
        )
    faulty = 0
    for month in gone:
        if folder is None or month.file_name is None:
            continue
        path = folder / month.file_name
        fault = await asyncio.to_thread(_size_fault, path, month.size_bytes or 0)
        if fault is not None:
            faulty += 1
            yield fail(
                _LOG, f"{month.file_name} or its index: {fault}; bring it back from a backup"
            )
    if gone and not faulty:
        yield ok(
            _LOG,
            f"up to {gone[-1].month:%Y-%m}, {len(gone)} months; their files are there (`statesvc"
            " verify` reads them)",
        )
    elif not gone and hot_months is not None and not late:
        yield ok(_LOG, "nothing was old enough yet")
    if folder is None or hot_months is None:
        yield ok(
            _LOG,
            "off, the whole log stays in the database (STATESVC_ARCHIVE_DIR,"
            " STATESVC_ARCHIVE_LOG_HOT_MONTHS=1)",
        )


def _troubled_months(ledger: Sequence[LogMonth]) -> Iterator[Finding]:
    for month in ledger:
        if month.failures and month.dropped_at is None:
            yield fail(
                _LOG,
                f"{month.month:%Y-%m} failed {month.failures} times: {month.failure}; its entries"
                " are still in the database",
            )
        elif month.lost_at is not None:
            yield warn(
                _LOG,
                f"{month.month:%Y-%m} was given up as lost: `statesvc verify` says what is missing",
            )


def _size_fault(entries: ArchivePath, size_bytes: int) -> str | None:
    """Return the fault in the size of a month's entries and their index together."""
    index = index_of(entries)
    return size_fault(entries, size_bytes - (size_of(index) if index.exists() else 0))
