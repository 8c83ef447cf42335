"""Connections have time limits, also behind a pooler in transaction mode, and a pool outlives them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import replace
from operator import methodcaller
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, IsolationLevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.pool import Pool, PoolBusyError, PoolLimits, make_pool
from statesvc.database.queries import Sender
from statesvc.database.service_connection import RetryingConnection
from statesvc.database.session_settings import SESSION_SETTINGS
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import connect_direct
from tests.acceptance.forced_settings import PARSING
from tests.soak.proxy import proxy_to
from tests.statesvc.conftest import one
from tests.world.pgbouncer import pooled
from tests.world.postgres import Server
from tests.world.waiting import until

LIMITS = PoolLimits(
    connections_max=3,
    acquire_seconds=5,
    statement_seconds=1.5,
    lock_seconds=0.75,
    idle_in_transaction_seconds=15,
)

_LOCK = "SELECT carrier_id FROM statesvc.lane WHERE carrier_id = '' FOR UPDATE"


@pytest.fixture
async def pool(database: Any) -> AsyncIterator[Pool]:
    async with make_pool(database.service_dsn, name="statesvc test", limits=LIMITS) as opened:
        yield opened


async def test_each_connection_has_its_limits_and_its_name(pool: Pool) -> None:
    async with pool.connection() as connection:
        shown = {
            name: await one(connection, f"SHOW {name}")
            for name in (
                *(
                    "statement_timeout",
                    "lock_timeout",
                    "idle_in_transaction_session_timeout",
                    "constraint_exclusion",
                ),
                *("TimeZone", "application_name"),
            )
        }
    assert shown == {
        "statement_timeout": "1500ms",
        "lock_timeout": "750ms",
        "idle_in_transaction_session_timeout": "15s",
        "constraint_exclusion": "off",
        "TimeZone": "UTC",
        "application_name": "statesvc test",
    }


async def test_a_client_that_stops_inside_a_pipeline_holds_its_locks_no_longer_than_a_transaction_may_last(
    database: Any,
) -> None:
    limits = replace(LIMITS, idle_in_transaction_seconds=0.3, transaction_seconds=0.6)
    async with (
        make_pool(database.owner_dsn, name="statesvc test", limits=limits) as pool,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as other,
    ):
        if other.info.server_version < 170000:
            pytest.skip("PostgreSQL 16 can't limit a whole transaction")
        # the pipeline's end is what raises
        with pytest.raises(psycopg.Error) as ended:  # noqa: PT012
            async with (
                pool.connection() as connection,
                connection.pipeline(),
                connection.transaction(),
            ):
                # answered after a flush, not after a sync: to the server the next
                # statement may come any moment
                await (await connection.execute(_LOCK)).fetchall()
                async with asyncio.timeout(5):
                    assert await one(other, _LOCK) == ""
        assert failure(ended.value) in {Failure.UNAVAILABLE, Failure.TRANSIENT}


async def test_connections_that_died_while_idle_reach_nobody(pool: Pool, database: Any) -> None:
    connections = [await pool.getconn() for _ in range(3)]
    for connection in connections:
        await pool.putconn(connection)
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as admin:
        dead = (
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE"
            " application_name = 'statesvc test'"
        )
        assert await one(admin, f"{dead} AND datname = current_database()") == 3
    async with asyncio.timeout(1):
        for _ in range(6):
            async with pool.connection() as connection:
                assert await one(connection, "SELECT 1") == 1


async def test_a_server_that_is_back_at_once_is_found_by_the_same_attempt(
    database: Any, server: Server
) -> None:
    async with proxy_to(int(str(conninfo_to_dict(server.service_dsn)["port"]))) as proxy:
        proxy.cut()
        attempt = asyncio.create_task(
            RetryingConnection.connect(
                make_conninfo(database.service_dsn, host="127.0.0.1", port=proxy.port)
            )
        )
        await until(lambda: proxy.refused != 0)
        proxy.heal()
        async with await attempt as connection:
            assert await one(connection, "SELECT 1") == 1


async def test_a_database_that_is_back_is_found_within_half_a_second(
    database: Any, server: Server
) -> None:
    limits = replace(LIMITS, connections_max=1, acquire_seconds=0.2)
    async with proxy_to(int(str(conninfo_to_dict(server.service_dsn)["port"]))) as proxy:
        dsn = make_conninfo(database.service_dsn, host="127.0.0.1", port=proxy.port)
        async with make_pool(dsn, name="statesvc test", limits=limits) as pool:
            await pool.wait()
            proxy.cut()
            # psycopg's own next try would be two seconds after the second one
            while proxy.refused < 2:
                assert not await _answers(pool)
            proxy.heal()
            async with asyncio.timeout(1.5):
                while not await _answers(pool):
                    pass


@pytest.mark.parametrize("waiting_max", [1, 100])
async def test_a_busy_pool_is_told_from_a_database_that_does_not_answer(
    database: Any, waiting_max: int
) -> None:
    limits = replace(LIMITS, connections_max=1, acquire_seconds=0.2, waiting_max=waiting_max)
    async with make_pool(database.service_dsn, name="statesvc test", limits=limits) as pool:

        async def read() -> None:
            async with pool.connection() as connection:
                await connection.execute("SELECT pg_sleep(0.08)")

        ended = await asyncio.gather(*(read() for _ in range(10)), return_exceptions=True)
        assert {type(error) for error in ended if error is not None} == {PoolBusyError}


async def test_a_half_open_socket_is_noticed(database: Any, server: Server) -> None:
    by_tcp = make_conninfo(
        database.service_dsn, host="127.0.0.1", port=conninfo_to_dict(server.service_dsn)["port"]
    )
    async with (
        make_pool(by_tcp, name="statesvc test", limits=LIMITS) as pool,
        pool.connection() as connection,
    ):
        assert _seconds_until_noticed(connection) <= 20
    async with await connect_direct(by_tcp, application_name="statesvc test") as direct:
        assert _seconds_until_noticed(direct) <= 20


def _seconds_until_noticed(connection: AsyncConnection[Any]) -> float:
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as watched:
        assert watched.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count, unacknowledged_ms = (
            watched.getsockopt(socket.IPPROTO_TCP, option)
            for option in (
                socket.TCP_KEEPIDLE,
                socket.TCP_KEEPINTVL,
                socket.TCP_KEEPCNT,
                socket.TCP_USER_TIMEOUT,
            )
        )
    return max(idle + interval * count, unacknowledged_ms / 1000)


async def _answers(pool: Pool) -> bool:
    try:
        return bool(await _ask(pool))
    except psycopg.OperationalError:
        return False


async def _ask(pool: Pool) -> Any:
    async with pool.connection() as connection:
        return await one(connection, "SELECT 1")


POOLER_LIMITS = PoolLimits(
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
async def pool_behind(through: str) -> AsyncIterator[Pool]:
    async with make_pool(
        through, name="statesvc test", limits=POOLER_LIMITS, prepared_statements=False, direct=False
    ) as opened:
        yield opened


async def shown(connection: Sender) -> list[str]:
    query = "SELECT " + ", ".join(f"current_setting('{name}')" for name in SHOWN)
    row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return list(row)


async def test_a_transaction_and_a_lone_statement_have_the_limits_and_a_stranger_has_none(
    pool_behind: Pool, through: str
) -> None:
    async with (
        pool_behind.connection() as connection,
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
async def test_a_lone_statement_answers_as_ever(pool_behind: Pool, binary: bool) -> None:  # noqa: FBT001
    async with pool_behind.connection() as connection:
        cursor = connection.cursor(binary=binary)
        await cursor.execute("SELECT n, %(text)s FROM generate_series(1, 3) n", {"text": "x"})
        assert await cursor.fetchall() == [(1, "x"), (2, "x"), (3, "x")]
        assert (await connection.execute("SELECT FROM generate_series(1, 4)")).rowcount == 4
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await connection.execute("SELECT nonsense")
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


@pytest.mark.parametrize("opened", [nullcontext, methodcaller("transaction")])
async def test_a_statement_that_takes_too_long_is_ended_alone_and_in_a_transaction(
    pool_behind: Pool, opened: Any
) -> None:
    async with pool_behind.connection() as connection:
        with pytest.raises(psycopg.errors.QueryCanceled):
            async with opened(connection):
                await connection.execute("SELECT pg_sleep(30)")
        assert await one(connection, "SELECT 1") == 1


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
    limits = replace(POOLER_LIMITS, connections_min=1, connections_max=1)
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


async def test_a_connection_may_choose_the_isolation_of_its_transactions(pool_behind: Pool) -> None:
    async with pool_behind.connection() as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        async with connection.transaction():
            row = await (
                await connection.execute("SELECT current_setting('transaction_isolation')")
            ).fetchone()
        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
    assert row == ("repeatable read",)
