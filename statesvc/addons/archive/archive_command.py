"""`statesvc archive list | run | verify | log`: the archives of bodies and of the log, which
workers also fill by themselves.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_identity import ArchiveRefusedError, NotLostError, give_up
from statesvc.addons.archive.archive_pass import ArchivePassResult
from statesvc.addons.archive.day import BODY_LEDGER, DayRecord, archives, note_checked
from statesvc.addons.archive.day_pass import BodyArchiving, DayPassResult, archive_days
from statesvc.addons.archive.file_queries import file_faults
from statesvc.addons.archive.month import LOG_LEDGER
from statesvc.cli.arguments import positive
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_answer, write_json, write_line, write_table
from statesvc.cli.session import actor, connect, running_database, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.database.wakeups.wakeup import LOG, notify
from statesvc.files.archive_errors import NoParquetError
from statesvc.files.archive_folder import ArchivePath, archive_folder, file_fault
from statesvc.log.log_months import LogMonth, months
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings

if TYPE_CHECKING:
    from statesvc.addons.archive.month_pass import MonthPassResult


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    listing = commands.add_parser("list", help="list the archived days with their progress")
    archiving = commands.add_parser(
        "run",
        help="archive due days now; a worker does so every hour",
    )
    verifying = commands.add_parser(
        "verify",
        help="read every file and compare it with the ledger; exit code 1 if one differs",
    )
    lost = commands.add_parser(
        "lost",
        help=("give up a missing file without a backup; its content is lost"),
    )
    lost.add_argument(
        "file", metavar="FILE", help="its name, as `archive list` and `archive log --list` show it"
    )
    lost.add_argument("--why", required=True, help="for the log")
    for command in (listing, archiving, verifying, lost):
        command.add_argument("--json", action="store_true", help="for scripts")
    _configure_log(commands.add_parser("log", help="archive months of the log now, or list them"))


def run(options: argparse.Namespace) -> int:
    settings = load_settings()
    folder = archive_folder(settings)
    if folder is None:
        raise CommandError("STATESVC_ARCHIVE_DIR is not set: there is no archive", exit_code=2)
    match options.action:
        case "log":
            return _archive_log(options, settings, folder)
        case "list":
            return asyncio.run(_list_days(settings, as_json=options.json))
        case "run":
            return asyncio.run(_run(settings, folder, as_json=options.json))
        case "lost":
            return asyncio.run(_give_up(settings, folder, options))
        case _:
            return asyncio.run(_verify(settings, folder, as_json=options.json))


# By the columns of both ledgers: the first of these that a day or a month has.
_STATES: Final = (
    ("expired_at", "expired"),
    ("lost_at", "LOST"),
    ("fault", "FAULTY"),
    ("dropped_at", "archived"),
    ("failure", "FAILED"),
    ("leaving_at", "leaving"),
    ("verified_at", "verified"),
    ("written_at", "written"),
)


def _state(period: DayRecord | LogMonth) -> str:
    return next((state for name, state in _STATES if getattr(period, name, None)), "begun")


async def _list_days(settings: Settings, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        ledger = await archives(connection)
    rows = [
        (each.day, _state(each), each.bodies, each.unopened, each.erased, each.size_bytes)
        for each in ledger
    ]
    columns = ("DAY", "STATE", "BODIES", "UNOPENED", "ERASED", "BYTES")
    return _write_ledger(ledger, columns, rows, as_json=as_json)


async def _list_months(settings: Settings, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        ledger = await months(connection)
    rows = [
        (f"{each.month:%Y-%m}", _state(each), each.entries, _range(each), each.size_bytes)
        for each in ledger
    ]
    columns = ("MONTH", "STATE", "ENTRIES", "INDEXES", "BYTES")
    return _write_ledger(ledger, columns, rows, as_json=as_json)


def _range(month: LogMonth) -> str:
    return "" if month.first_index is None else f"{month.first_index}..{month.last_index}"


def _write_ledger(
    ledger: Sequence[DayRecord | LogMonth],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    as_json: bool,
) -> int:
    if as_json:
        write_json(
            [{name: _plain(value) for name, value in asdict(each).items()} for each in ledger]
        )
    elif ledger:
        files = (each.file_name for each in ledger)
        write_table(
            (*columns, "FILE"), [(*row, name) for row, name in zip(rows, files, strict=True)]
        )
    else:
        write_line("nothing was archived yet")
    return 0


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


async def _run(settings: Settings, folder: ArchivePath, *, as_json: bool) -> int:
    async with running_database(settings) as dsns, await connect(dsns.listen) as connection:
        if not await BODY_LEDGER.try_lead(connection):
            raise CommandError("a worker archives right now")
        outcome = await archive_days(
            connection,
            BodyArchiving(
                folder=folder,
                keyring=await load_keyring(
                    connection, await open_master_keys(settings, connection)
                ),
                hot_days=settings.archive.hot_days,
                keep_months=settings.archive.keep_months,
                pause=_at_full_speed,
                report=lambda done, total: show_progress(done, total, "days"),
            ),
        )
    if as_json:
        write_json(asdict(outcome))
    else:
        _write_result(outcome)
    return 1 if outcome.refused or outcome.failed or outcome.busy or outcome.faults else 0


async def _at_full_speed() -> None:
    """Rest not at all between two batches: a person waits."""


def _write_result(outcome: DayPassResult) -> None:
    write_line(
        f"{len(outcome.archived)} days archived with {outcome.bodies} bodies,"
        f" {len(outcome.expired)} expired"
    )
    _write_refusal(outcome)
    for day in outcome.busy:
        write_line(f"{day}: verified, but its partition is in use: it is dropped later")
    for day in outcome.failed:
        write_line(
            f"{day}: failed, its bodies are still in the database; `statesvc archive list --json`"
            " says why"
        )
    for day in outcome.faults:
        write_line(f"{day}: its file is missing or altered")


def _write_refusal(outcome: ArchivePassResult) -> None:
    if outcome.refused is not None:
        write_line(f"REFUSED, nothing leaves the database: {outcome.refused}")


async def _verify(settings: Settings, folder: ArchivePath, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        ledger = await archives(connection)
        retained = [
            archive
            for archive in ledger
            if archive.dropped_at is not None and archive.expired_at is None
        ]
        faults: dict[str, str] = {}
        for done, archive in enumerate(retained, start=1):
            faults |= await _fault_of(connection, folder, archive)
            show_progress(done, len(retained), "files")
        gone = [month for month in await months(connection) if month.dropped_at is not None]
    faults |= await asyncio.to_thread(lambda: dict(file_faults(folder, gone)))
    counted = (
        f"{len(retained)} files of bodies and {len(gone)} months of the log read, {len(faults)}"
        " files missing or altered"
    )
    lines = [*(f"{name}: {why}" for name, why in faults.items()), counted]
    write_answer(
        "\n".join(lines),
        {"files": len(retained), "months": len(gone), "faults": faults},
        as_json=as_json,
    )
    return 1 if faults else 0


async def _fault_of(
    connection: AsyncConnection[tuple[object, ...]], folder: ArchivePath, archive: DayRecord
) -> dict[str, str]:
    """Return the file's fault by its name; None: it is sound, or there is none."""
    if archive.file_name is None or archive.sha256 is None:
        return {}
    fault = await asyncio.to_thread(file_fault, folder / archive.file_name, archive.sha256)
    await note_checked(connection, archive.day, fault=fault)
    return {} if fault is None else {archive.file_name: fault}


async def _give_up(settings: Settings, folder: ArchivePath, options: argparse.Namespace) -> int:
    async with service_connection(settings) as connection:
        try:
            fault = await give_up(connection, folder, options.file, actor=actor(), why=options.why)
        except NotLostError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(str(ArchiveRefusedError.of(folder, error))) from error
        await notify(connection, LOG)
    sentence = f"{options.file} is given up ({fault}); archiving goes on without it"
    write_answer(sentence, {"file": options.file, "fault": fault}, as_json=options.json)
    return 0


def _configure_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--list",
        action="store_true",
        help="every archived month, and how far it came; archives nothing",
    )
    parser.add_argument(
        "--hot-months",
        type=positive,
        metavar="N",
        help="whole months that stay (default: STATESVC_ARCHIVE_LOG_HOT_MONTHS)",
    )
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="do not wait for the minute of notice: a later run takes the months out",
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def _archive_log(options: argparse.Namespace, settings: Settings, folder: ArchivePath) -> int:
    """Archive the log; return 1 where a month that is due could not be archived."""
    if options.list:
        return asyncio.run(_list_months(settings, as_json=options.json))
    hot_months = options.hot_months or settings.archive.log_hot_months
    if hot_months is None:
        raise CommandError(
            "STATESVC_ARCHIVE_LOG_HOT_MONTHS is not set: the log stays in the database; or say"
            " --hot-months N",
            exit_code=2,
        )
    return asyncio.run(_archive_months(settings, folder, hot_months, options))


async def _archive_months(
    settings: Settings, folder: ArchivePath, hot_months: int, options: argparse.Namespace
) -> int:
    try:
        # pyarrow is an extra
        from statesvc.addons.archive.month_pass import LogArchiving, archive_months  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(str(NoParquetError())) from error
    async with running_database(settings) as dsns, await connect(dsns.listen) as connection:
        if not await LOG_LEDGER.try_lead(connection):
            raise CommandError("the log is being archived right now")
        archiving = LogArchiving(
            folder=folder,
            keyring=await load_keyring(connection, await open_master_keys(settings, connection)),
            hot_months=hot_months,
            wait=_at_once if options.no_wait else asyncio.sleep,
        )
        outcome = await archive_months(connection, archiving)
        # what was done stands in the log and waits to be sealed
        await notify(connection, LOG)
    if options.json:
        write_json(asdict(outcome))
    else:
        _write_months(outcome)
    return 1 if outcome.refused or outcome.busy or outcome.waiting or outcome.failed else 0


def _write_months(outcome: "MonthPassResult") -> None:
    write_line(
        f"{len(outcome.archived)} months archived; {outcome.stayed} shipments of theirs stay in the"
        " database"
    )
    _write_refusal(outcome)
    if outcome.packed:
        write_line(
            f"{outcome.packed} dedupe keys of shipments that are archived as a whole were packed"
        )
    for outcome_text, found in (
        ("leaves the database a minute after the notice: run it again", outcome.leaving),
        (
            "verified, but the tables are in use, or the whole log is read: it goes later",
            outcome.busy,
        ),
        ("not wholly sealed, or no checkpoint covers it: is a sealer running?", outcome.waiting),
        (
            (
                "failed, its entries are still in the database; `statesvc archive log --list"
                " --json` says why"
            ),
            outcome.failed,
        ),
    ):
        for month in found:
            write_line(f"{month:%Y-%m}: {outcome_text}")


async def _at_once(_seconds: float) -> None:
    """Return at once: the notice ends by itself."""
