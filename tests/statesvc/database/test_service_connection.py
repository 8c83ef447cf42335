"""A silent server is given up by the client, with all connections to it; each connection has the
settings that we rely on.
"""

import asyncio
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import PoolTimeout

from statesvc.database.open_connection import open_connection, open_sync_connection
from statesvc.database.password_command import (
    PasswordCommand,
    PasswordCommandError,
    choose_password_command,
)
from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.pool import Pool, PoolLimits, connection_fault, make_pool
from statesvc.database.session_settings import ANSWER_MARGIN_SECONDS, SessionLimits
from statesvc.database.sql_errors import (
    ConnectionCause,
    Failure,
    ServerSilentError,
    connection_cause,
    failure,
)
from tests.acceptance.forced_settings import LIMITS as FORCED_LIMITS
from tests.acceptance.forced_settings import PARSING
from tests.soak.proxy import proxy_to
from tests.statesvc.conftest import one
from tests.world.postgres import Server
from tests.world.waiting import until

LIMITS = PoolLimits(
    connections_max=3, connections_min=3, acquire_seconds=5, statement_seconds=0.1, lock_seconds=0.1
)
SLACK_SECONDS = 3.0
FORCED = PARSING | FORCED_LIMITS


@contextmanager
def stopped(*backends: int) -> Iterator[None]:
    if "TEST_DATABASE_URL" in os.environ:
        pytest.skip("that server's processes may run elsewhere")
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def opened(database: Any) -> AsyncIterator[tuple[Pool, list[int]]]:
    """Open a pool with three idle connections; return it with the server's processes behind
    them.
    """
    async with make_pool(database.service_dsn, name="statesvc test", limits=LIMITS) as pool:
        connections = [await pool.getconn() for _ in range(3)]
        backends = [connection.info.backend_pid for connection in connections]
        for connection in connections:
            await pool.putconn(connection)
        yield pool, backends


async def test_the_first_to_meet_a_stopped_backend_waits_for_its_deadline_and_nobody_after_it(
    database: Any,
) -> None:
    async with opened(database) as (pool, backends):
        with stopped(*backends):
            with pytest.raises(ServerSilentError) as silent:
                async with (
                    asyncio.timeout(ANSWER_MARGIN_SECONDS + SLACK_SECONDS),
                    pool.connection() as connection,
                ):
                    await one(connection, "SELECT 1")
            assert failure(silent.value) is Failure.UNAVAILABLE
            async with asyncio.timeout(1):
                for _ in range(4):
                    async with pool.connection() as connection:
                        assert await one(connection, "SELECT pg_backend_pid()") not in backends


async def test_statements_that_travel_together_have_one_deadline(database: Any) -> None:
    async with opened(database) as (pool, backends), pool.connection() as connection:
        with stopped(*backends), pytest.raises(ServerSilentError):
            async with (
                asyncio.timeout(ANSWER_MARGIN_SECONDS + SLACK_SECONDS),
                pipelined_transaction(connection) as pipeline,
            ):
                await pipeline.execute("SELECT 1")
        assert connection.closed


async def test_a_task_that_is_cancelled_while_the_server_is_silent_ends(database: Any) -> None:
    async with make_pool(
        database.service_dsn,
        name="statesvc test",
        limits=PoolLimits(connections_max=1, acquire_seconds=5),
    ) as pool:
        async with pool.connection() as connection:
            asking = asyncio.create_task(one(connection, "SELECT pg_sleep(60)"))
            await until(
                lambda: connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE
            )
            with stopped(connection.info.backend_pid):
                asking.cancel()
                done, _ = await asyncio.wait({asking}, timeout=SLACK_SECONDS)
            assert done == {asking}
            assert asking.cancelled()
        async with asyncio.timeout(5), pool.connection() as connection:
            assert await one(connection, "SELECT 1") == 1


async def test_an_answer_that_came_while_this_process_was_busy_counts(database: Any) -> None:
    async with await open_connection(
        database.service_dsn, application_name="statesvc test", limits=LIMITS
    ) as connection:
        asking = asyncio.create_task(one(connection, "SELECT 1"))
        await asyncio.sleep(0)
        time.sleep(ANSWER_MARGIN_SECONDS + 0.3)  # noqa: ASYNC251 - as a process that was stopped
        assert await asking == 1
        assert await one(connection, "SELECT 2") == 2


async def test_a_network_that_acknowledges_and_never_answers_is_left(
    database: Any, server: Server
) -> None:
    async with proxy_to(int(str(conninfo_to_dict(server.service_dsn)["port"]))) as proxy:
        dsn = make_conninfo(database.service_dsn, host="127.0.0.1", port=proxy.port)
        async with make_pool(dsn, name="statesvc test", limits=LIMITS) as pool:
            async with pool.connection() as connection:
                await one(connection, "SELECT 1")
                proxy.swallow()
                with pytest.raises(ServerSilentError):
                    await one(connection, "SELECT 1")
            async with asyncio.timeout(1), pool.connection() as connection:
                assert await one(connection, "SELECT 1") == 1


async def test_a_pool_leaves_a_server_that_only_reads_and_says_so_until_it_takes_writes_again(
    database: Any,
) -> None:
    limits = PoolLimits(
        connections_max=3, connections_min=3, acquire_seconds=2, statement_seconds=5
    )
    async with (
        make_pool(database.service_dsn, name="statesvc test", limits=limits) as pool,
        await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as admin,
    ):
        name = admin.info.dbname
        # one that logs in meanwhile would go on writing
        await pool.wait()
        async with pool.connection() as connection:
            await connection.execute("SET default_transaction_read_only = on")
            await admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                await connection.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('x')")
        with pytest.raises(PoolTimeout):
            async with pool.connection():
                pass
        assert connection_fault(pool) == "session is read-only"
        await admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        async with asyncio.timeout(5), pool.connection() as connection:
            await connection.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('x')")
        assert connection_fault(pool) is None


async def test_an_address_that_says_which_server_it_means_is_taken_as_it_is(database: Any) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as admin:
        await admin.execute(
            f'ALTER DATABASE "{admin.info.dbname}" SET default_transaction_read_only = on'
        )
    any_server = make_conninfo(database.service_dsn, target_session_attrs="any")
    async with await open_connection(any_server, application_name="statesvc test") as connection:
        assert await one(connection, "SHOW transaction_read_only") == "on"
    with pytest.raises(psycopg.OperationalError, match="read-only"):
        await open_connection(database.service_dsn, application_name="statesvc test")


def force(database: Any, name: str, value: str) -> None:
    with psycopg.connect(database.superuser_dsn, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE \"{admin.info.dbname}\" SET {name} = '{value}'")


def read_all(row: tuple[Any, ...]) -> None:
    assert row == (
        datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
        "1 day 00:01:30",
        b"\x00\\'x",
        "a – b\\n",
        [None, "NULL"],
        0.1 + 0.2,
        True,
    )


ASKED = (
    "SELECT '2026-03-04 05:06:07+00'::timestamptz, '1 day 90 seconds'::interval::text,"
    " %(bytes)s::bytea, 'a – b\\n', '{NULL,\"NULL\"}'::text[], 0.1::float8 + 0.2::float8,"
    " current_setting('TimeZone') = 'UTC'"
)
PARAMETERS = {"bytes": b"\x00\\'x"}


async def test_whatever_the_database_sets_what_is_read_is_what_is_there(database: Any) -> None:
    # behind a pooler: test_settings_forced_after_a_server_connection_was_opened_reach_no_statement
    for name, value in FORCED.items():
        force(database, name, value)
    limits = SessionLimits(statement_seconds=20, lock_seconds=10)
    async with await open_connection(
        database.service_dsn, application_name="statesvc test", limits=limits
    ) as connection:
        for _ in range(2):
            read_all(await (await connection.execute(ASKED, PARAMETERS)).fetchone() or ())
        async with pipelined_transaction(connection) as pipeline:
            rows = await pipeline.execute(ASKED, PARAMETERS)
            read_all(await rows.fetchone())
        async with connection.transaction():
            assert await one(connection, "SHOW transaction_isolation") == "read committed"
        assert await one(connection, "SHOW statement_timeout") == "20s"
        assert await one(connection, "SHOW lock_timeout") == "10s"
    async with (
        make_pool(database.service_dsn, name="statesvc test", limits=LIMITS) as pool,
        pool.connection() as connection,
    ):
        read_all(await (await connection.execute(ASKED, PARAMETERS)).fetchone() or ())
    with open_sync_connection(database.service_dsn, application_name="statesvc test") as sync:
        read_all(sync.execute(ASKED, PARAMETERS).fetchone() or ())


@pytest.mark.parametrize(
    ("variable", "value"),
    [("PGDATESTYLE", "German"), ("PGCLIENTENCODING", "LATIN1"), ("PGTZ", "Asia/Kolkata")],
)
async def test_whatever_the_environment_sets_what_is_read_is_what_is_there(
    database: Any, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    async with await open_connection(
        database.service_dsn, application_name="statesvc test"
    ) as connection:
        read_all(await (await connection.execute(ASKED, PARAMETERS)).fetchone() or ())


Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Make a program of these lines of shell; each call leaves its arguments in `calls`.

    No command is chosen afterwards.
    """

    def make(lines: str) -> str:
        path = tmp_path / "password"
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{lines}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    yield make
    choose_password_command(None)


def without_password(dsn: str) -> tuple[str, str]:
    given = conninfo_to_dict(dsn)
    return str(given.pop("password")), make_conninfo("", **given)


async def test_connections_of_every_kind_log_in_with_what_it_prints(
    database: Server, program: Program, tmp_path: Path
) -> None:
    password, dsn = without_password(database.service_dsn)
    choose_password_command(program(f"echo {password}") + " {user} {port} '{dbname}'")
    async with await open_connection(dsn, application_name="statesvc test"):
        pass
    open_sync_connection(dsn, application_name="statesvc test").close()
    limits = PoolLimits(connections_max=3, connections_min=3, acquire_seconds=5)
    async with make_pool(dsn, name="statesvc test", limits=limits) as pool:
        await pool.wait()
        async with pool.connection() as connection:
            assert connection.info.user == "statesvc_service"
    given = conninfo_to_dict(dsn)
    assert set((tmp_path / "calls").read_text().splitlines()) == {
        f"statesvc_service {given.get('port')} {given['dbname']}"
    }
    assert len((tmp_path / "calls").read_text().splitlines()) == 1, (
        "a burst of connections starts it once"
    )


async def test_what_was_refused_is_asked_for_anew(
    database: Server, program: Program, tmp_path: Path
) -> None:
    password, dsn = without_password(database.service_dsn)
    secret = tmp_path / "secret"
    secret.write_text("of yesterday")
    choose_password_command(program(f"cat {secret}"))
    with pytest.raises(psycopg.OperationalError) as raised:
        await open_connection(dsn, application_name="statesvc test")
    assert connection_cause(raised.value) is ConnectionCause.AUTH
    secret.write_text(f"{password}\n")
    async with await open_connection(dsn, application_name="statesvc test"):
        pass


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("exit 3", "ended with 3"),
        ("true", "printed nothing"),
        ("echo secret; exit 1", "ended with 1"),
    ],
)
async def test_a_program_that_prints_none_is_told_without_what_it_said(
    program: Program, lines: str, words: str
) -> None:
    with pytest.raises(PasswordCommandError, match=words) as raised:
        await PasswordCommand(program(lines)).password("host=/nowhere user=x")
    assert "secret" not in str(raised.value)
    with pytest.raises(PasswordCommandError, match="there is no program"):
        PasswordCommand("/nowhere/at/all").password_now("host=/nowhere user=x")


async def test_an_address_that_has_its_password_is_taken_as_it_is(
    database: Server, program: Program, tmp_path: Path
) -> None:
    choose_password_command(program("echo wrong"))
    async with await open_connection(database.service_dsn, application_name="statesvc test"):
        pass
    passfile = make_conninfo(
        without_password(database.service_dsn)[1], passfile=str(tmp_path / "pgpass")
    )
    assert await PasswordCommand(sys.executable).password(passfile) is None
    assert not (tmp_path / "calls").exists()
