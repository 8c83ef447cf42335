"""A log of years: the entries of one month as the service appended them, copied by SQL into months
of the past, and sealed by the sealer.

A copied row has real leaf bytes under their real leaf hash, and ids, numbers and times of its own:
what an entry says inside differs from its columns, which is enough for whatever finds rows and
parses them, not for `verify`. All is sealed at one time.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

from psycopg import AsyncConnection

from tests.acceptance.processes import until_false
from tests.bench.bench import Bench
from tests.bench.drain import drain_in_place
from tests.bench.inbox import waiting
from tests.bench.server import Place
from tests.bench.traffic import ALERTS_A_SHIPMENT, alerts

SEED_SHIPMENTS: Final = 1_000
_SEED_EVENTS: Final = SEED_SHIPMENTS * ALERTS_A_SHIPMENT
_WRITERS: Final = 2
_SPREAD: Final = timedelta(days=27)
_TABLES: Final = ("stream", "event_key", "shipment", "event", "transition", "fanout", "batch")
_MONTH: Final = """
DO $$ DECLARE p record; lower_bound timestamptz; name text;
BEGIN
    FOR p IN SELECT table_name FROM statesvc.partitioned WHERE step = 'month' LOOP
        lower_bound := date_trunc('month', statesvc.clock(), 'UTC') - make_interval(months => {});
        name := p.table_name || to_char(lower_bound AT TIME ZONE 'UTC', '_YYYYMM');
        CONTINUE WHEN to_regclass('statesvc.' || name) IS NOT NULL;
        EXECUTE format('CREATE TABLE statesvc.%I PARTITION OF statesvc.%I FOR VALUES FROM (%L) TO (%L)',
            name, p.table_name, lower_bound, lower_bound + interval '1 month');
        PERFORM statesvc.sample_little(format('statesvc.%I', name)::regclass);
        PERFORM statesvc.make_append_only(format('statesvc.%I', name)::regclass);
    END LOOP;
END $$
"""
_SEED: Final = (
    "CREATE SCHEMA seed",
    *(f"CREATE TABLE seed.{name} AS SELECT * FROM statesvc.{name}" for name in _TABLES),
)
# what a crash would lose is filled again; so is what an analysis would cost meanwhile
_HASTE: Final = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
_OF_COPY: Final = {
    "shipment_id": "md5(shipment_id::text || %(copy)s::text)::uuid",
    "batch_id": "batch_id + %(copy)s::bigint * %(batches)s",
    "event_id": "%(day)s || left(md5(event_id || %(copy)s::text), 26)",
    **dict.fromkeys(
        ("number", "tracking_number"), "'1ZY' || lpad(%(copy)s::text, 6, '0') || right(number, 9)"
    ),
}
"""Values that a copy has of its own, by column; its times are shifted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YearsLog:
    """A filled database.

    `copies`: of the seed, spread over all months; a copy's number is in its shipments' numbers.
    """

    place: Place
    events: int
    months: int
    copies: int
    seconds: float


async def seed(bench: Bench, place: Place) -> None:
    """Seed four UPS scans of a thousand shipments, as workers append them; a
    subscription gets each change.
    """
    await waiting(partial(alerts, _SEED_EVENTS))(place)
    await drain_in_place(bench, place)


async def fill(bench: Bench, place: Place, *, months: int, events: int) -> YearsLog:
    """Copy the seed of `place` into `months` of the past until the log has so many events."""
    began = time.perf_counter()
    await place.execute(
        *(f"ALTER SYSTEM SET {name} = off".encode() for name in _HASTE),
        "SELECT pg_reload_conf()",
        *_SEED,
    )
    # a transaction each: nine tables with their indexes are some fifty locks
    await place.execute(*(_MONTH.format(month).encode() for month in range(1, months)))
    first, batches = (
        await place.rows(
            "SELECT date_trunc('month', min(recorded_at), 'UTC'), max(batch_id) FROM statesvc.event"
        )
    )[0]
    (seeded,) = (await place.rows("SELECT min(recorded_at) FROM statesvc.event"))[0]
    copies = max(1, events // _SEED_EVENTS - 1)
    await place.execute(
        f"SELECT setval('statesvc.batch_id_seq', {(copies + 1) * batches})".encode()
    )
    statements = [await _copying(place, name) for name in _TABLES]
    left = _copies(first, seeded, months=months - 1, copies=copies, batches=batches)
    await asyncio.gather(*(_write(bench, place, statements, left) for _ in range(_WRITERS)))
    bench.say(f"copied {copies} times in {time.perf_counter() - began:.0f} s")
    async with bench.service(place) as service:
        await service.start("sealer")
        await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
    bench.say(f"sealed after {time.perf_counter() - began:.0f} s")
    await place.execute("VACUUM ANALYZE")
    await place.execute(
        *(f"ALTER SYSTEM RESET {name}".encode() for name in _HASTE), "SELECT pg_reload_conf()"
    )
    await place.execute("CHECKPOINT")
    # what was written without fsync goes to the disk before anything is measured
    os.sync()
    bench.say(f"analysed after {time.perf_counter() - began:.0f} s")
    held = await place.value("SELECT count(*) FROM statesvc.event")
    return YearsLog(
        place=place, events=held, months=months, copies=copies, seconds=time.perf_counter() - began
    )


def _copies(
    first: datetime, seeded: datetime, *, months: int, copies: int, batches: int
) -> Iterator[dict[str, Any]]:
    """Yield the copies, the oldest first; those of a month are spread over it.

    `first`: of the month that has the seed.
    """
    for copy in range(copies):
        back, place = months - copy * months // copies, (copy * months / copies) % 1
        month = first.year * 12 + first.month - 1 - back
        at = first.replace(year=month // 12, month=month % 12 + 1) + place * _SPREAD
        yield {
            "copy": copy + 1,
            "batches": batches,
            "day": f"d1-{at:%y%m%d}-",
            "shift": at - seeded,
        }


async def _copying(place: Place, table: str) -> str:
    columns = await place.rows(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute"
        f" WHERE attrelid = 'seed.{table}'::regclass AND attnum > 0 ORDER BY attnum"
    )
    values = [
        _OF_COPY.get(name, f"{name} + %(shift)s" if kind.startswith("timestamp") else name)
        for name, kind in columns
    ]
    names = ", ".join(name for name, _ in columns)
    return f"INSERT INTO statesvc.{table} ({names}) SELECT {', '.join(values)} FROM seed.{table}"


async def _write(
    bench: Bench, place: Place, statements: list[str], left: Iterator[dict[str, Any]]
) -> None:
    async with await AsyncConnection.connect(place.superuser, autocommit=True) as connection:
        for copy in left:
            async with connection.transaction():
                for statement in statements:
                    await connection.execute(statement.encode(), copy)
            if copy["copy"] % 250 == 0:
                bench.say(f"{copy['copy'] * _SEED_EVENTS:,} events copied")


def targets(log: YearsLog, count: int, *, turn: int) -> list[str]:
    """Return tracking numbers of shipments from all over the log, others at each turn."""
    step = max(1, log.copies // count)
    return [
        f"1ZY{copy:06d}{(copy + turn) * 7919 % SEED_SHIPMENTS:09d}"
        for copy in islice(range(1, log.copies + 1, step), count)
    ]
