"""The database that tests get is what it says."""

from typing import Any

from psycopg import AsyncConnection


async def _clock(dsn: str) -> Any:
    async with await AsyncConnection.connect(dsn) as connection:
        row = await (await connection.execute("SELECT statesvc.clock()")).fetchone()
        assert row is not None
        return row[0]


async def test_the_clock_moves_for_the_service_role_too(database: Any) -> None:
    before = await _clock(database.service_dsn)
    await database.clock.advance(3600)
    moved = await _clock(database.service_dsn) - before
    assert 3600 <= moved.total_seconds() < 3660
