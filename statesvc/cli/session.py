"""Session of a command: a connection and its actor.

The connection is to DATABASE_URL, to the running embedded server, or to a server started for it.
"""

import asyncio
import getpass
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from statesvc.cli.command_error import CommandError
from statesvc.database.dsns import Dsns, database_name
from statesvc.database.embedded import EmbeddedServer, locate
from statesvc.database.migration_files import compare, read_migrations
from statesvc.database.migrator import migrate, read_ledger
from statesvc.database.open_connection import PATIENT, open_connection
from statesvc.database.postgres_programs import DataInUseError, NoDataError
from statesvc.database.service_connection import names_several_hosts
from statesvc.database.session_settings import SessionLimits
from statesvc.database.sql_errors import ConnectionCause, connection_cause
from statesvc.database.wakeups.wakeup import LOG, notify
from statesvc.roles.master_key import ensure_master_key
from statesvc.settings.service_settings import Settings
from statesvc.telemetry.logs import configure_logging, log_format

_LIMIT_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.1


@asynccontextmanager
async def running_database(
    settings: Settings, *, make: bool = False, migrated: bool = True, announced: bool = True
) -> AsyncIterator[Dsns]:
    """Provide the addresses, for the time of the block.

    `announced`: standard error names the database first. A stopped server is started, and with
    `migrated` its schema brought up to date, as `up` does it. With `make` a missing server is
    made; otherwise raises `NoDataError`.
    """
    configure_logging(
        process="command", output_format=log_format(settings.telemetry), level="warning"
    )
    try:
        found = locate(settings.database)
    except NoDataError:
        if not make:
            raise
        found = None
    if announced:
        sys.stderr.write(f"database: {database_name(settings.database)}\n")
    if found is not None:
        yield found
        return
    server = EmbeddedServer.from_settings(settings.database)
    try:
        try:
            dsns = await asyncio.to_thread(server.start)
        except DataInUseError as error:
            raise CommandError(
                f"the database is being started or stopped by process {error.pid or 'unknown'}: try"
                " again soon"
            ) from error
        if make:
            ensure_master_key(settings)
        if migrated:
            await migrate(
                dsns.owner,
                dsns.listen,
                superuser_dsn=dsns.superuser,
                auditor_role=settings.database.auditor_role,
            )
        yield dsns
    finally:
        await asyncio.to_thread(server.stop)


# Limits of commands that look for faults: a silent database is an answer, too.
FINDING: Final = SessionLimits(statement_seconds=30, lock_seconds=10)


async def require_migrated(connection: AsyncConnection[Any]) -> None:
    """Raise CommandError while migrations are pending."""
    if pending := compare(read_migrations(), await read_ledger(connection)).pending:
        labels = ", ".join(each.label for each in pending)
        raise CommandError(f"migrations are pending ({labels}): run `statesvc migrate`")


@asynccontextmanager
async def service_connection(
    settings: Settings, *, limits: SessionLimits = PATIENT, announced: bool = True
) -> AsyncIterator[AsyncConnection[Any]]:
    """Open an autocommit connection as the service's role, on a schema that is up to date."""
    async with (
        running_database(settings, announced=announced) as dsns,
        await connect(dsns.service, direct=not dsns.is_pooled, limits=limits) as connection,
    ):
        await require_migrated(connection)
        yield connection
        # what the command did may stand in the log, which the sealer seals
        await notify(connection, LOG)


async def connect(
    dsn: str, *, direct: bool = True, writes: bool = False, limits: SessionLimits = PATIENT
) -> AsyncConnection[Any]:
    """Open a connection of a command.

    `direct=False` behind a pooler in transaction mode; `writes` refuses a read-only server.
    While all connections are in use it waits for a free one: the kill switch is wanted most
    then.
    """
    until = time.monotonic() + _LIMIT_SECONDS
    while True:
        try:
            return await open_connection(
                dsn,
                application_name="statesvc command",
                limits=limits,
                direct=direct,
                writes=writes or names_several_hosts(dsn),
            )
        except psycopg.OperationalError as error:
            if connection_cause(error) is not ConnectionCause.LIMIT or time.monotonic() > until:
                raise
        await asyncio.sleep(_AGAIN_SECONDS)


def actor() -> str:
    """Return the user's name in operator actions: `cli:<account>` of this machine."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"
