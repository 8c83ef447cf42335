"""`statesvc migrate [--check | --guard | --roles]`."""

import argparse
import asyncio
import sys
from dataclasses import asdict
from importlib.resources import files
from typing import Final

from statesvc.cli.output import write_json, write_line
from statesvc.cli.session import running_database
from statesvc.database.log_guard import guard_script
from statesvc.database.migrator import MigrationReport, migrate
from statesvc.settings.service_settings import load_settings

GUARD_NEEDS: Final = (
    "for `psql -v ON_ERROR_STOP=1 -1`, after `statesvc migrate`, as a superuser: PostgreSQL lets"
    " nobody else make event triggers.\nOn a managed server as its master, where that is a member"
    " of the tables' owner and the provider lets it make them (docs/managed.md).\nOtherwise do"
    " without: privileges and the tables' own triggers keep the log append-only, and `statesvc"
    " verify` finds the rest.\n"
)

ROLES_NEEDS: Final = (
    "for `psql -X -v ON_ERROR_STOP=1`, before `statesvc migrate`, as a superuser or with CREATEROLE"
    " and CREATEDB (docs/managed.md).\nIt sets the passwords that STATESVC_OWNER_PASSWORD,"
    " STATESVC_SERVICE_PASSWORD and STATESVC_AUDITOR_PASSWORD hold where psql runs.\n"
)


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check",
        action="store_true",
        help="change nothing, list what is pending; exit 1 if anything is",
    )
    what.add_argument(
        "--guard",
        action="store_true",
        help="print the SQL by which a superuser guards the log's tables",
    )
    what.add_argument(
        "--roles",
        action="store_true",
        help="print the SQL that makes the roles and the database on a server of yours",
    )
    parser.add_argument(
        "--json", action="store_true", help="for scripts: what was applied and what is pending"
    )


def run(options: argparse.Namespace) -> int:
    """Apply pending migrations, or only report them."""
    if options.guard:
        sys.stderr.write(GUARD_NEEDS)
        write_line(guard_script().rstrip())
        return 0
    if options.roles:
        sys.stderr.write(ROLES_NEEDS)
        write_line(
            files("statesvc.database").joinpath("embedded_roles.sql").read_text("utf-8").rstrip()
        )
        return 0
    return asyncio.run(_run(check=options.check, as_json=options.json))


async def _run(*, check: bool, as_json: bool) -> int:
    settings = load_settings()
    async with running_database(settings, make=not check, migrated=False) as dsns:
        role = settings.database.auditor_role
        report = await migrate(
            dsns.owner,
            dsns.listen,
            check_only=check,
            superuser_dsn=dsns.superuser,
            auditor_role=role,
        )
    if as_json:
        # 0.1.0 had `pauses`: scripts may read it through 0.3
        write_json(asdict(report) | {"pauses": []})
    else:
        _write(report)
    return 1 if report.pending else 0


def _write(report: MigrationReport) -> None:
    for label in report.applied:
        write_line(f"applied  {label}")
    for label in report.pending:
        write_line(f"pending  {label}")
    if report.newer:
        write_line(
            "the database is newer than this release (migrations"
            f" {', '.join(map(str, report.newer))})"
        )
    if not report.applied and not report.pending:
        write_line("the schema is up to date")
