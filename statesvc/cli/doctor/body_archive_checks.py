"""What doctor says about the archive of bodies: how far it came, what failed, which files are missing or altered."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.bodies.day_ledger import DayRecord, archives, due_days
from statesvc.cli.doctor.finding import Finding, bad, good, warning
from statesvc.log.archive.folder import archive_folder, file_fault, size_fault
from statesvc.settings.service_settings import Settings

READ_BYTES_MAX: Final = 1 << 30
"""Files are read whole up to so many bytes together, the newest first; of the others it is seen that they are there, and how long."""
LATE_DAYS: Final = 2
NAMED_MAX: Final = 5


async def examine_archive(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    """Reads the ledger and the files."""
    ledger = await archives(connection)
    folder = archive_folder(settings)
    if folder is None:
        told = "STATESVC_ARCHIVE_DIR is not set"
        if any(_is_kept(archive) for archive in ledger):
            yield bad("archive", f"bodies are archived, but {told} here: they cannot be read")
        else:
            yield warning("archive", f"off: {told}, so every body stays in the database for good")
        return
    for finding in (*_progress(ledger, await due_days(connection, hot_days=settings.archive.hot_days + LATE_DAYS)), *_failures(ledger)):
        yield finding
    async for finding in _files(ledger, folder):
        yield finding


def _is_kept(archive: DayRecord) -> bool:
    return archive.dropped_at is not None and archive.expired_at is None


def _progress(ledger: Sequence[DayRecord], late: Sequence[date]) -> Iterator[Finding]:
    done = [archive.day for archive in ledger if archive.dropped_at is not None]
    if late:
        yield bad("archive", f"{len(late)} days are overdue, the oldest is {late[0]}: is a worker running that has the folder?")
    elif done:
        yield good("archive", f"up to {done[-1]}, {sum(_is_kept(archive) for archive in ledger)} days are kept")
    else:
        yield good("archive", "nothing was old enough yet")
    unopened = [archive for archive in ledger if _is_kept(archive) and archive.unopened]
    if unopened:
        count = sum(archive.unopened or 0 for archive in unopened)
        yield warning("archive", f"{count} bodies did not open when they were archived ({_named(unopened)}); they are kept as they were")


def _failures(ledger: Sequence[DayRecord]) -> Iterator[Finding]:
    """Of days that are still in the database; what failed and was done later is over."""
    for archive in islice((archive for archive in ledger if archive.failures and archive.dropped_at is None), NAMED_MAX):
        last = "" if archive.failed_at is None else f", last at {archive.failed_at:%Y-%m-%d %H:%M}"
        yield bad(
            "archive", f"{archive.day} failed {archive.failures} times{last}: {archive.failure}; its bodies are still in the database"
        )


async def _files(ledger: Sequence[DayRecord], folder: Path) -> AsyncIterator[Finding]:
    left, read, faulty = READ_BYTES_MAX, 0, 0
    kept = [archive for archive in reversed(ledger) if _is_kept(archive)]
    for archive in kept:
        if archive.file_name is None or archive.sha256 is None or archive.size_bytes is None:
            continue
        path = folder / archive.file_name
        fault = size_fault(path, archive.size_bytes)
        if fault is None and archive.size_bytes <= left:
            left -= archive.size_bytes
            read += 1
            fault = await asyncio.to_thread(file_fault, path, archive.sha256)
        elif fault is None:
            fault = archive.fault
        if fault is not None:
            faulty += 1
            if faulty <= NAMED_MAX:
                yield bad("archive", f"{archive.file_name}: {fault}; bring it back from a backup")
    if faulty > NAMED_MAX:
        yield bad("archive", f"... and {faulty - NAMED_MAX} files more")
    if kept and not faulty:
        yield good("archive", f"{len(kept)} files are there, {read} of them read and as they were written")


def _named(days: Sequence[DayRecord]) -> str:
    shown = ", ".join(archive.day.isoformat() for archive in days[:NAMED_MAX])
    return shown if len(days) <= NAMED_MAX else f"{shown} and {len(days) - NAMED_MAX} more"
