"""A drain moves a spool's place only from where it read it."""

from pathlib import Path

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.spool.drainer import Drainer, ServerClock
from statesvc.spool.file_spool import FileSpool, JournalSource
from statesvc.spool.spool import Portion, SpoolBounds
from tests.statesvc.spool.conftest import sealed
from tests.world.database import Database

BOUNDS = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600)


async def test_a_drain_that_lost_its_lead_stores_nothing_that_another_has_stored(
    database: Database, tmp_path: Path, keyring: Keyring
) -> None:
    spool = FileSpool(tmp_path, BOUNDS)
    await spool.keep(sealed(keyring, "a"))
    (source,) = await spool.sources()
    assert isinstance(source, JournalSource)
    late, other = (Drainer(spool, ServerClock(), dsn=database.service_dsn) for _ in range(2))
    read = source.read

    async def read_and_lose_the_lead(place: int) -> Portion | None:
        portion = await read(place)
        source.read = read  # type: ignore[method-assign]
        await late.disconnect()
        await spool.keep(sealed(keyring, "b"))
        await other.drain(source)
        return portion

    source.read = read_and_lose_the_lead  # type: ignore[method-assign]
    assert await late.drain(source), "what is left is for the other"
    assert (late.stored, other.stored) == (0, 2)
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        cursor = await connection.execute("SELECT sum(retries) FROM statesvc.receipt")
        assert await cursor.fetchall() == [(0,)]
    await late.disconnect()
    await other.disconnect()
    await spool.close()
