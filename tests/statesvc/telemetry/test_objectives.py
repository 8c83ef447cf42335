"""Error budgets: minutes that met their objective, and what is left."""

import pytest

from statesvc.database.pool import Pool
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.objective_minutes import read_minutes, read_shares, write
from statesvc.telemetry.objectives import (
    ACK_AVAILABILITY,
    ACK_LATENCY,
    FIRST_ATTEMPT,
    LAG,
    SEALING,
    MinuteCount,
    ObjectiveCounts,
)
from tests.world.database import Database


def test_what_is_recorded_counts_for_its_promise() -> None:
    telemetry = Telemetry()
    for outcome, seconds in (
        ("accepted", 0.01),
        ("duplicate", 0.3),
        ("error", 0.01),
        ("rejected", 0.01),
    ):
        telemetry.ingest_ack_duration.record(seconds, {"carrier": "ups", "outcome": outcome})
    telemetry.applied_lag.record(121.0, {"carrier": "ups"})
    telemetry.first_attempt_lag.record(1.0, {"state": "ready"})
    telemetry.first_attempt_lag.record(600.0, {"state": "limited"})
    telemetry.sealing_lag.record(0.4)
    counted = {
        name: (count.kept, count.missed) for (_, name), count in telemetry.objectives.take().items()
    }
    assert counted == {
        ACK_AVAILABILITY.name: (2, 1),
        ACK_LATENCY.name: (1, 1),
        LAG.name: (0, 1),
        FIRST_ATTEMPT.name: (1, 0),
        SEALING.name: (1, 0),
    }
    assert telemetry.objectives.take() == {}
    telemetry.close()


def test_a_quantile_lies_between_the_bounds_of_its_values() -> None:
    counts = ObjectiveCounts(now=lambda: 0.0)
    for milliseconds in range(1, 101):
        counts.timed(ACK_LATENCY, milliseconds / 1000)
    (count,) = counts.take().values()
    assert count.quantile(0.99) == pytest.approx(0.099, rel=0.2)
    assert count.quantile(0.5) == pytest.approx(0.05, rel=0.2)
    assert MinuteCount().quantile(0.99) is None


def test_what_could_not_be_written_is_counted_with_what_came_since() -> None:
    now = 6000.0
    counts = ObjectiveCounts(now=lambda: now)
    counts.timed(LAG, 1.0)
    taken = counts.take()
    counts.timed(LAG, 2.0)
    counts.put_back(taken, minutes_max=60)
    (count,) = counts.take().values()
    assert (count.kept, sum(count.counts)) == (2, 2)
    counts.put_back({(0, LAG.name): MinuteCount(kept=1)}, minutes_max=60)
    assert counts.take() == {}


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
