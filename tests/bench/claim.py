"""Costs of one claim when the inbox is in its worst state, and whether a hot statement
ever reads a whole table.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from statistics import median
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.queue.claim import ClaimRequest, claim
from tests.bench.bench import Bench
from tests.bench.drain import drain_in_place, until_empty
from tests.bench.inbox import HOLD_AGAIN, put_all, waiting
from tests.bench.report import Row, milliseconds
from tests.bench.server import Place
from tests.bench.traffic import alerts, growing

_CLAIMS: Final = 60
_UNTIMED: Final = 5
_CARRIERS: Final = 200
_ASKED: Final = ClaimRequest(worker="bench", limit=64, lease_seconds=600, bytes_max=4 * 1024 * 1024)

LANES: Final = (
    "INSERT INTO statesvc.lane (carrier_id) SELECT 'c' || lpad(n::text, 3, '0') FROM"
    " generate_series(1, %(carriers)s) n"
)
FILL: Final = """
WITH made AS (
    SELECT gen_random_uuid() AS id, now() - %(span)s * interval '1 second' * (1 - n::float8 / %(rows)s) AS at
    FROM generate_series(1, %(rows)s) n
), stored AS (
    INSERT INTO statesvc.body (message_id, received_at, carrier_id, commitment, headers, sealed)
    SELECT id, at, %(carrier)s, decode(repeat('00', 32), 'hex'), '{}', decode(repeat('00', 400), 'hex') FROM made
)
INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key)
SELECT id, at, at, 400, %(carrier)s, decode(repeat('00', 69), 'hex') FROM made
"""
_WAITING_LANES: Final = """
SELECT count(*) FROM statesvc.lane l
WHERE EXISTS (SELECT FROM statesvc.inbox i WHERE i.carrier_id = l.carrier_id AND i.token IS NULL)
"""
_SEQUENTIAL: Final = """
SELECT relname, seq_scan, seq_tup_read FROM pg_stat_user_tables
WHERE schemaname = 'statesvc' AND seq_scan > 0 AND n_live_tup > 1000 AND seq_tup_read >= n_live_tup
"""


async def measure(bench: Bench) -> list[Row]:
    return [*await _dead_rows(bench), *await _one_of_many(bench), *await _whole_tables(bench)]


async def _dead_rows(bench: Bench) -> list[Row]:
    rows = bench.scale.dead_rows
    async with (
        bench.server.database() as place,
        _connect(place) as connection,
        _connect(place) as pinned,
    ):
        await connection.execute(LANES.encode(), {"carriers": 3})
        await connection.execute(FILL.encode(), {"rows": rows, "span": 900, "carrier": "c001"})
        await connection.execute("VACUUM ANALYZE statesvc.inbox")
        await connection.execute("VACUUM ANALYZE statesvc.body")
        async with pinned.transaction():
            await pinned.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            await pinned.execute("SELECT count(*) FROM statesvc.lane")
            drain_claim = ClaimRequest(
                worker="bench", limit=512, lease_seconds=600, bytes_max=4 * 1024 * 1024
            )
            while messages := (await claim(connection, drain_claim)).messages:
                await connection.execute(
                    "DELETE FROM statesvc.inbox WHERE token = %s", (messages[0].token,)
                )
            # no older than an ingest may be when it becomes visible: below the mark they
            # would wait for a sweep
            await connection.execute(FILL.encode(), {"rows": 20_000, "span": 1, "carrier": "c001"})
            times, short = await time_claims(connection)
    bench.say(f"claim next to {rows:,} dead rows: {milliseconds(times)}")
    what = f"claim of 64 next to {rows:,} settled messages under a pinned xmin"
    return [
        Row(
            f"{what}: median of {len(times)}",
            milliseconds([median(times)]),
            "<= 5 ms",
            median(times) <= 0.005,
        ),
        Row("... slowest", milliseconds([max(times)])),
        _short(short),
    ]


async def _one_of_many(bench: Bench) -> list[Row]:
    rows = bench.scale.waiting_rows
    async with bench.server.database() as place, _connect(place) as connection:
        await connection.execute(LANES.encode(), {"carriers": _CARRIERS})
        await connection.execute(FILL.encode(), {"rows": rows, "span": 3_000, "carrier": "c077"})
        await connection.execute(FILL.encode(), {"rows": 2_000, "span": 1_000, "carrier": "c011"})
        await connection.execute("VACUUM ANALYZE")
        times, short = await time_claims(connection)
    bench.say(f"claim with {rows:,} waiting: {milliseconds(times)}")
    what = f"claim of 64 with {rows:,} waiting for one of {_CARRIERS} carriers"
    return [
        Row(
            f"{what}: median of {len(times)}",
            milliseconds([median(times)]),
            "<= 10 ms",
            median(times) <= 0.01,
        ),
        Row("... slowest", milliseconds([max(times)])),
        _short(short),
    ]


def _short(claims: int) -> Row:
    return Row(
        "... claims that got too little, or left a lane out, though messages waited",
        str(claims),
        "0",
        claims == 0,
    )


async def time_claims(connection: AsyncConnection[Any]) -> tuple[list[float], int]:
    """Return times of claims, in order, and how many were short.

    The first few, in which the statement is planned, are not timed.
    """
    seconds = []
    short = 0
    for place in range(_CLAIMS + _UNTIMED):
        started = time.perf_counter()
        messages = (await claim(connection, _ASKED)).messages
        if place >= _UNTIMED:
            seconds.append(time.perf_counter() - started)
        waiting_lanes = await (await connection.execute(_WAITING_LANES)).fetchone()
        served = len({message.carrier_id for message in messages})
        short += len(messages) != _ASKED.limit or waiting_lanes is None or served < waiting_lanes[0]
    return sorted(seconds), short


async def _whole_tables(bench: Bench) -> list[Row]:
    """Apply new messages on a filled database; the statistics tell which tables were read
    whole, inside functions too.
    """

    async def fill(place: Place) -> None:
        await waiting(partial(alerts, bench.scale.alerts))(place)
        await drain_in_place(bench, place)
        await place.execute(HOLD_AGAIN)
        await put_all(
            place,
            chain(alerts(bench.scale.alerts // 10, series=1), growing(bench.scale.histories // 5)),
        )

    template = await bench.server.filled("bench_filled", fill)
    async with bench.server.database(template) as place:
        await place.execute("SELECT pg_stat_reset()")
        async with bench.service(place) as service:
            await service.start("worker")
            await until_empty(place)
        async with _connect(place) as connection:
            found = await (await connection.execute(_SEQUENTIAL)).fetchall()
    whole = [f"{table} ({scans} scans, {tuples:,} rows)" for table, scans, tuples in found]
    bench.say(f"read whole: {whole or 'nothing'}")
    return [
        Row(
            "tables that the worker's statements read whole, on a filled database",
            ", ".join(whole) or "none",
            "none",
            not whole,
        )
    ]


@asynccontextmanager
async def _connect(place: Place) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(place.superuser, autocommit=True) as connection:
        connection.prepare_threshold = 2
        yield connection
