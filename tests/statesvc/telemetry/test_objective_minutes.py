from statesvc.database.pool import Pool
from statesvc.telemetry.objective_minutes import read_minutes, read_shares, write
from statesvc.telemetry.objectives import ACK_AVAILABILITY, ACK_LATENCY, LAG, ObjectiveCounts
from tests.world.database import Database


async def test_processes_add_to_the_same_rows(database: Database, pool: Pool) -> None:
    now = (await database.clock.now()).timestamp()
    for seconds in (0.01, 0.5):
        counts = ObjectiveCounts(now=lambda: now)
        counts.timed(ACK_LATENCY, seconds)
        counts.counted(ACK_AVAILABILITY, is_kept=seconds < 0.1)
        await write(pool, counts)
    async with pool.connection() as connection:
        found = {one.objective: one.counted for one in await read_minutes(connection, minutes=60)}
        shares = await read_shares(connection, minutes=60)
    timed = found[ACK_LATENCY.name]
    assert (timed.kept, timed.missed, sum(timed.counts)) == (1, 1, 2)
    assert (shares[ACK_AVAILABILITY.name].kept, shares[ACK_AVAILABILITY.name].missed) == (1, 1)


async def test_a_week_later_it_is_forgotten(database: Database, pool: Pool) -> None:
    for days in (0, 9):
        now = (await database.clock.now()).timestamp() + days * 86_400
        counts = ObjectiveCounts(now=lambda now=now: now)  # type: ignore[misc]
        counts.timed(LAG, 1.0)
        await database.clock.advance(days * 86_400)
        await write(pool, counts)
    async with pool.connection() as connection:
        rows = await (
            await connection.execute("SELECT count(*) FROM statesvc.objective_minute")
        ).fetchone()
        assert len(await read_minutes(connection, minutes=7 * 24 * 60, step=120)) == 1
    assert rows == (1,)
