"""A pool of the service, and connections of the service and the owner, to a database of its own."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.pool import Pool, PoolLimits, make_pool

LIMITS = PoolLimits(
    connections_max=2,
    connections_min=1,
    acquire_seconds=5,
    statement_seconds=10,
    lock_seconds=5,
    idle_in_transaction_seconds=10,
)


@pytest.fixture
async def pool(database: Any) -> AsyncIterator[Pool]:
    async with make_pool(database.service_dsn, name="test", limits=LIMITS) as pool:
        yield pool


@pytest.fixture
async def service(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def owner(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        yield connection
