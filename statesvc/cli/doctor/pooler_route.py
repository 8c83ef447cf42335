"""Which way leads to the server: straight, or through a pooler, and what that pooler can carry. Asks only; leaves nothing behind."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from statesvc.cli.session import connect
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.database.queries import queries

TRIES: Final = 4

_SQL = queries("statesvc.cli.doctor", "pooler_route")


class Route(Enum):
    """What stands between."""

    DIRECT = "direct"
    SESSION = "a pooler that gives each client a server connection of its own"
    TRANSACTION = "a pooler that gives each transaction another server connection"


async def route_to(dsn: str) -> Route:
    """Two clients at once: in transaction mode they meet on a server connection, or one of them changes its own."""
    async with await connect(dsn) as one, await connect(dsn) as other:
        ones, others = set(), set()
        for _ in range(TRIES):
            ones.add(await _backend(one))
            others.add(await _backend(other))
        reported = {one.info.backend_pid}
    if len(ones) > 1 or len(others) > 1 or ones & others:
        return Route.TRANSACTION
    return Route.DIRECT if ones == reported else Route.SESSION


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
                    # what was prepared for this question lies on the connection that the other client holds now
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
