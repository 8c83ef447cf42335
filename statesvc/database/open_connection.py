"""Opens connections that are no pool's: of listeners, the sealer's lead, the owner and the
commands.
"""

from collections.abc import Callable
from typing import Any, Final, LiteralString

import psycopg
from psycopg import Connection

from statesvc.database.password_command import password_command
from statesvc.database.pooled import PooledConnection, PooledCursor
from statesvc.database.service_connection import (
    CONNECT_TIMEOUT_SECONDS,
    ServiceConnection,
    parameters,
)
from statesvc.database.session_settings import (
    SessionLimits,
    prepare_pooled_session,
    prepare_session,
    prepare_sync_session,
)

# For commands: a person waits, and can end it.
PATIENT: Final = SessionLimits(lock_seconds=60)
_INSTEAD: Final = "statesvc runs on PostgreSQL 16 or later (docs/engines.md)"


class UnsupportedServerError(RuntimeError):
    """The server speaks PostgreSQL's protocol and lacks features of PostgreSQL that the service
    needs.
    """


def _require_postgresql(status: Callable[[str], str | None]) -> None:
    """Refuse other servers by the parameters that they report at the login."""
    if version := status("crdb_version"):
        raise UnsupportedServerError(
            f"this is {version}, which lacks LISTEN and NOTIFY: {_INSTEAD}"
        )
    version = status("server_version") or ""
    if "-YB-" in version:
        raise UnsupportedServerError(
            f"this is YugabyteDB {version}, whose NOTIFY and partitions fail under load: {_INSTEAD}"
        )


async def open_connection(
    dsn: str,
    *,
    application_name: LiteralString,
    limits: SessionLimits = PATIENT,
    direct: bool = True,
    writes: bool = True,
) -> ServiceConnection:
    """Open an autocommit connection that never prepares statements by itself.

    `direct=False` behind a pooler in transaction mode; `writes=False` where a server that only
    reads will do. Raises UnsupportedServerError.
    """
    options = {
        "autocommit": True,
        "prepare_threshold": None,
        **parameters(dsn, application_name, writes=writes),
    }
    if direct:
        connection = await ServiceConnection.connect(dsn, **options)
    else:
        connection = await PooledConnection.connect(dsn, cursor_factory=PooledCursor, **options)
    try:
        # before the first statement, which another server may answer in a way that hides what it is
        _require_postgresql(connection.info.parameter_status)
        # the server has just answered; this one statement has a deadline, whatever the
        # limits of the next are
        connection.answer_seconds = limits.answer_seconds or float(CONNECT_TIMEOUT_SECONDS)
        if isinstance(connection, PooledConnection):
            await prepare_pooled_session(connection)
            connection.limit_transactions(
                limits.timeouts(server_version=connection.info.server_version)
            )
        else:
            await prepare_session(connection, limits)
        connection.answer_seconds = limits.answer_seconds
    except BaseException:
        await connection.close()
        raise
    return connection


def open_sync_connection(
    dsn: str,
    *,
    application_name: LiteralString,
    limits: SessionLimits = PATIENT,
    writes: bool = True,
) -> Connection[Any]:
    """Open such a connection without an event loop; it has no deadline."""
    options = {
        "autocommit": True,
        "prepare_threshold": None,
        **parameters(dsn, application_name, writes=writes),
    }
    command = password_command()
    password = None if command is None else command.password_now(dsn)
    connection = (
        psycopg.connect(dsn, **options)
        if password is None
        else psycopg.connect(dsn, password=password, **options)
    )
    try:
        prepare_sync_session(connection, limits)
    except BaseException:
        connection.close()
        raise
    return connection
