"""Errors of the database are sorted by what to do about them."""

from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from statesvc.database.sql_errors import Failure, advice, failure

PARCEL = (
    "CREATE TEMP TABLE parcel (number int PRIMARY KEY CHECK (number > 0)); INSERT INTO parcel"
    " VALUES (1);"
)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE statesvc.event SET carrier_id = 'x'", Failure.IMMUTABLE),
        ("TRUNCATE statesvc.transition", Failure.IMMUTABLE),
        (f"{PARCEL} INSERT INTO parcel VALUES (1)", Failure.DUPLICATE),
        (f"{PARCEL} INSERT INTO parcel VALUES (-1)", Failure.REFUSED_DATA),
        ("SELECT 'x'::int", Failure.REFUSED_DATA),
        ("SET statement_timeout = 1; SELECT pg_sleep(1)", Failure.TRANSIENT),
        ("SELECT pg_terminate_backend(pg_backend_pid())", Failure.UNAVAILABLE),
        ("SELECT nonsense", Failure.DEFECT),
        ("EXECUTE nothing_prepared", Failure.MISROUTED),
        ("PREPARE twice AS SELECT 1; PREPARE twice AS SELECT 1", Failure.MISROUTED),
    ],
)
async def test_an_error_of_the_server_has_its_meaning(
    database: Any, statement: str, expected: Failure
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute(statement)
    assert failure(raised.value) is expected


async def test_the_service_may_not_change_the_log(database: Any) -> None:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute("DELETE FROM statesvc.event")
    assert failure(raised.value) is Failure.FORBIDDEN


async def test_no_server_is_unavailable() -> None:
    with pytest.raises(psycopg.OperationalError) as raised:
        await AsyncConnection.connect("host=/nowhere")
    assert failure(raised.value) is Failure.UNAVAILABLE


async def test_a_lost_prepared_statement_comes_with_what_to_do(database: Any) -> None:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute("EXECUTE nothing_prepared")
        assert "STATESVC_PREPARED_STATEMENTS=false" in (advice(raised.value) or "")
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute("SELECT nonsense")
        assert advice(raised.value) is None


async def test_a_plan_that_a_migration_outdated_comes_with_what_to_do(database: Any) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        await connection.execute("CREATE TABLE public.parcel (number int)")
        await connection.execute("SELECT * FROM public.parcel", prepare=True)
        async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as migration:
            await migration.execute("ALTER TABLE public.parcel ADD COLUMN carrier text")
        with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
            await connection.execute("SELECT * FROM public.parcel", prepare=True)
    assert "restart" in (advice(raised.value) or "")
