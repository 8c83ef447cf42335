"""Costs of archiving a day of bodies, and whether ingest notices that the partition goes."""

import asyncio
import time
from collections import Counter
from functools import partial
from typing import Any, Final

from psycopg import AsyncConnection, sql

from events.crypto.keyring import Keyring
from statesvc.addons.archive.day import BODY_LEDGER, archives
from statesvc.addons.archive.day_pass import BodyArchiving, archive_days
from statesvc.bodies.sealed_message import seal_message
from statesvc.ingress.group_commit import put
from tests.bench.bench import Bench
from tests.bench.drain import drain_in_place
from tests.bench.inbox import keyring_of, waiting
from tests.bench.report import Row, milliseconds, percentile, rate
from tests.bench.server import Place
from tests.bench.traffic import alerts

_DAYS: Final = 15
_LATER: Final = sql.SQL(
    "CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL"
    " SAFE RETURN clock_timestamp() + interval '15 days'"
)
_SEALED: Final = "SELECT count(*), sum(octet_length(sealed)) FROM statesvc.body"
_PUTS_PER_SECOND: Final = 200


async def measure(bench: Bench) -> list[Row]:
    async def fill(place: Place) -> None:
        await waiting(partial(alerts, bench.scale.alerts))(place)
        await drain_in_place(bench, place)

    template = await bench.server.filled("bench_archive", fill)
    found = [await _run(bench, template) for _ in range(bench.scale.runs)]
    return [
        Row(
            "bodies written, verified and dropped a second, one archiver without its rests",
            rate([each["rate"] for each in found]),
        ),
        Row(
            "... size of the file, of the sealed bodies in the table",
            rate([each["share"] * 100 for each in found], " %"),
        ),
        Row(
            f"{_PUTS_PER_SECOND} puts a second from the same process meanwhile: p99 of a put",
            milliseconds([each["p99"] for each in found]),
        ),
        Row("... slowest put", milliseconds([each["max"] for each in found])),
    ]


async def _run(bench: Bench, template: str) -> dict[str, float]:
    async with bench.server.database(template) as place:
        await place.execute(_LATER, "SELECT count(*) FROM statesvc.ensure_partitions()")
        async with (
            await AsyncConnection.connect(place.service, autocommit=True) as connection,
            await AsyncConnection.connect(place.service, autocommit=True) as ingress,
        ):
            keyring = await keyring_of(connection)
            bodies, sealed_bytes = await (await connection.execute(_SEALED)).fetchone() or (0, 1)
            seconds: list[float] = []
            pushing = asyncio.create_task(_push(ingress, keyring, seconds))
            assert await BODY_LEDGER.try_lead(connection)
            folder = bench.folder / f"archive-{place.service.rpartition('/')[2]}"
            archiving = BodyArchiving(
                folder=folder,
                keyring=keyring,
                hot_days=_DAYS - 1,
                keep_months=25,
                pause=_at_full_speed,
            )
            began = time.perf_counter()
            outcome = await archive_days(connection, archiving)
            took = time.perf_counter() - began
            pushing.cancel()
            ledger = await archives(connection)
    written = Counter(
        bodies=sum(each.bodies or 0 for each in ledger),
        size=sum(each.size_bytes or 0 for each in ledger),
    )
    assert (outcome.failed, outcome.busy, written["bodies"]) == ([], [], bodies)
    bench.say(f"archive: {bodies:,} bodies in {took:.1f} s")
    seconds.sort()
    return {
        "rate": bodies / took,
        "share": written["size"] / sealed_bytes,
        "p99": percentile(seconds, 0.99),
        "max": max(seconds, default=0.0),
    }


async def _push(connection: AsyncConnection[Any], keyring: Keyring, seconds: list[float]) -> None:
    """Push one message a put, each timed."""
    number = 0
    while True:
        number += 1
        message = seal_message(keyring, "ups", b"%d" % number, "{}")
        began = time.perf_counter()
        await put(connection, [message])
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(1 / _PUTS_PER_SECOND)


async def _at_full_speed() -> None:
    """Rest not at all between two batches."""
