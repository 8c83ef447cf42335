"""`statesvc migrate [--check]`."""

import argparse
import asyncio

from statesvc.cli.output import write_line
from statesvc.cli.session import running_database
from statesvc.database.migrate import migrate
from statesvc.settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if any migration is pending")


def run(options: argparse.Namespace) -> int:
    """Applies what is pending, or looks."""
    return asyncio.run(_run(check=options.check))


async def _run(*, check: bool) -> int:
    async with running_database(load_settings(), migrated=False) as dsns:
        report = await migrate(dsns.owner, dsns.listen, check_only=check)
    for label in report.applied:
        write_line(f"applied  {label}")
    for label in report.pending:
        write_line(f"pending  {label}")
    if report.newer:
        write_line(f"the database is newer than this release (migrations {', '.join(map(str, report.newer))})")
    if not report.applied and not report.pending:
        write_line("the schema is up to date")
    return 1 if report.pending else 0
