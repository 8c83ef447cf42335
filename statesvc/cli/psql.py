"""`statesvc psql [--owner | --superuser]`: psql on the service's database, embedded too."""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.cli.command_error import CommandError
from statesvc.cli.session import running_database
from statesvc.database.dsns import Dsns
from statesvc.database.password_command import password_command
from statesvc.database.postgres_programs import MAJOR, EmbeddedServerError, programs
from statesvc.settings.service_settings import DatabaseSettings, load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    role = parser.add_mutually_exclusive_group()
    role.add_argument(
        "--owner",
        action="store_true",
        help="as the owner of the tables (STATESVC_OWNER_URL), not as the service",
    )
    role.add_argument(
        "--superuser", action="store_true", help="as the superuser of the embedded server"
    )
    parser.add_argument(
        "-c",
        dest="commands",
        action="append",
        default=[],
        metavar="SQL",
        help="run this and end; may stand more than once",
    )
    parser.add_argument(
        "psql", nargs="*", metavar="-- ARGUMENT", help="what else psql takes, behind --"
    )


def run(options: argparse.Namespace) -> int:
    """Start psql. 1: it failed."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    settings = load_settings().database
    program = _program(settings)
    async with running_database(load_settings(), migrated=False) as dsns:
        dsn = _address(dsns, options)
        arguments = [argument for command in options.commands for argument in ("-c", command)]
        address, password = await _address_and_password(dsn)
        # a Ctrl-C is psql's: it ends a query, and not the session
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
        environment = os.environ if password is None else {**os.environ, "PGPASSWORD": password}
        return await asyncio.to_thread(
            _psql, [program, "-d", address, *arguments, *options.psql], environment
        )


def _address(dsns: Dsns, options: argparse.Namespace) -> str:
    if not options.superuser:
        return dsns.owner if options.owner else dsns.service
    if dsns.superuser is None:
        raise CommandError(
            "the superuser of a server of your own is not among the settings: psql with its address"
        )
    return dsns.superuser


async def _address_and_password(dsn: str) -> tuple[str, str | None]:
    """Return the address without its password, and the password.

    Other users of the machine would see it in the list of processes.
    """
    parts = conninfo_to_dict(dsn)
    password, command = parts.pop("password", None), password_command()
    if password is None and command is not None:
        password = await command.password(dsn)
    return make_conninfo("", **parts), None if password is None else str(password)


def _program(settings: DatabaseSettings) -> Path:
    """Return psql of the server's programs, else the psql on the PATH."""
    try:
        folder = (
            programs(MAJOR) if settings.postgres_bin is None else settings.postgres_bin.absolute()
        )
    except EmbeddedServerError:
        found = shutil.which("psql")
        if found is None:
            raise CommandError(
                "there is no psql: install a client of PostgreSQL, or set STATESVC_POSTGRES_BIN"
            ) from None
        return Path(found)
    return folder / "psql"


def _psql(command: list[str | Path], environment: Mapping[str, str]) -> int:
    # its 2 would mean wrong use
    # the program is ours
    ended = subprocess.run(command, env=environment, check=False)  # noqa: S603
    return 1 if ended.returncode else 0
