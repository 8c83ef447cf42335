"""`statesvc backup check`: what a restore would miss. 1 where something would be."""

import argparse
import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from statesvc.cli.backup_checks import check_backup, check_base_backups, unknown_base_backups
from statesvc.cli.base_backups import BaseBackupError, in_folder, in_stanza
from statesvc.cli.doctor.doctor import write_findings
from statesvc.cli.doctor.finding import Finding, fail
from statesvc.cli.session import service_connection
from statesvc.settings.service_settings import Settings, load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="check")
    checking = commands.add_parser("check", help="what a restore would miss; exit code 1 where something would be")
    where = checking.add_mutually_exclusive_group()
    where.add_argument("--stanza", metavar="NAME", help="whose base backups pgBackRest lists, which must be installed here")
    where.add_argument("--base-backups", type=Path, metavar="FOLDER", help="where pg_basebackup puts them, or a folder of such folders")
    checking.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Checks."""
    settings = load_settings()
    findings = [*asyncio.run(_findings(settings)), *_base_backups(options, settings)]
    return write_findings(findings, as_json=options.json)


async def _findings(settings: Settings) -> list[Finding]:
    async with service_connection(settings) as connection:
        return [finding async for finding in check_backup(connection, settings)]


def _base_backups(options: argparse.Namespace, settings: Settings) -> Iterator[Finding]:
    if options.stanza is None and options.base_backups is None:
        yield unknown_base_backups()
        return
    try:
        ended = in_stanza(options.stanza) if options.stanza is not None else in_folder(options.base_backups)
    except BaseBackupError as error:
        yield fail("base backup", str(error))
        return
    yield from check_base_backups(ended, now=datetime.now(UTC), backup_days=settings.keys.backup_days)
