"""`statesvc archive log`: months of the log into Parquet files, beside what a worker does by itself."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import connect, running_database, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.database.wakeups.channels import LOG
from statesvc.database.wakeups.waker import notify
from statesvc.log.archive.log_archive_errors import NoParquetError
from statesvc.log.archive.month_ledger import LOG_LEDGER, LogMonth, months
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--list", action="store_true", help="every archived month, and how far it came; archives nothing")
    parser.add_argument("--hot-months", type=_count, metavar="N", help="whole months that stay (default: STATESVC_ARCHIVE_LOG_HOT_MONTHS)")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the minute of notice: a later run takes the months out")
    parser.add_argument("--json", action="store_true", help="with --list: for scripts")


def run(options: argparse.Namespace, settings: Settings, folder: Path) -> int:
    """1 where a month that is due could not be archived."""
    if options.list:
        return asyncio.run(_list(settings, as_json=options.json))
    hot_months = options.hot_months or settings.archive.log_hot_months
    if hot_months is None:
        raise CommandError("STATESVC_ARCHIVE_LOG_HOT_MONTHS is not set: the log stays in the database; or say --hot-months N", exit_code=2)
    return asyncio.run(_run(settings, folder, hot_months, waits=not options.no_wait))


async def _list(settings: Settings, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        ledger = await months(connection)
    if as_json:
        digests = ({name: digest.hex() if digest else None for name, digest in _digests(month)} for month in ledger)
        write_json([asdict(month) | shown for month, shown in zip(ledger, digests, strict=True)])
    elif ledger:
        rows = [(f"{each.month:%Y-%m}", _state(each), each.entries, _range(each), each.size_bytes, each.file_name) for each in ledger]
        write_table(("MONTH", "STATE", "ENTRIES", "INDEXES", "BYTES", "FILE"), rows)
    else:
        write_line("nothing of the log was archived yet")
    return 0


def _state(month: LogMonth) -> str:
    steps = (
        (month.dropped_at, "archived"),
        (month.failure, "FAILED"),
        (month.leaving_at, "leaving"),
        (month.verified_at, "verified"),
        (month.written_at, "written"),
    )
    return next((name for reached, name in steps if reached), "begun")


def _digests(month: LogMonth) -> tuple[tuple[str, bytes | None], ...]:
    return ("sha256", month.sha256), ("index_sha256", month.index_sha256)


def _range(month: LogMonth) -> str:
    return "" if month.first_index is None else f"{month.first_index}..{month.last_index}"


async def _run(settings: Settings, folder: Path, hot_months: int, *, waits: bool) -> int:
    try:
        from statesvc.log.archive.month_pass import LogArchiving, archive_months  # noqa: PLC0415 - pyarrow is an extra
    except ImportError as error:
        raise CommandError(str(NoParquetError())) from error
    async with running_database(settings) as dsns, await connect(dsns.listen) as connection:
        if not await LOG_LEDGER.try_lead(connection):
            raise CommandError("the log is being archived right now")
        archiving = LogArchiving(
            folder=folder,
            keyring=await load_keyring(connection, await open_master_keys(settings, connection)),
            hot_months=hot_months,
            wait=asyncio.sleep if waits else _at_once,
        )
        outcome = await archive_months(connection, archiving)
        # what was done stands in the log and waits to be sealed
        await notify(connection, LOG)
    write_line(f"{len(outcome.archived)} months archived; {outcome.stayed} shipments of theirs stay in the database")
    for told, found in (
        ("leaves the database a minute after the notice: run it again", outcome.leaving),
        ("verified, but the tables are in use, or the whole log is read: it goes later", outcome.busy),
        ("not wholly sealed, or no checkpoint covers it: is a sealer running?", outcome.waiting),
        ("failed, its entries are still in the database; `statesvc archive log --list --json` says why", outcome.failed),
    ):
        for month in found:
            write_line(f"{month:%Y-%m}: {told}")
    return 1 if outcome.busy or outcome.waiting or outcome.failed else 0


async def _at_once(_seconds: float) -> None:
    """The notice ends by itself."""


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return count
