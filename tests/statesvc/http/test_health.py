"""Alive says nothing about the database; ready asks it, and ends when the process drains."""

from datetime import UTC, datetime
from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.http.app import build_app
from statesvc.http.health import REMEMBERED_SECONDS, Readiness, health_routes, shipped_migrations
from statesvc.http.keys.api_keys import Keys
from tests.statesvc.conftest import HandClock

LIMITS = PoolLimits(connections_max=2, acquire_seconds=0.2)


async def test_a_migrated_database_is_ready(pool: Pool) -> None:
    assert await Readiness(pool, migrations=shipped_migrations()).reasons() == []


async def test_a_pending_migration_is_named(pool: Pool) -> None:
    (reason,) = await Readiness(pool, migrations=shipped_migrations() | {9999}).reasons()
    assert "9999" in reason
    assert "statesvc migrate" in reason


async def test_a_log_that_the_sealer_refuses_is_named(pool: Pool) -> None:
    async with pool.connection() as connection:
        await connection.execute(
            "INSERT INTO statesvc.sealing_refusal (why, since) VALUES ('a backup was restored',"
            " now())"
        )
    (reason,) = await Readiness(pool, migrations=shipped_migrations()).reasons()
    assert reason.endswith("nothing is sealed and nobody is notified: a backup was restored")


async def test_a_database_that_only_reads_is_not_ready(database: Any) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as admin:
        await admin.execute(
            f'ALTER DATABASE "{admin.info.dbname}" SET default_transaction_read_only = on'
        )
    async with make_pool(
        database.service_dsn, name="test health", limits=LIMITS, writes=False
    ) as pool:
        (reason,) = await Readiness(pool, migrations=()).reasons()
        assert reason.startswith(
            "the database takes no writes (default_transaction_read_only is on): no push is"
            " acknowledged"
        )
    async with make_pool(database.service_dsn, name="test health", limits=LIMITS) as pool:
        assert await Readiness(pool, migrations=()).reasons() == [
            "no connection to the database: session is read-only"
        ]


async def test_a_login_that_is_refused_is_not_ready_and_names_nobody(database: Any) -> None:
    async with make_pool(
        make_conninfo(database.service_dsn, user="somebody"), name="test health", limits=LIMITS
    ) as pool:
        assert await Readiness(pool, migrations=()).reasons() == [
            "no connection to the database: password authentication failed for user ..."
        ]


async def test_a_database_whose_clock_leapt_by_months_is_not_ready_and_the_clock_is_named(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    await owner.execute("UPDATE statesvc.test_clock SET shift = '100 days'")
    (reason,) = await Readiness(pool, migrations=shipped_migrations()).reasons()
    assert "100 days ahead of this machine's" in reason
    assert "nothing can be stored" in reason


async def test_missing_partitions_are_named_where_the_clock_is_right(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    name = datetime.now(UTC).strftime("statesvc.body_%Y%m%d")
    await owner.execute(
        f"ALTER TABLE statesvc.body DETACH PARTITION {name}; DROP TABLE {name}".encode()
    )
    (reason,) = await Readiness(pool, migrations=shipped_migrations()).reasons()
    assert reason.startswith("nothing can be stored: no partition of today in body")


async def test_others_add_checks_by_name(pool: Pool) -> None:
    readiness = Readiness(pool, migrations=shipped_migrations())
    readiness.watch("disk", lambda: "the disk is full")
    readiness.watch("memory", lambda: None)
    assert await readiness.failing() == {"disk": "the disk is full"}


async def test_an_answer_is_remembered_shortly(pool: Pool, owner: AsyncConnection[Any]) -> None:
    clock = HandClock()
    readiness = Readiness(pool, migrations=shipped_migrations(), now=clock)
    assert await readiness.reasons() == []
    await owner.execute("DELETE FROM statesvc.schema_migrations")
    assert await readiness.reasons() == []
    clock.seconds += REMEMBERED_SECONDS
    assert len(await readiness.reasons()) == 1


async def test_draining_and_a_lost_database_are_not_ready_but_alive(pool: Pool) -> None:
    readiness = Readiness(pool, migrations=())
    routes = health_routes(readiness)
    async with TestClient(TestServer(build_app(routes, keys=Keys(pool)))) as client:
        assert (await client.get("/readyz")).status == 200
        await pool.close()
        readiness.drain("the process is stopping")
        answer = await client.get("/readyz")
        problem = await answer.json(content_type=None)
        assert (answer.status, problem["code"], problem["reasons"]) == (
            503,
            "not_ready",
            ["the process is stopping"],
        )
        assert (await client.get("/livez")).status == 200
        assert (await client.get("/metrics")).status == 404
    (reason,) = await Readiness(pool, migrations=()).reasons()
    assert "does not answer" in reason
