"""Scraped, the depths of the queues are those of the tables; nobody loads the
database by scraping often.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.queue.depth_gauges import SAMPLE_SECONDS, DepthGauges
from statesvc.telemetry.metrics import Telemetry
from tests.statesvc.api.test_queue import QUEUED, TOKEN

LIMITS = PoolLimits(
    connections_max=1,
    acquire_seconds=0.2,
    statement_seconds=5,
    lock_seconds=5,
    idle_in_transaction_seconds=5,
)


class Scraper:
    """Scrapes as Prometheus does; its time is moved."""

    def __init__(self, pool: Pool) -> None:
        self.now = 1000.0
        self._telemetry = Telemetry()
        self._depths = DepthGauges(pool, now=lambda: self.now)
        self._depths.report_to(self._telemetry)

    async def scrape(self) -> dict[str, float]:
        await self._depths.sample()
        lines = [
            line.rpartition(" ") for line in self._telemetry.exposition().decode().splitlines()
        ]
        return {
            name: float(value)
            for name, _, value in lines
            if name.startswith(("statesvc_inbox", "statesvc_outbox"))
        }


@pytest.fixture
async def pool(database: Any) -> AsyncIterator[Pool]:
    async with make_pool(database.service_dsn, name="statesvc test", limits=LIMITS) as opened:
        yield opened


@pytest.fixture
async def carriers(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        yield connection


async def test_the_depths_are_those_of_the_tables(
    pool: Pool, carriers: AsyncConnection[Any]
) -> None:
    await carriers.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups'), ('fedex')")
    for wait, token, count in (
        ("-5 minutes", None, 3),
        ("1 hour", None, 2),
        ("30 seconds", TOKEN, 4),
    ):
        await carriers.execute(QUEUED, [wait, token, token and "w", "ups", count])
    told = await Scraper(pool).scrape()
    age = told.pop('statesvc_inbox_oldest_ready_seconds{carrier="ups"}')
    assert 300 <= age < 330
    assert told == {
        'statesvc_inbox_depth{carrier="ups",state="ready"}': 3,
        'statesvc_inbox_depth{carrier="ups",state="leased"}': 4,
        'statesvc_inbox_depth{carrier="ups",state="scheduled"}': 2,
        'statesvc_inbox_depth{carrier="ups",state="held"}': 0,
        'statesvc_inbox_depth{carrier="fedex",state="ready"}': 0,
        'statesvc_inbox_depth{carrier="fedex",state="leased"}': 0,
        'statesvc_inbox_depth{carrier="fedex",state="scheduled"}': 0,
        'statesvc_inbox_depth{carrier="fedex",state="held"}': 0,
        'statesvc_inbox_oldest_ready_seconds{carrier="fedex"}': 0,
        'statesvc_inbox_oldest_held_seconds{carrier="ups"}': 0,
        'statesvc_inbox_oldest_held_seconds{carrier="fedex"}': 0,
        'statesvc_outbox_depth{state="ready"}': 0,
        'statesvc_outbox_depth{state="leased"}': 0,
        'statesvc_outbox_depth{state="scheduled"}': 0,
    }


async def test_who_scrapes_often_is_told_the_last_reading(
    pool: Pool, carriers: AsyncConnection[Any]
) -> None:
    ready = 'statesvc_inbox_depth{carrier="ups",state="ready"}'
    await carriers.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')")
    scraper = Scraper(pool)
    assert (await scraper.scrape())[ready] == 0
    await carriers.execute(QUEUED, ["-5 minutes", None, None, "ups", 7])
    assert (await scraper.scrape())[ready] == 0
    scraper.now += SAMPLE_SECONDS
    assert (await scraper.scrape())[ready] == 7


async def test_an_old_depth_is_not_told_as_a_new_one(pool: Pool) -> None:
    scraper = Scraper(pool)
    assert 'statesvc_outbox_depth{state="ready"}' in await scraper.scrape()
    scraper.now += SAMPLE_SECONDS
    async with pool.connection():
        # the only connection is taken
        assert await scraper.scrape() == {}
    scraper.now += SAMPLE_SECONDS
    assert 'statesvc_outbox_depth{state="ready"}' in await scraper.scrape()
