"""Checks of a pooler between the service and its server: which of its settings is wrong, and what to do."""

from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, capabilities

from statesvc.cli.doctor.finding import Finding, fail, ok, warn
from statesvc.cli.session import connect
from statesvc.database.dsns import Dsns
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.database.queries import queries
from statesvc.database.sql_errors import ADVICE
from statesvc.roles.connection_limits import worker_limits
from statesvc.settings.service_settings import Settings

_PREPARED: Final = "prepared statements"
_LISTEN: Final = "set STATESVC_LISTEN_URL to the server itself"
TRIES: Final = 4

_SQL = queries("statesvc.cli.doctor", "pooler_checks")


class PoolerMode(Enum):
    """What stands between a client and the server."""

    DIRECT = "direct"
    SESSION = "a pooler that gives each client a server connection of its own"
    TRANSACTION = "a pooler that gives each transaction another server connection"


async def check_pooler(dsns: Dsns, settings: Settings) -> AsyncIterator[Finding]:
    """Checks the addresses in turn: the service's, the one for LISTEN, the owner's."""
    service = await pooler_mode(dsns.service)
    listen = await pooler_mode(dsns.listen) if dsns.is_pooled else service
    yield _wake_ups(listen, is_own=dsns.is_pooled)
    if service is PoolerMode.TRANSACTION:
        yield await _limits(dsns, settings)
        yield await _prepared(dsns, is_on=settings.database.prepared_statements)
    elif not settings.database.prepared_statements:
        yield warn(_PREPARED, "are off without need, so every statement is planned anew: unset STATESVC_PREPARED_STATEMENTS")
    if service is PoolerMode.DIRECT and dsns.is_pooled:
        yield warn(
            "pooler",
            "STATESVC_LISTEN_URL is set, but DATABASE_URL leads to the server itself: each transaction carries time limits for no pooler",
        )
    async for finding in _migrations(dsns, settings, service):
        yield finding


def _wake_ups(mode: PoolerMode, *, is_own: bool) -> Finding:
    variable = "STATESVC_LISTEN_URL" if is_own else "DATABASE_URL"
    match mode:
        case PoolerMode.DIRECT:
            return ok("wake-ups", "LISTEN has a direct connection")
        case PoolerMode.SESSION:
            return ok("wake-ups", f"{variable} leads through a pooler in session mode, where LISTEN works")
        case PoolerMode.TRANSACTION:
            return fail("wake-ups", f"{variable} leads through a pooler in transaction mode: {_LISTEN}, or wake-ups are lost")


async def _limits(dsns: Dsns, settings: Settings) -> Finding:
    if not dsns.is_pooled:
        return fail(
            "time limits",
            f"without STATESVC_LISTEN_URL the pooler is taken for the server, and time limits hit the session's next client: {_LISTEN}",
        )
    limits = worker_limits(settings)
    wanted = limits.milliseconds()
    found = await limits_in_transaction(dsns.service, limits, direct=False)
    lost = ", ".join(f"{name} is {found.get(name)}, not {value}" for name, value in wanted.items() if found.get(name) != value)
    if lost:
        return fail("time limits", f"are lost on the way through the pooler ({lost}): it must be in transaction mode")
    return ok("time limits", "travel with each transaction through the pooler")


async def _prepared(dsns: Dsns, *, is_on: bool) -> Finding:
    if not is_on:
        return ok(_PREPARED, "off, which works behind every pooler")
    if not await carries_prepared(dsns.service):
        return fail(_PREPARED, ADVICE["26000"])
    if not capabilities.has_send_close_prepared():
        return fail(
            _PREPARED,
            "the pooler carries them, but libpq here is older than 17 and can't take them back through it: "
            "install psycopg[binary] 3.2 or later, or set STATESVC_PREPARED_STATEMENTS=false",
        )
    return ok(_PREPARED, "the pooler carries them")


async def _migrations(dsns: Dsns, settings: Settings, service: PoolerMode) -> AsyncIterator[Finding]:
    what = "migrations hold a lock on one session: set STATESVC_OWNER_URL to the server itself"
    if settings.database.owner_url is None:
        if service is PoolerMode.TRANSACTION:
            yield fail("owner", f"DATABASE_URL leads through a pooler in transaction mode; {what}")
        return
    try:
        mode = await pooler_mode(dsns.owner)
    except psycopg.OperationalError as error:
        yield warn("owner", f"STATESVC_OWNER_URL does not answer ({type(error).__name__}): no migration can run from here")
        return
    if mode is PoolerMode.TRANSACTION:
        yield fail("owner", f"STATESVC_OWNER_URL leads through a pooler in transaction mode; {what}")


async def pooler_mode(dsn: str) -> PoolerMode:
    """Two clients at once: in transaction mode they meet on a server connection, or one of them changes its own."""
    async with await connect(dsn) as one, await connect(dsn) as other:
        ones, others = set(), set()
        for _ in range(TRIES):
            ones.add(await _backend(one))
            others.add(await _backend(other))
        reported = {one.info.backend_pid}
    if len(ones) > 1 or len(others) > 1 or ones & others:
        return PoolerMode.TRANSACTION
    return PoolerMode.DIRECT if ones == reported else PoolerMode.SESSION


async def carries_prepared(dsn: str) -> bool:
    """Whether a statement that a client prepared is there when a pooler in transaction mode gives it another server connection."""
    async with await connect(dsn) as one, await connect(dsn) as other:
        one.prepare_threshold = 1
        for _ in range(TRIES):
            try:
                prepared_on = await _backend(one, prepare=True)
            except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
                return False
            async with other.transaction():
                if await _backend(other) != prepared_on:
                    continue
                try:
                    await _backend(one, prepare=True)
                except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
                    # what this check prepared lies on the connection that the other client holds now
                    await other.execute(_SQL["forget_prepared"])
                    return False
    return True


async def limits_in_transaction(dsn: str, limits: PoolLimits, *, direct: bool) -> Mapping[str, int]:
    """The time limits, in milliseconds, that a transaction of the service would have."""
    async with (
        make_pool(dsn, name="statesvc command", limits=limits, prepared_statements=False, direct=direct) as pool,
        pool.connection() as connection,
        connection.transaction(),
    ):
        rows = await (await connection.execute(_SQL["limits"])).fetchall()
    return dict(rows)


async def _backend(connection: AsyncConnection[Any], *, prepare: bool = False) -> int:
    row = await (await connection.execute(_SQL["backend"], prepare=prepare)).fetchone()
    assert row is not None  # noqa: S101 - a query without FROM has one row
    pid: int = row[0]
    return pid
