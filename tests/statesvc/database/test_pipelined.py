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
        await opened.execute(
            "CREATE TEMPORARY TABLE number (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
        )
        yield opened


async def numbers(connection: AsyncConnection[Any]) -> list[int]:
    """Return what is stored, on a connection that is in no transaction any more."""
    assert connection.info.transaction_status == TransactionStatus.IDLE
    return [
        n for (n,) in await (await connection.execute("SELECT n FROM number ORDER BY n")).fetchall()
    ]


async def test_it_commits_what_it_sent_and_begins_again(connection: AsyncConnection[Any]) -> None:
    for n in range(4):
        async with pipelined_transaction(connection) as pipeline:
            await pipeline.execute("INSERT INTO number VALUES (%(n)s)", {"n": n})
    assert await numbers(connection) == [0, 1, 2, 3]


async def test_its_limits_end_with_it(connection: AsyncConnection[Any]) -> None:
    async with pipelined_transaction(connection) as pipeline:
        await pipeline.execute("SELECT set_config('lock_timeout', '5', true)")
    assert await (await connection.execute("SHOW lock_timeout")).fetchone() == ("0",)


async def store_one(
    connection: AsyncConnection[Any], *, then: Any = "SELECT 1", error: BaseException | None = None
) -> None:
    """Store a number and execute another statement; its answer is not waited for.

    Then the body ends, or raises `error`.
    """
    async with pipelined_transaction(connection) as pipeline:
        await pipeline.execute("INSERT INTO number VALUES (1)")
        await pipeline.execute(then)
        if error is not None:
            raise error


async def ask(connection: AsyncConnection[Any], query: Any) -> None:
    """Store a number and wait for the answer to a query."""
    async with pipelined_transaction(connection) as pipeline:
        await pipeline.execute("INSERT INTO number VALUES (1)")
        await (await pipeline.execute(query)).fetchall()


@pytest.mark.parametrize(
    "last",
    ["SELECT 1 / 0", "INSERT INTO number VALUES (1)"],
    ids=["a statement", "a constraint at the commit"],
)
async def test_what_fails_last_is_raised_and_nothing_is_stored(
    connection: AsyncConnection[Any], last: str
) -> None:
    with pytest.raises((psycopg.errors.DivisionByZero, psycopg.errors.UniqueViolation)):
        await store_one(connection, then=last)
    assert await numbers(connection) == []


async def test_an_answer_that_is_an_error_undoes_it(connection: AsyncConnection[Any]) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        await ask(connection, "SELECT 1 / 0")
    assert await numbers(connection) == []


@pytest.mark.parametrize("error", [ValueError(), asyncio.CancelledError()])
async def test_an_error_of_the_body_undoes_it(
    connection: AsyncConnection[Any], error: BaseException
) -> None:
    with pytest.raises(type(error)):
        await store_one(connection, error=error)
    assert await numbers(connection) == []


async def test_inside_another_transaction_it_is_refused_and_commits_nothing_of_it(
    connection: AsyncConnection[Any],
) -> None:
    with pytest.raises(psycopg.ProgrammingError, match="idle connection"):
        async with connection.transaction():
            await store_one(connection)
    assert await numbers(connection) == []


async def test_a_connection_that_breaks_says_so(connection: AsyncConnection[Any]) -> None:
    with pytest.raises(psycopg.OperationalError):
        await ask(connection, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert connection.broken


async def test_answers_come_in_any_order_and_as_often_as_they_are_asked_for(
    connection: AsyncConnection[Any],
) -> None:
    async with pipelined_transaction(connection) as pipeline:
        first = await pipeline.execute(
            "SELECT %(n)s::int, '100 %%', %(text)s, %(n)s::int + 1", {"n": 1, "text": None}
        )
        second = await pipeline.execute("SELECT generate_series(1, %(n)s)", {"n": 3}, binary=True)
        nothing = await pipeline.execute("INSERT INTO number VALUES (7)")
        assert await second.fetchall() == [(1,), (2,), (3,)]
        assert await second.fetchone() == (1,)
        assert await first.fetchone() == (1, "100 %", None, 2)
        assert await nothing.fetchall() == []
        assert await nothing.fetchone() is None


async def test_a_statement_is_prepared_once_for_the_types_of_its_parameters(
    connection: AsyncConnection[Any],
) -> None:
    for value in (1, 2, "3", 4):
        async with pipelined_transaction(connection) as pipeline:
            for _ in range(2):
                await pipeline.execute("SELECT %(value)s::text", {"value": value})
    prepared = await connection.execute(
        "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'statesvc%'"
    )
    assert await prepared.fetchone() == (4,), "BEGIN and COMMIT too"


async def test_what_could_not_be_prepared_is_prepared_again(
    connection: AsyncConnection[Any],
) -> None:
    async def select(*, after: Any) -> None:
        async with pipelined_transaction(connection) as pipeline:
            await pipeline.execute(after)
            await pipeline.execute("SELECT %(value)s::text", {"value": 1})

    with pytest.raises(psycopg.errors.DivisionByZero):
        await select(after="SELECT 1 / 0")
    await select(after="SELECT 1")


async def test_more_than_the_sockets_hold_goes_both_ways(connection: AsyncConnection[Any]) -> None:
    text = "x" * 4_000_000
    async with pipelined_transaction(connection) as pipeline:
        asked = [await pipeline.execute("SELECT %(text)s::text", {"text": text}) for _ in range(8)]
        assert [await each.fetchone() for each in asked] == [(text,)] * 8


async def test_a_body_that_is_cancelled_while_it_waits_leaves_a_connection_that_can_go_on(
    connection: AsyncConnection[Any],
) -> None:
    waiting = asyncio.create_task(ask(connection, "SELECT pg_sleep(60)"))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await numbers(connection) == []


@pytest.mark.parametrize(
    "asks", [True, False], ids=["an answer is asked for", "nothing is asked for"]
)
async def test_what_psycopg_deallocated_after_a_rollback_is_prepared_again(
    connection: AsyncConnection[Any], *, asks: bool
) -> None:
    async def select(n: int) -> None:
        async with pipelined_transaction(connection) as pipeline:
            asked = await pipeline.execute(
                "INSERT INTO number VALUES (%(n)s) RETURNING n", {"n": n}
            )
            if asks:
                assert await asked.fetchall() == [(n,)]

    await select(1)
    for _ in range(8):
        with pytest.raises(psycopg.errors.DivisionByZero):
            await fail_in_a_transaction(connection)
    prepared = await connection.execute(
        "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'statesvc%'"
    )
    assert await prepared.fetchone() == (0,), (
        "psycopg deallocates statements that it did not prepare, too"
    )
    await select(2)
    await select(3)
    assert await numbers(connection) == [1, 2, 3]


async def fail_in_a_transaction(connection: AsyncConnection[Any]) -> None:
    """Fail in a transaction on a connection where psycopg has prepared something."""
    await connection.execute("SELECT 1", prepare=True)
    async with connection.transaction():
        await connection.execute("SELECT 1 / 0")
