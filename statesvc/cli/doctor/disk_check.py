"""Check of how long the disk lasts, where this machine sees it; `statesvc storage` says what fills it."""

from collections.abc import AsyncIterator
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.cli.storage import free_bytes, hot_time
from statesvc.health.finding import Finding, fail, warn
from statesvc.maintenance.storage_forecast import days_left
from statesvc.maintenance.table_sizes import read_stored_data
from statesvc.settings.service_settings import Settings

_WARN_DAYS: Final = 60
_FAIL_DAYS: Final = 7


async def check_disk_lasts(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    """Check the disk, except another machine's, and for a log that is younger than a day."""
    free = free_bytes(settings)
    if free is None:
        return
    stored = await read_stored_data(connection)
    if stored.entries_per_day is None:
        return
    finding = judge(days_left(stored.tables, hot_time(settings), free_bytes=free))
    if finding is not None:
        yield finding


def judge(left: int | None) -> Finding | None:
    """Judge whole days; None: more than ten years."""
    if left is None or left >= _WARN_DAYS:
        return None
    text = f"full in {left} days at what the last week took in: `statesvc storage` says what fills it and what to change"
    return fail("disk", text) if left < _FAIL_DAYS else warn("disk", text)
