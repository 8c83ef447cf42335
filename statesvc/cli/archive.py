"""`statesvc archive list | run | verify | log`: the archives of bodies and of the log, beside what workers do by themselves."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path

from psycopg import AsyncConnection

from statesvc.bodies.day_ledger import BODY_LEDGER, DayRecord, archives, note_checked
from statesvc.bodies.day_pass import BodyArchiving, DayPassResult, archive_days
from statesvc.cli import archive_log as log_archive
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.progress import show_progress
from statesvc.cli.session import connect, running_database, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.log.archive.file_queries import file_faults
from statesvc.log.archive.folder import archive_folder, file_fault
from statesvc.log.archive.month_ledger import months
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="list | run | verify | log")
    listing = commands.add_parser("list", help="every day, and how far it came")
    listing.add_argument("--json", action="store_true", help="for scripts")
    commands.add_parser("run", help="archive now what is due, at full speed; a worker does it by itself once an hour")
    commands.add_parser("verify", help="read every file and compare it with what was written; exit code 1 where one differs")
    log_archive.configure(commands.add_parser("log", help="archive months of the log now, or list them"))


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    settings = load_settings()
    folder = archive_folder(settings)
    if folder is None:
        raise CommandError("STATESVC_ARCHIVE_DIR is not set: there is no archive", exit_code=2)
    match options.action:
        case "log":
            return log_archive.run(options, settings, folder)
        case "list":
            return asyncio.run(_list(settings, as_json=options.json))
        case "run":
            return asyncio.run(_run(settings, folder))
        case _:
            return asyncio.run(_verify(settings, folder))


async def _list(settings: Settings, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        ledger = await archives(connection)
    if as_json:
        write_json([asdict(archive) | {"sha256": archive.sha256.hex() if archive.sha256 else None} for archive in ledger])
    elif ledger:
        write_table(
            ("DAY", "STATE", "BODIES", "UNOPENED", "ERASED", "BYTES", "FILE"),
            [
                (archive.day, _state(archive), archive.bodies, archive.unopened, archive.erased, archive.size_bytes, archive.file_name)
                for archive in ledger
            ],
        )
    else:
        write_line("nothing was archived yet")
    return 0


def _state(archive: DayRecord) -> str:
    steps = (
        (archive.expired_at, "expired"),
        (archive.fault, "FAULTY"),
        (archive.dropped_at, "archived"),
        (archive.failure, "FAILED"),
        (archive.verified_at, "verified"),
        (archive.written_at, "written"),
    )
    return next((name for reached, name in steps if reached), "begun")


async def _run(settings: Settings, folder: Path) -> int:
    async with running_database(settings) as dsns, await connect(dsns.listen) as connection:
        if not await BODY_LEDGER.try_lead(connection):
            raise CommandError("a worker archives right now")
        outcome = await archive_days(
            connection,
            BodyArchiving(
                folder=folder,
                keyring=await load_keyring(connection, await open_master_keys(settings, connection)),
                hot_days=settings.archive.hot_days,
                keep_months=settings.archive.keep_months,
                pause=_at_full_speed,
            ),
        )
    _tell(outcome)
    return 1 if outcome.failed or outcome.busy or outcome.faults else 0


async def _at_full_speed() -> None:
    """A person waits: no rest between two batches."""


def _tell(outcome: DayPassResult) -> None:
    write_line(f"{len(outcome.archived)} days archived with {outcome.bodies} bodies, {len(outcome.expired)} expired")
    for day in outcome.busy:
        write_line(f"{day}: verified, but its partition is in use: it is dropped later")
    for day in outcome.failed:
        write_line(f"{day}: failed, its bodies are still in the database; `statesvc archive list --json` says why")
    for day in outcome.faults:
        write_line(f"{day}: its file is missing or altered")


async def _verify(settings: Settings, folder: Path) -> int:
    async with service_connection(settings) as connection:
        kept = [archive for archive in await archives(connection) if archive.dropped_at is not None and archive.expired_at is None]
        faulty = 0
        for done, archive in enumerate(kept, start=1):
            faulty += await _is_faulty(connection, folder, archive)
            show_progress(done, len(kept), "files")
        gone = [month for month in await months(connection) if month.dropped_at is not None]
    for name, why in await asyncio.to_thread(lambda: list(file_faults(folder, gone))):
        write_line(f"{name}: {why}")
        faulty += 1
    write_line(f"{len(kept)} files of bodies and {len(gone)} months of the log read, {faulty} files missing or altered")
    return 1 if faulty else 0


async def _is_faulty(connection: AsyncConnection[tuple[object, ...]], folder: Path, archive: DayRecord) -> bool:
    if archive.file_name is None or archive.sha256 is None:
        return False
    fault = await asyncio.to_thread(file_fault, folder / archive.file_name, archive.sha256)
    await note_checked(connection, archive.day, fault=fault)
    if fault is not None:
        write_line(f"{archive.file_name}: {fault}")
    return fault is not None
