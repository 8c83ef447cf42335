"""Volume that a message of one scan writes and an event takes on the disk, once the log has
millions: index pages no longer repeat.

A page that changes for the first time after a checkpoint goes whole into the write-ahead log. So it
is measured after one, over the messages of a checkpoint interval at 8 million a day.
"""

from functools import partial
from pathlib import Path
from typing import Final

from tests.acceptance.processes import until_false
from tests.bench.bench import Bench
from tests.bench.drain import cpu_seconds, until_empty
from tests.bench.inbox import HOLD_AGAIN, put_all
from tests.bench.processor import server_cpu_seconds
from tests.bench.report import Row
from tests.bench.server import Place
from tests.bench.traffic import alerts
from tests.bench.years_log import fill, seed

_MONTHS: Final = 13
_WAL_BYTES_MAX: Final = 8_000
_DISK_BYTES_MAX: Final = 1_200
_WRITTEN: Final = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
_EVENTS: Final = "SELECT count(*) FROM statesvc.event"
TABLE_SIZES: Final = """
SELECT coalesce(p.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint
FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class p ON p.oid = i.inhparent
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind = 'r'
GROUP BY 1 ORDER BY 2 DESC
"""
"""Bytes by table, partitions and indexes with theirs; the largest first."""
_OF_EVENTS: Final = (
    "event",
    "transition",
    "event_key",
    "shipment",
    "stream",
    "fanout",
    "batch",
    "sealed_batch",
    "subtree",
)
"""The tables that the fill writes: what stays of an event.

Bodies, verdicts and what was sent leave by days and months.
"""


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    template = await bench.server.filled("bench_years_seed", lambda place: seed(bench, place))
    async with bench.server.database(template) as place:
        log = await fill(bench, place, months=_MONTHS, events=scale.volume_events)
        sizes = {
            name: size / log.events
            for name, size in await place.rows(TABLE_SIZES)
            if name in _OF_EVENTS
        }
        return [*await _written(bench, place, log.events), *_disk(sizes, log.events)]


async def _written(bench: Bench, place: Place, events: int) -> list[Row]:
    messages = bench.scale.volume_messages
    data = Path(await place.value("SHOW data_directory"))
    async with bench.service(place) as service:
        worker, sealer = await service.start("worker", "sealer")
        await place.execute(HOLD_AGAIN, "CHECKPOINT")
        known, start = await place.value(_EVENTS), await place.value(_WRITTEN)
        await put_all(place, partial(alerts, messages, series=25)())
        stored = await place.value(_WRITTEN)
        before = (
            cpu_seconds(worker.process.pid),
            cpu_seconds(sealer.process.pid),
            server_cpu_seconds(data),
        )
        seconds = await until_empty(place)
        await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
        after = (
            cpu_seconds(worker.process.pid),
            cpu_seconds(sealer.process.pid),
            server_cpu_seconds(data),
        )
        applied, end = await place.value(_EVENTS) - known, await place.value(_WRITTEN)
    if applied != messages:
        raise RuntimeError(f"{messages - applied} of {messages} messages were not applied")
    by_worker, by_sealer, by_server = (
        (now - then) * 1e6 / messages for now, then in zip(after, before, strict=True)
    )
    wal = (end - start) / messages
    return [
        Row(
            f"write-ahead log of a message of one scan, {messages:,} in a checkpoint interval,"
            f" after {events:,} events",
            f"{wal:,.0f} bytes: {(stored - start) / messages:,.0f} by its webhook,"
            f" {(end - stored) / messages:,.0f} by worker and sealer",
            f"<= {_WAL_BYTES_MAX:,} bytes",
            wal <= _WAL_BYTES_MAX,
            figure=wal,
        ),
        Row(
            "... processor of an event",
            f"{by_worker + by_server + by_sealer:.0f} us: worker {by_worker:.0f}, server"
            f" {by_server:.0f}, sealer {by_sealer:.0f}",
        ),
        Row("... with one worker and the sealer", f"{messages / seconds:,.0f} messages/s"),
    ]


def _disk(sizes: dict[str, float], events: int) -> list[Row]:
    total = sum(sizes.values())
    parts = ", ".join(
        f"{name} {size:,.0f}" for name, size in sorted(sizes.items(), key=lambda each: -each[1])
    )
    return [
        Row(
            f"disk of an event, of {events:,}, indexes included; four alerts a shipment",
            f"{total:,.0f} bytes: {parts}",
            f"<= {_DISK_BYTES_MAX:,} bytes",
            total <= _DISK_BYTES_MAX,
            figure=total,
        )
    ]
