"""A transaction in a pipeline: all of it or nothing, and a connection that can go on."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from statesvc.database.pipelined import pipelined_transaction


@pytest.fixture
async def connection(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as opened:
        await opened.execute("CREATE TEMPORARY TABLE number (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        yield opened


async def numbers(connection: AsyncConnection[Any]) -> list[int]:
    """What is stored, on a connection that is in no transaction any more."""
    assert connection.info.transaction_status == TransactionStatus.IDLE
    return [n for (n,) in await (await connection.execute("SELECT n FROM number ORDER BY n")).fetchall()]


async def test_it_commits_what_it_sent_and_begins_again(connection: AsyncConnection[Any]) -> None:
    for n in range(4):
        async with pipelined_transaction(connection):
            await connection.execute("INSERT INTO number VALUES (%s)", [n])
    assert await numbers(connection) == [0, 1, 2, 3]


async def test_its_limits_end_with_it(connection: AsyncConnection[Any]) -> None:
    async with pipelined_transaction(connection):
        await connection.execute("SELECT set_config('lock_timeout', '5', true)")
    assert await (await connection.execute("SHOW lock_timeout")).fetchone() == ("0",)


async def store_one(connection: AsyncConnection[Any], *, then: Any = "SELECT 1", error: BaseException | None = None) -> None:
    """Stores a number and executes another statement; its answer is not waited for. Then the body ends, or raises `error`."""
    async with pipelined_transaction(connection):
        await connection.execute("INSERT INTO number VALUES (1)")
        await connection.execute(then)
        if error is not None:
            raise error


async def ask(connection: AsyncConnection[Any], query: Any) -> None:
    """Stores a number and waits for the answer to a query."""
    async with pipelined_transaction(connection):
        await connection.execute("INSERT INTO number VALUES (1)")
        await (await connection.execute(query)).fetchall()


@pytest.mark.parametrize("last", ["SELECT 1 / 0", "INSERT INTO number VALUES (1)"], ids=["a statement", "a constraint at the commit"])
async def test_what_fails_last_is_raised_and_nothing_is_stored(connection: AsyncConnection[Any], last: str) -> None:
    with pytest.raises((psycopg.errors.DivisionByZero, psycopg.errors.UniqueViolation)):
        await store_one(connection, then=last)
    assert await numbers(connection) == []


async def test_an_answer_that_is_an_error_undoes_it(connection: AsyncConnection[Any]) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        await ask(connection, "SELECT 1 / 0")
    assert await numbers(connection) == []


@pytest.mark.parametrize("error", [ValueError(), asyncio.CancelledError()])
async def test_an_error_of_the_body_undoes_it(connection: AsyncConnection[Any], error: BaseException) -> None:
    with pytest.raises(type(error)):
        await store_one(connection, error=error)
    assert await numbers(connection) == []


async def test_inside_another_transaction_it_is_refused_and_commits_nothing_of_it(connection: AsyncConnection[Any]) -> None:
    with pytest.raises(psycopg.ProgrammingError, match="idle connection"):
        async with connection.transaction():
            await store_one(connection)
    assert await numbers(connection) == []


async def test_a_connection_that_breaks_says_so(connection: AsyncConnection[Any]) -> None:
    with pytest.raises(psycopg.OperationalError):
        await ask(connection, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert connection.broken
