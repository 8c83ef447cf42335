"""Fixtures on a real database: each test gets its own, copied from a migrated template, with a
clock that it can move.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from tests.world import postgres


@dataclass(frozen=True)
class Clock:
    """The clock that `statesvc.clock()` reads in this database."""

    owner_dsn: str

    async def advance(self, seconds: float) -> None:
        """Move the clock, and open the partitions that the new time needs."""
        async with await AsyncConnection.connect(self.owner_dsn, autocommit=True) as connection:
            await connection.execute(
                "UPDATE statesvc.test_clock SET shift = shift + %s", (timedelta(seconds=seconds),)
            )
            await connection.execute("SELECT count(*) FROM statesvc.ensure_partitions()")

    async def now(self) -> datetime:
        async with await AsyncConnection.connect(self.owner_dsn, autocommit=True) as connection:
            row = await (await connection.execute("SELECT statesvc.clock()")).fetchone()
        assert row is not None
        now: datetime = row[0]
        return now


@dataclass(frozen=True)
class SingleConnection:
    """A single connection in place of a pool."""

    held: AsyncConnection[Any]

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        return nullcontext(self.held)


@dataclass(frozen=True)
class Database:
    """A migrated database of one test's own, as each role sees it."""

    service_dsn: str
    owner_dsn: str
    superuser_dsn: str
    auditor_dsn: str
    clock: Clock

    @classmethod
    def of(cls, server: postgres.Server) -> "Database":
        """Return the one that the server's addresses lead to."""
        return cls(
            server.service_dsn,
            server.owner_dsn,
            server.superuser_dsn,
            server.auditor_dsn,
            Clock(server.owner_dsn),
        )

    def on(self, name: str) -> "Database":
        """Return another one of the same server."""
        return Database.of(
            postgres.Server(
                self.superuser_dsn, self.owner_dsn, self.service_dsn, self.auditor_dsn
            ).on(name)
        )


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """Return the run's PostgreSQL server."""
    yield postgres.running_server()
    postgres.close_connections()


@pytest.fixture
async def database(server: postgres.Server) -> AsyncIterator[Database]:
    """Make a database as a release finds it: migrated, with its privileges, empty."""
    async with _temporary(server, postgres.TEMPLATE) as mine:
        yield mine


@pytest.fixture
async def service(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def bare_database(server: postgres.Server) -> AsyncIterator[Database]:
    """Make a database without any schema, before the first migration."""
    async with _temporary(server, "template1") as mine:
        yield mine


@asynccontextmanager
async def _temporary(server: postgres.Server, template: str) -> AsyncIterator[Database]:
    name = postgres.create_database(server, template)
    mine = server.on(name)
    try:
        yield Database.of(mine)
    finally:
        postgres.drop_database(server, name)


@asynccontextmanager
async def without_triggers(superuser_dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Connect as a superuser while no trigger of the log fires, nor a foreign key in this
    session.
    """
    async with await AsyncConnection.connect(superuser_dsn, autocommit=True) as connection:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            """DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT DISTINCT tgrelid FROM pg_trigger
               JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'statesvc'::regnamespace AND NOT tgisinternal
               LOOP EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', t); END LOOP; END $$"""
        )
        try:
            yield connection
        finally:
            await connection.execute("SELECT statesvc.enable_triggers()")
