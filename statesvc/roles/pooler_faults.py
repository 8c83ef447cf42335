"""Faults between the service and a pooler, as sentences that name the setting.

`doctor` prints them, and no role starts with one. Otherwise such faults show late: statements fail
now and then, wake-ups are lost, time limits hit the session's next client.
"""

from enum import Enum
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, capabilities

from statesvc.database.dsns import Dsns
from statesvc.database.queries import queries
from statesvc.database.service_connection import (
    CONNECT_TIMEOUT_SECONDS,
    ServiceConnection,
    parameters,
)
from statesvc.database.sql_errors import ADVICE
from statesvc.settings.service_settings import Settings

TRIES: Final = 4
_LISTEN: Final = "set STATESVC_LISTEN_URL to the server itself"

_SQL = queries("statesvc.roles", "pooler_faults")


class PoolerMode(Enum):
    """Mode of the pooler between a client and the server, if any."""

    DIRECT = "direct"
    SESSION = "a pooler that gives each client a server connection of its own"
    TRANSACTION = "a pooler that gives each transaction another server connection"


class PoolerSettingError(RuntimeError):
    """A setting does not fit the pooler; the message names it and the right value."""


async def require_usable_pooler(dsns: Dsns, settings: Settings) -> None:
    """Check the pooler.

    Raises PoolerSettingError with everything that is wrong, and OperationalError where the
    server does not answer.
    """
    service = await pooler_mode(dsns.service)
    listen = await pooler_mode(dsns.listen) if dsns.is_pooled else service
    faults = [
        listen_fault(listen, is_own=dsns.is_pooled),
        limits_fault(dsns) if service is PoolerMode.TRANSACTION else None,
        await prepared_fault(dsns, settings) if service is PoolerMode.TRANSACTION else None,
    ]
    found = [fault for fault in faults if fault is not None]
    if found:
        raise PoolerSettingError("; ".join(found))


def listen_fault(mode: PoolerMode, *, is_own: bool) -> str | None:
    """Return the fault of LISTEN. `is_own`: it has an address of its own."""
    if mode is not PoolerMode.TRANSACTION:
        return None
    variable = "STATESVC_LISTEN_URL" if is_own else "DATABASE_URL"
    return f"{variable} leads through a pooler in transaction mode: {_LISTEN}, or wake-ups are lost"


def owner_fault(mode: PoolerMode, *, variable: str = "STATESVC_OWNER_URL") -> str | None:
    """Return the fault of the address for migrations."""
    if mode is not PoolerMode.TRANSACTION:
        return None
    return (
        f"{variable} leads through a pooler in transaction mode; migrations hold a lock on one"
        " session: set STATESVC_OWNER_URL to the server itself"
    )


def limits_fault(dsns: Dsns) -> str | None:
    """Return the fault of time limits behind a pooler in transaction mode: where it is known, they
    travel with each transaction.
    """
    if dsns.is_pooled:
        return None
    return (
        "without STATESVC_LISTEN_URL the pooler is taken for the server, and time limits hit"
        f" the session's next client: {_LISTEN}"
    )


async def prepared_fault(dsns: Dsns, settings: Settings) -> str | None:
    """Check, behind a pooler in transaction mode, that it carries prepared
    statements, where they are on.
    """
    if not settings.database.prepared_statements:
        return None
    if not await carries_prepared(dsns.service):
        return ADVICE["26000"]
    if not capabilities.has_send_close_prepared():
        return (
            "the pooler carries prepared statements, but libpq here is older than 17 and can't take"
            " them back through it: install psycopg[binary] 3.2 or later, or set"
            " STATESVC_PREPARED_STATEMENTS=false"
        )
    return None


async def pooler_mode(dsn: str) -> PoolerMode:
    """Find the mode with two clients at once: in transaction mode they meet on a server connection,
    or one of them changes its own.
    """
    async with await _connect(dsn) as one, await _connect(dsn) as other:
        ones, others = set(), set()
        for _ in range(TRIES):
            ones.add(await _backend(one))
            others.add(await _backend(other))
        reported = {one.info.backend_pid}
    if len(ones) > 1 or len(others) > 1 or ones & others:
        return PoolerMode.TRANSACTION
    return PoolerMode.DIRECT if ones == reported else PoolerMode.SESSION


async def carries_prepared(dsn: str) -> bool:
    """Return whether a prepared statement is there when a pooler in transaction mode gives the
    client another server connection.
    """
    async with await _connect(dsn) as one, await _connect(dsn) as other:
        one.prepare_threshold = 1
        for _ in range(TRIES):
            try:
                prepared_on = await _backend(one, prepare=True)
            except (
                psycopg.errors.InvalidSqlStatementName,
                psycopg.errors.DuplicatePreparedStatement,
            ):
                return False
            async with other.transaction():
                if await _backend(other) != prepared_on:
                    continue
                try:
                    await _backend(one, prepare=True)
                except (
                    psycopg.errors.InvalidSqlStatementName,
                    psycopg.errors.DuplicatePreparedStatement,
                ):
                    # what this check prepared lies on the connection that the other client holds
                    # now
                    await other.execute(_SQL["forget_prepared"])
                    return False
    return True


async def _connect(dsn: str) -> AsyncConnection[Any]:
    # whose sessions they are is what is asked: nothing is set on them
    connection = await ServiceConnection.connect(
        dsn,
        autocommit=True,
        prepare_threshold=None,
        **parameters(dsn, "statesvc check", writes=False),
    )
    connection.answer_seconds = CONNECT_TIMEOUT_SECONDS
    return connection


async def _backend(connection: AsyncConnection[Any], *, prepare: bool = False) -> int:
    row = await (await connection.execute(_SQL["backend"], prepare=prepare)).fetchone()
    assert row is not None  # noqa: S101 - a query without FROM has one row
    pid: int = row[0]
    return pid
