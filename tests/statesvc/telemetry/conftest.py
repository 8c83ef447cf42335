from collections.abc import AsyncIterator
from typing import Any

import pytest

from statesvc.database.pool import Pool, PoolLimits, make_pool


@pytest.fixture
async def pool(database: Any) -> AsyncIterator[Pool]:
    async with make_pool(
        database.service_dsn,
        name="test telemetry",
        limits=PoolLimits(connections_max=2, acquire_seconds=5.0),
    ) as pool:
        yield pool
