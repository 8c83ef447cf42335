"""Connections have time limits, and a pool outlives its connections."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.database.pool import Pool, PoolBusyError, PoolLimits, make_pool
from statesvc.database.service_connection import RetryingConnection
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import connect_direct
from tests.soak.proxy import proxy_to
from tests.statesvc.conftest import one
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
