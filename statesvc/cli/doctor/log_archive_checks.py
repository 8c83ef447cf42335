"""What doctor says about the archive of the log: how far it came, what is late or failed, which files are missing."""

from collections.abc import AsyncIterator
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.cli.doctor.finding import Finding, bad, good
from statesvc.log.archive.file_names import index_of
from statesvc.log.archive.folder import archive_folder, size_fault
from statesvc.log.archive.month_ledger import due_months, months
from statesvc.settings.service_settings import Settings

_PART: Final = "log archive"


async def examine_log_archive(connection: AsyncConnection[Any], settings: Settings) -> AsyncIterator[Finding]:
    """Reads the ledger and looks at the files without reading them: `statesvc verify` does that."""
    ledger, folder = await months(connection), archive_folder(settings)
    gone = [month for month in ledger if month.dropped_at is not None]
    hot_months = settings.archive.log_hot_months
    if gone and folder is None:
        yield bad(_PART, f"{len(gone)} months are archived, but STATESVC_ARCHIVE_DIR is not set here: they cannot be read")
        return
    for month in ledger:
        if month.failures and month.dropped_at is None:
            yield bad(_PART, f"{month.month:%Y-%m} failed {month.failures} times: {month.failure}; its entries are still in the database")
    late = [] if hot_months is None else await due_months(connection, hot_months=hot_months + 1)
    if late:
        yield bad(_PART, f"{len(late)} months are overdue, the oldest is {late[0]}: is a worker running that has the folder and pyarrow?")
    faulty = 0
    for month in gone:
        if folder is None or month.file_name is None:
            continue
        path = folder / month.file_name
        size = index_of(path).stat().st_size if index_of(path).exists() else 0
        fault = size_fault(path, (month.size_bytes or 0) - size)
        if fault is not None:
            faulty += 1
            yield bad(_PART, f"{month.file_name} or its index: {fault}; bring it back from a backup")
    if gone and not faulty:
        yield good(_PART, f"up to {gone[-1].month:%Y-%m}, {len(gone)} months; their files are there (`statesvc verify` reads them)")
    elif not gone and hot_months is not None and not late:
        yield good(_PART, "nothing was old enough yet")
