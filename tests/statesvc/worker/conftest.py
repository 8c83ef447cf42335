"""The worker's tests: a shop each, and what its workers log."""

import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.telemetry.logs import pipeline
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch import BatchContext
from tests.statesvc.worker.shop import ACME, CARRIER_ID, Shop

LIMITS = PoolLimits(connections_max=8, acquire_seconds=5, statement_seconds=10, lock_seconds=5, idle_in_transaction_seconds=10)


@pytest.fixture(autouse=True)
def log() -> Iterator[io.StringIO]:
    """What the workers log, as they would in production."""
    lines = io.StringIO()
    structlog.configure(processors=pipeline("worker", "json"), logger_factory=structlog.PrintLoggerFactory(lines))
    yield lines
    structlog.reset_defaults()


@pytest.fixture
async def pool(database: Any) -> AsyncIterator[Pool]:
    pool = make_pool(database.service_dsn, name="worker test", limits=LIMITS)
    await pool.open()
    yield pool
    await pool.close()


@pytest.fixture
async def shop(database: Any, pool: Pool) -> AsyncIterator[Shop]:
    telemetry = Telemetry()
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MasterKeys([bytes(range(32))]))
        context = BatchContext(pool=pool, keyring=keyring, carriers={CARRIER_ID: ACME}, telemetry=telemetry, worker="worker-1")
        yield Shop(context, connection, database, keyring)
    telemetry.close()
