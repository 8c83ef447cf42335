"""Checks of the archives of bodies and of the log: progress, delays, failures, missing files."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_identity import (
    SQL,
    ArchiveRefusedError,
    archived_files,
    ledger_faults,
)
from statesvc.addons.archive.day import DayRecord, archives, due_days
from statesvc.addons.archive.month import Month, due_months
from statesvc.background.duration import duration
from statesvc.files.archive_folder import archive_folder, file_sizes
from statesvc.health.finding import Finding, Urgency, fail, ok, warn
from statesvc.health.status_parts import OwnCheck
from statesvc.log.log_months import LogMonth, months
from statesvc.settings.service_settings import Settings


async def _find(connection: AsyncConnection[Any]) -> list[Finding]:
    found = []
    for why, seconds in await _rows(connection, "read_refusal"):
        text = f"for {duration(seconds)} nothing is archived and nothing leaves the database: {why}"
        found.append(
            Finding(urgency=Urgency.NOW, about="archive", text=text, page="ArchiveRefused")
        )
    for unit, periods, why in await _rows(connection, "read_failures"):
        text = f"{periods:,} {unit} cannot be archived and stay in the database; the last: {why}"
        found.append(
            Finding(urgency=Urgency.HUMAN, about="archive", text=text, page="ArchiveRefused")
        )
    return found


async def _rows(connection: AsyncConnection[Any], name: str) -> list[tuple[Any, ...]]:
    return await (await connection.execute(SQL[name])).fetchall()


CHECK: Final = OwnCheck("archive", "refuses nothing", _find)

LATE_DAYS: Final = 2
NAMED_MAX: Final = 5


async def check_archives(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    """Check the ledgers, and that their files are there; `statesvc archive verify` reads them."""
    files, folder = await archived_files(connection), archive_folder(settings)
    if folder is None:
        unset = "STATESVC_ARCHIVE_DIR is not set"
        if files:
            yield fail(
                "archive", f"{len(files)} files are archived, but {unset} here: they can't be read"
            )
        else:
            yield warn("archive", f"off: {unset}, so everything stays in the database for good")
        return
    for finding in await _find(connection):
        yield finding
    for unit, late in await _late(connection, settings):
        yield fail(
            "archive",
            f"{len(late)} {unit} are overdue, the oldest is {late[0]}: is a worker running that has"
            " the folder and pyarrow?",
        )
    days = [day for day in await archives(connection) if day.expired_at is None]
    for finding in _losses(days, await months(connection)):
        yield finding
    try:
        sizes = await asyncio.to_thread(file_sizes, folder)
    except OSError as error:
        yield fail("archive", str(ArchiveRefusedError.of(folder, error)))
        return
    names = {file.name for file in files}
    # those of another content were found so at their last reading
    altered = {day.file_name: day.fault for day in days if day.fault and day.file_name in names}
    for finding in _files(len(files), altered | ledger_faults(files, sizes)):
        yield finding
    if settings.archive.log_hot_months is None:
        yield ok(
            "archive", "the whole log stays in the database (STATESVC_ARCHIVE_LOG_HOT_MONTHS=1)"
        )


async def _late(
    connection: AsyncConnection[Any], settings: Settings
) -> Iterator[tuple[str, Sequence[date | Month]]]:
    hot_months = settings.archive.log_hot_months
    late: Mapping[str, Sequence[date | Month]] = {
        "days": await due_days(connection, hot_days=settings.archive.hot_days + LATE_DAYS),
        "months": []
        if hot_months is None
        else await due_months(connection, hot_months=hot_months + 1),
    }
    return ((unit, periods) for unit, periods in late.items() if periods)


def _losses(days: Sequence[DayRecord], log_months: Sequence[LogMonth]) -> Iterator[Finding]:
    lost = [
        *(day.day.isoformat() for day in days if day.lost_at is not None),
        *(f"{one.month:%Y-%m}" for one in log_months if one.lost_at is not None),
    ]
    if lost:
        yield warn("archive", f"given up as lost: {_named(lost)}")
    if unopened := [day for day in days if day.dropped_at is not None and day.unopened]:
        yield warn(
            "archive",
            f"{sum(day.unopened or 0 for day in unopened)} bodies did not open when they were"
            f" archived ({_named([day.day.isoformat() for day in unopened])}); they are stored as"
            " they were",
        )


def _files(count: int, faults: Mapping[str, str]) -> Iterator[Finding]:
    for name, fault in islice(faults.items(), NAMED_MAX):
        yield fail("archive", f"{name}: {fault}; bring it back from a backup")
    if len(faults) > NAMED_MAX:
        yield fail("archive", f"... and {len(faults) - NAMED_MAX} files more")
    if not count:
        yield ok("archive", "nothing was old enough yet")
    elif not faults:
        yield ok("archive", f"{count} files are there; `statesvc archive verify` reads them")


def _named(periods: Sequence[str]) -> str:
    shown = ", ".join(periods[:NAMED_MAX])
    return shown if len(periods) <= NAMED_MAX else f"{shown} and {len(periods) - NAMED_MAX} more"
