"""Pooler in transaction mode: each transaction has its limits, and leaves none to a stranger."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, IsolationLevel
from psycopg.conninfo import conninfo_to_dict

from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.database.queries import Sender
from statesvc.database.session_settings import SESSION_SETTINGS
from tests.acceptance.forced_settings import PARSING
from tests.statesvc.conftest import one
from tests.world.pgbouncer import pooled
from tests.world.postgres import Server

LIMITS = PoolLimits(
    connections_max=3,
    acquire_seconds=5,
    statement_seconds=0.6,
    lock_seconds=0.3,
    idle_in_transaction_seconds=15,
)
SHOWN = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


@pytest.fixture
async def through(database: Any) -> AsyncIterator[str]:
    async with pooled(database.service_dsn) as (dsn,):
        yield dsn


@pytest.fixture
async def pool(through: str) -> AsyncIterator[Pool]:
    async with make_pool(
        through, name="statesvc test", limits=LIMITS, prepared_statements=False, direct=False
    ) as opened:
        yield opened


async def shown(connection: Sender) -> list[str]:
    query = "SELECT " + ", ".join(f"current_setting('{name}')" for name in SHOWN)
    row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return list(row)


async def test_a_transaction_and_a_lone_statement_have_the_limits_and_a_stranger_has_none(
    pool: Pool, through: str
) -> None:
    async with (
        pool.connection() as connection,
        await AsyncConnection.connect(through, autocommit=True, prepare_threshold=None) as stranger,
    ):
        for _ in range(3):
            assert (await shown(connection))[:2] == ["600ms", "300ms"]
            assert await shown(stranger) == ["0", "0", "0"]
            async with connection.transaction():
                assert await shown(connection) == ["600ms", "300ms", "15s"]
                async with connection.transaction():
                    assert await shown(connection) == ["600ms", "300ms", "15s"]
                assert await shown(stranger) == ["0", "0", "0"]
            async with connection.pipeline(), connection.transaction():
                assert await shown(connection) == ["600ms", "300ms", "15s"]
            async with pipelined_transaction(connection) as pipeline:
                assert await shown(pipeline) == ["600ms", "300ms", "15s"]
            assert await shown(stranger) == ["0", "0", "0"]


@pytest.mark.parametrize("binary", [False, True])
# a parameter of the test
async def test_a_lone_statement_answers_as_ever(pool: Pool, binary: bool) -> None:  # noqa: FBT001
    async with pool.connection() as connection:
        cursor = connection.cursor(binary=binary)
        await cursor.execute("SELECT n, %(text)s FROM generate_series(1, 3) n", {"text": "x"})
        assert await cursor.fetchall() == [(1, "x"), (2, "x"), (3, "x")]
        assert (await connection.execute("SELECT FROM generate_series(1, 4)")).rowcount == 4
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await connection.execute("SELECT nonsense")
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


async def test_a_lone_statement_that_takes_too_long_is_ended(pool: Pool) -> None:
    async with pool.connection() as connection:
        with pytest.raises(psycopg.errors.QueryCanceled):
            await connection.execute("SELECT pg_sleep(30)")
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


async def test_a_statement_of_a_transaction_that_takes_too_long_is_ended(pool: Pool) -> None:
    async with pool.connection() as connection:
        with pytest.raises(psycopg.errors.QueryCanceled):
            await _sleep_in_transaction(connection)
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


async def _sleep_in_transaction(connection: AsyncConnection[Any]) -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_sleep(30)")


async def settings_of(connection: Sender) -> dict[str, str]:
    query = "SELECT name, current_setting(name) FROM unnest(%(names)s::text[]) name"
    rows = await connection.execute(query, {"names": [*SESSION_SETTINGS, "transaction_isolation"]})
    return dict(await rows.fetchall())


async def test_settings_forced_after_a_server_connection_was_opened_reach_no_statement(
    database: Any, server: Server, through: str
) -> None:
    # the pool prepares its connection on an old server connection, and then gets a new one
    ours = {**SESSION_SETTINGS, "transaction_isolation": "read committed"}
    name = conninfo_to_dict(database.service_dsn)["dbname"]
    limits = replace(LIMITS, connections_min=1, connections_max=1)
    async with await AsyncConnection.connect(
        through, autocommit=True, prepare_threshold=None
    ) as stranger:
        old = await one(stranger, "SELECT pg_backend_pid()")
        with psycopg.connect(server.superuser_dsn, autocommit=True) as admin:
            for setting, value in PARSING.items():
                admin.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'")
        async with make_pool(
            through, name="statesvc test", limits=limits, prepared_statements=False, direct=False
        ) as pool:
            await pool.wait()
            async with pool.connection() as connection, stranger.transaction():
                assert await one(stranger, "SELECT pg_backend_pid()") == old
                assert await one(connection, "SELECT pg_backend_pid()") != old
                assert await settings_of(connection) == ours
                async with connection.transaction():
                    assert await settings_of(connection) == ours
                async with connection.pipeline(), connection.transaction():
                    assert await settings_of(connection) == ours
                async with pipelined_transaction(connection) as pipeline:
                    assert await settings_of(pipeline) == ours
                unknown = await connection.execute(
                    "SELECT (%(times)s::timestamptz[])[1]", {"times": [None]}
                )
                assert await unknown.fetchone() == (None,)


async def test_a_connection_may_choose_the_isolation_of_its_transactions(pool: Pool) -> None:
    async with pool.connection() as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        async with connection.transaction():
            row = await (
                await connection.execute("SELECT current_setting('transaction_isolation')")
            ).fetchone()
        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
    assert row == ("repeatable read",)
