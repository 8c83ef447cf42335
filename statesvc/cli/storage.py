"""`statesvc storage`: what fills the disk, what it grows by a day, how long it lasts, and what to change."""

import argparse
import asyncio
import re
import shutil
from dataclasses import asdict
from typing import Final

from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.files.archive_folder import archive_folder
from statesvc.maintenance.storage_forecast import (
    DAYS_MAX,
    Hot,
    TableSize,
    days_left,
    size_text,
    what_to_change,
)
from statesvc.maintenance.table_sizes import StoredData, read_stored_data
from statesvc.settings.service_settings import Settings, load_settings

_DAYS: Final = 400
_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SHOWN_SHARE: Final = 0.005


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days",
        type=int,
        default=_DAYS,
        metavar="N",
        help=f"how long the disk is to last (default: {_DAYS}); exit code 1 where it does not",
    )
    parser.add_argument(
        "--free",
        type=_bytes,
        metavar="SIZE",
        help="free bytes on the database's disk, such as 800GB; needed where that is another machine's",
    )
    parser.add_argument("--json", action="store_true", help="for scripts; sizes in bytes")


def run(options: argparse.Namespace) -> int:
    """Show the storage; return 1 where the disk does not last."""
    settings = load_settings()
    stored = asyncio.run(_read(settings))
    free = options.free if options.free is not None else free_bytes(settings)
    hot = hot_time(settings)
    left: int | None = None
    advice: list[str] = []
    if free is not None and stored.entries_per_day is not None:
        left = days_left(stored.tables, hot, free_bytes=free)
        advice = what_to_change(stored.tables, hot, free_bytes=free, days=options.days)
    if options.json:
        write_json(
            asdict(stored)
            | {
                "size_bytes": stored.size_bytes,
                "free_bytes": free,
                "days_left": left,
                "days_max": DAYS_MAX,
                "what_to_change": advice,
            }
        )
    else:
        _write(stored, hot, free=free, left=left, advice=advice)
    return 1 if left is not None and left < options.days else 0


def _write(
    stored: StoredData, hot: Hot, *, free: int | None, left: int | None, advice: list[str]
) -> None:
    least = stored.size_bytes * _SHOWN_SHARE
    shown = [table for table in stored.tables if table.size_bytes >= least]
    write_table(
        ("TABLE", "SIZE", "A DAY", "LEAVES"),
        [_row(table, hot, known=stored.entries_per_day is not None) for table in shown],
    )
    write_line(
        f"{len(stored.tables) - len(shown)} more tables hold {size_text(sum(t.size_bytes for t in stored.tables if t.size_bytes < least))}"
    )
    write_line(f"database: {size_text(stored.size_bytes)}, {stored.entries:,} entries of the log")
    write_line(
        f"archive files: bodies {size_text(stored.body_archive_bytes)}, months of the log {size_text(stored.log_archive_bytes)}"
    )
    if stored.entries_per_day is None:
        write_line("the log is younger than a day: what it will grow by is not known yet")
    elif free is None:
        write_line(
            "the database's disk is not seen from here: say --free SIZE to learn how long it lasts"
        )
    else:
        lasts = "for more than ten years" if left is None else f"for {left:,} days"
        write_line(
            f"{stored.entries_per_day:,.0f} entries a day; {size_text(free)} are free and last {lasts}"
        )
    for text in advice:
        write_line(f"to change: {text}")


def _row(table: TableSize, hot: Hot, *, known: bool) -> tuple[str, str, str | None, str]:
    days = hot.days(table.leaving)
    leaves = (
        "stays: no archive is set"
        if days is None and table.leaving.name.endswith(("_ARCHIVE", "_FILE"))
        else table.leaving.value
    )
    return (
        table.name,
        size_text(table.size_bytes),
        size_text(table.bytes_per_day) if known else None,
        leaves if days is None else f"after {days:.0f} days",
    )


async def _read(settings: Settings) -> StoredData:
    async with service_connection(settings) as connection:
        return await read_stored_data(connection)


def hot_time(settings: Settings) -> Hot:
    """Return how long rows stay in the database by these settings."""
    has_folder = archive_folder(settings) is not None
    return Hot(
        log_months=settings.archive.log_hot_months if has_folder else None,
        body_days=settings.archive.hot_days if has_folder else None,
        file_months=settings.archive.keep_months if has_folder else None,
    )


def free_bytes(settings: Settings) -> int | None:
    """Return the free bytes of the database's disk; None: it is another machine's, or not there yet."""
    folder = settings.database.data_dir
    return (
        shutil.disk_usage(folder).free
        if settings.database.database_url is None and folder.exists()
        else None
    )


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kMGT]?)B?", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be a number with B, kB, MB, GB or TB")
    return int(float(found[1]) * _UNITS[found[2]])
