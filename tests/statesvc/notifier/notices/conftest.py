"""A database with notices."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection


@pytest.fixture
async def connection(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield connection
