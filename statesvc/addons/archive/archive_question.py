"""`statesvc archive query SQL`: a question to the archived months of the log, answered from their files."""

import argparse
import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json_line, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.files.archive_errors import NoQueryError
from statesvc.files.archive_folder import ArchivePath, archive_at, files_of
from statesvc.files.object_path import ObjectStoreError
from statesvc.log.log_months import months
from statesvc.settings.service_settings import Settings

_SHOWN_MAX: Final = 1000
_OF_ENTRIES: Final = re.compile(r"log-[^.]+\.parquet")


def configure_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="one SELECT over entries, events, transitions, attempts, ...; -: read it from standard input",
    )
    parser.add_argument(
        "--folder",
        type=_place,
        metavar="DIR",
        help="all files in a copy of the archive (or s3://...), without a database",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help=f"all rows, an object a line; otherwise a table of at most {_SHOWN_MAX:,}",
    )


def _place(text: str) -> ArchivePath:
    try:
        return archive_at(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def ask_archive(options: argparse.Namespace, settings: Settings, folder: ArchivePath | None) -> int:
    try:
        from statesvc.addons.archive.archive_query import (  # noqa: PLC0415 - DuckDB is an extra
            ArchiveQueryError,
            answer,
            archive_tables,
        )
    except ImportError as error:
        raise CommandError(str(NoQueryError())) from error
    question = sys.stdin.read() if options.sql == "-" else options.sql
    try:
        with archive_tables(_files(options.folder, settings, folder)) as connection:
            names, rows = answer(connection, question)
            if options.json:
                for row in rows:
                    write_json_line(
                        {name: _value(value) for name, value in zip(names, row, strict=True)}
                    )
            else:
                _write_rows(names, rows)
    except (ArchiveQueryError, ObjectStoreError) as error:
        raise CommandError(str(error)) from error
    return 0


def _files(
    copy: ArchivePath | None, settings: Settings, folder: ArchivePath | None
) -> Sequence[ArchivePath]:
    """Return the files of a copy; otherwise those that the ledger says are the log's."""
    found: Sequence[ArchivePath]
    if copy is not None:
        found = sorted(
            (path for path in files_of(copy) if _OF_ENTRIES.fullmatch(path.name)),
            key=lambda path: path.name,
        )
    else:
        if folder is None:
            raise CommandError(
                "STATESVC_ARCHIVE_DIR is not set: there is no archive; or say --folder DIR",
                exit_code=2,
            )
        found = asyncio.run(_files_of_ledger(settings, folder))
    if not found:
        raise CommandError("no month of the log is archived yet")
    if lacking := [path.name for path in found if not path.exists()]:
        raise CommandError(
            f"missing in the archive's folder: {', '.join(lacking)}; put them back from its backup"
        )
    return found


async def _files_of_ledger(settings: Settings, folder: ArchivePath) -> list[ArchivePath]:
    async with service_connection(settings) as connection:
        return [
            folder / month.file_name
            for month in await months(connection)
            if month.verified_at is not None and month.file_name is not None
        ]


def _write_rows(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    shown = list(islice(rows, _SHOWN_MAX))
    write_table(
        [name.upper() for name in names],
        [[None if value is None else _text(value) for value in row] for row in shown],
    )
    if next(rows, None) is not None:
        write_line(f"only the first {_SHOWN_MAX:,} rows; --json prints all")


def _text(value: object) -> str:
    found = _value(value)
    return found.isoformat() if isinstance(found, datetime) else str(found)


def _value(value: object) -> object:
    """Format bytes in hex, as the log's hashes are written everywhere."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, UUID) else value
