"""A transaction whose first statements leave with its BEGIN and whose last leave with its COMMIT."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from statesvc.database.pooled import PooledConnection


@asynccontextmanager
async def pipelined_transaction(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """A transaction in a pipeline; the connection is in autocommit and idle. What fails at the end is raised after the body.

    psycopg's own `transaction` waits for the answers to BEGIN, to the last statement and to COMMIT: three round trips more. Behind a
    pooler, where a transaction begins with its limits, it is still that one.

    Raises ProgrammingError inside another transaction: its COMMIT would be that one's.
    """
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise psycopg.ProgrammingError("a pipelined transaction begins on an idle connection, not inside another transaction")
    if isinstance(connection, PooledConnection):
        async with connection.pipeline(), connection.transaction():
            yield
        return
    try:
        async with connection.pipeline():
            await connection.execute("BEGIN")
            yield
            # after a statement that failed the server skips it, and the pipeline raises that statement's error
            await connection.execute("COMMIT")
    except BaseException:
        # where even this fails, the pool discards the connection
        with suppress(psycopg.Error):
            await connection.rollback()
        raise
