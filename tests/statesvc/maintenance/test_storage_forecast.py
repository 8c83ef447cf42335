"""Forecast of how long a disk lasts, by arithmetic; and that every table has an end."""

from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.maintenance.storage_forecast import (
    DAYS_MAX,
    LEAVING,
    Hot,
    Leaving,
    TableSize,
    days_left,
    size_text,
    what_to_change,
)

GB = 10**9
STAYS = Hot(log_months=None, body_days=None)
LOG = TableSize(
    name="event",
    size_bytes=30 * GB,
    bytes_per_day=10.0 * GB,
    held_days=3,
    leaving=Leaving.LOG_ARCHIVE,
)
BODY = TableSize(
    name="body",
    size_bytes=15 * GB,
    bytes_per_day=5.0 * GB,
    held_days=3,
    leaving=Leaving.BODY_ARCHIVE,
)
KEYS = TableSize(
    name="event_key", size_bytes=3 * GB, bytes_per_day=1.0 * GB, held_days=3, leaving=Leaving.NEVER
)
INBOX = TableSize(
    name="inbox", size_bytes=GB, bytes_per_day=1.0 * GB, held_days=3, leaving=Leaving.SETTLED
)


async def test_every_table_has_an_end(database: Any) -> None:
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        rows = await connection.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p')"
            " AND NOT c.relispartition AND c.relname <> 'test_clock'"
        )
        tables = {name for (name,) in await rows.fetchall()}
    assert tables == set(LEAVING), "say in LEAVING what ends the rows of each table"


def test_without_an_archive_all_grows_for_ever() -> None:
    assert days_left([LOG, BODY, KEYS, INBOX], STAYS, free_bytes=160 * GB) == 10


def test_what_is_archived_grows_until_its_oldest_rows_leave() -> None:
    hot = Hot(log_months=1, body_days=14)
    assert BODY.growth(400, hot) == 12 * BODY.bytes_per_day
    assert LOG.growth(400, hot) == pytest.approx(57.8 * LOG.bytes_per_day)
    assert LOG.growth(10, hot) == 10 * LOG.bytes_per_day
    assert days_left([LOG, BODY], hot, free_bytes=700 * GB) is None
    assert days_left([LOG, BODY, KEYS], hot, free_bytes=700 * GB) == 62
    assert days_left([INBOX], hot, free_bytes=0) is None


def test_verdicts_leave_with_the_files_of_their_bodies() -> None:
    message = TableSize(
        name="message",
        size_bytes=GB,
        bytes_per_day=1.0 * GB,
        held_days=3,
        leaving=LEAVING["message"],
    )
    assert message.growth(400, Hot(log_months=1, body_days=14)) == 400 * GB
    assert message.growth(400, Hot(log_months=1, body_days=14, file_months=6)) == pytest.approx(
        (10 * 30.4 - 3) * GB
    )
    (advice,) = what_to_change(
        [message], Hot(log_months=1, body_days=3, file_months=25), free_bytes=350 * GB, days=400
    )
    assert advice.startswith("STATESVC_ARCHIVE_KEEP_MONTHS=6")


def test_what_helps_most_is_said_first_and_what_cannot_be_helped_too() -> None:
    log, bodies, disk = what_to_change([LOG, BODY, KEYS], STAYS, free_bytes=500 * GB, days=400)
    assert log.startswith("STATESVC_ARCHIVE_LOG_HOT_MONTHS=1")
    assert bodies.startswith("STATESVC_ARCHIVE_DIR")
    assert disk.startswith("a disk with 983 GB free instead of 500 GB")
    assert what_to_change([KEYS], STAYS, free_bytes=500 * GB, days=400) == []
    assert days_left([KEYS], STAYS, free_bytes=5000 * GB) is None
    assert KEYS.bytes_per_day * DAYS_MAX < 5000 * GB


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (35_000_000, "35 MB"),
        (999 * GB, "999 GB"),
        (9000 * GB, "9.0 TB"),
    ],
)
def test_sizes_are_for_people(count: int, text: str) -> None:
    assert size_text(count) == text
