"""Gauges of a scrape are what the tables say."""

from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.health.database_gauges import SAMPLE_SECONDS, DatabaseGauges
from statesvc.telemetry.metrics import Telemetry

DAY = 86_400


class Scraper:
    def __init__(self, pool: Pool, volumes: dict[str, Path] | None = None) -> None:
        self.now = 1000.0
        self._telemetry = Telemetry()
        self._gauges = DatabaseGauges(pool, volumes=volumes or {}, now=lambda: self.now)
        self._gauges.report_to(self._telemetry)

    async def scrape(self) -> dict[str, float]:
        await self._gauges.sample()
        lines = [
            line.rpartition(" ")
            for line in self._telemetry.exposition().decode().splitlines()
            if line.startswith("statesvc_")
        ]
        return {name: float(value) for name, _, value in lines}


async def test_dead_letters_show_by_cause_and_carriers_by_their_last_push(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at) SELECT 'message',"
        " c, 'ups', statesvc.clock() FROM unnest(ARRAY['unreadable', 'unreadable',"
        " 'unknown_format']) c"
    )
    await owner.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups'), ('fedex')")
    await owner.execute(
        "INSERT INTO statesvc.ack_count VALUES"
        " ('ups', to_timestamp(1800000000), 'p', 3, 1, 0, to_timestamp(1800000042)),"
        " ('ups', to_timestamp(1799999940), 'p', 3, 1, 0, to_timestamp(1799999999)),"
        " ('fedex', to_timestamp(1800000000), 'p', 0, 0, 2, NULL)"
    )
    told = await Scraper(pool).scrape()
    assert told['statesvc_dead_letters_open{cause="unreadable",kind="message"}'] == 2
    assert told['statesvc_dead_letters_open{cause="unknown_format",kind="message"}'] == 1
    pushes = {name: value for name, value in told.items() if "last_push" in name}
    assert pushes == {'statesvc_ingest_last_push_seconds{carrier="ups"}': 1_800_000_042}


async def test_the_state_of_the_database_shows(pool: Pool, tmp_path: Path) -> None:
    told = await Scraper(pool, {"data": tmp_path, "archive": tmp_path / "gone"}).scrape()
    assert told["statesvc_partitions_horizon_seconds"] > 5 * DAY
    assert told["statesvc_database_size_bytes"] > 1_000_000
    assert told["statesvc_database_wal_bytes_total"] > 0
    assert told["statesvc_sealer_oldest_unsealed_seconds"] == 0
    assert told['statesvc_disk_free_bytes{volume="data"}'] > 0
    assert 'statesvc_disk_free_bytes{volume="archive"}' not in told, (
        "a folder that is away has no free room, and no series"
    )
    assert told['statesvc_promises_missing{promise="notified"}'] == 0


async def test_only_the_subscriptions_with_the_most_waiting_show(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets) SELECT lpad(n::text, 32, '0')::uuid, statesvc.clock(), 'x', 'x',"
        " 'https://x', '{}' FROM generate_series(1, 30) n"
    )
    await owner.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at) SELECT lpad(n::text, 32, '0')::uuid, gen_random_uuid(), 1, statesvc.clock() -"
        " n * interval '1 minute', statesvc.clock() FROM generate_series(1, 30) n,"
        " generate_series(1, n)"
    )
    await owner.execute(
        "UPDATE statesvc.subscription SET paused_at = statesvc.clock() WHERE subscription_id ="
        " lpad('30', 32, '0')::uuid"
    )
    told = await Scraper(pool).scrape()
    waiting = sorted(
        value for name, value in told.items() if name.startswith("statesvc_outbox_waiting")
    )
    assert waiting == list(range(10, 30)), "twenty, the paused one left out"
    oldest = max(
        value for name, value in told.items() if name.startswith("statesvc_outbox_oldest_ready")
    )
    assert 29 * 60 <= oldest < 30 * 60


async def test_a_reading_is_shown_to_all_who_scrape_until_it_is_old(database: Any) -> None:
    limits = PoolLimits(connections_max=1, acquire_seconds=0.2)
    async with make_pool(database.service_dsn, name="test", limits=limits) as pool:
        scraper = Scraper(pool)
        assert "statesvc_database_size_bytes" in await scraper.scrape()
        async with pool.connection():
            # the only connection is taken
            assert "statesvc_database_size_bytes" in await scraper.scrape()
            scraper.now += SAMPLE_SECONDS
            assert "statesvc_database_size_bytes" not in await scraper.scrape()
