"""Size of a message of one scan on the disk, by table, index and column: docs/storage.md
counts with these figures.

All roles run; a subscriber takes every change. Measured before anything leaves, and before a vacuum
makes room for what comes next.
"""

from functools import partial
from typing import Any, Final

from tests.acceptance.processes import until_false
from tests.bench.bench import Bench
from tests.bench.drain import until_empty
from tests.bench.inbox import HOLD, HOLD_AGAIN, put_all
from tests.bench.report import Row
from tests.bench.server import Place
from tests.bench.subscriber import subscriber
from tests.bench.traffic import alerts
from tests.bench.whole import whole_service

_BYTES_MAX: Final = 3_800
_UNFINISHED: Final = (
    "SELECT EXISTS (SELECT FROM statesvc.unsealed) OR EXISTS (SELECT FROM statesvc.outbox)"
)
_PASSING: Final = ("receipt", "inbox", "outbox")
"""They hold hours of messages, or what waits, and stay as large as they are."""
_SIZES: Final = """
SELECT coalesce(p.relname, c.relname)::text, sum(pg_table_size(c.oid))::bigint, sum(pg_indexes_size(c.oid))::bigint
FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class p ON p.oid = i.inhparent
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind = 'r' AND c.reltuples <> 0
GROUP BY 1 HAVING sum(pg_total_relation_size(c.oid)) > {least} ORDER BY sum(pg_total_relation_size(c.oid)) DESC
"""
_INDEXES: Final = """
SELECT t.relname::text, i.relname::text, pg_relation_size(i.oid)
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
WHERE t.relnamespace = 'statesvc'::regnamespace AND i.relkind = 'i' AND pg_relation_size(i.oid) > {least}
"""
_COLUMNS: Final = """
SELECT a.attname::text FROM pg_attribute a
WHERE a.attrelid = 'statesvc.{table}'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


async def measure(bench: Bench) -> list[Row]:
    messages = bench.scale.footprint_messages
    async with bench.server.database() as place, subscriber() as url:
        await place.execute(HOLD)
        async with whole_service(bench, place, STATESVC_SUBSCRIBER_ALLOW="127.0.0.0/8") as service:
            await service.post("/v1/subscriptions", {"url": url})
            await place.execute(HOLD_AGAIN, "CHECKPOINT")
            before = await place.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
            await put_all(place, partial(alerts, messages)())
            await until_empty(place)
            await until_false(lambda: place.value(_UNFINISHED))
            wal = await place.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint") - before
        await place.execute("ANALYZE")
        return [
            *await _sizes(place, messages),
            Row(
                "write-ahead log of a message, from webhook to notified",
                f"{wal / messages:,.0f} bytes",
            ),
        ]


async def _sizes(place: Place, messages: int) -> list[Row]:
    least = 2 * messages
    sizes = await place.rows(_SIZES.format(least=least))
    indexes = await place.rows(_INDEXES.format(least=least))
    total = sum(table + index for name, table, index in sizes if name not in _PASSING) / messages
    rows = [
        Row(
            f"disk of a message, of {messages:,}",
            f"{total:,.0f} bytes",
            f"<= {_BYTES_MAX:,} bytes",
            total <= _BYTES_MAX,
            figure=total,
        )
    ]
    for name, table, index in sizes:
        note = " (passing)" if name in _PASSING else ""
        rows.append(
            Row(
                f"... {name}{note}",
                f"{(table + index) / messages:,.0f} bytes: table {table / messages:,.0f}, indexes"
                f" {index / messages:,.0f}",
            )
        )
        rows += [
            Row(f"... ... {index_name}", f"{size / messages:,.0f} bytes")
            for of, index_name, size in indexes
            if of == name or of.rpartition("_")[0] == name
        ]
        rows.append(Row(f"... ... a row of {name}", await _columns(place, name)))
    return rows


async def _columns(place: Place, table: str) -> str:
    names: list[Any] = [name for (name,) in await place.rows(_COLUMNS.format(table=table))]
    averages = ", ".join(f"avg(coalesce(pg_column_size({name}), 0))" for name in names)
    (count, row, *sizes), *_ = await place.rows(
        f"SELECT count(*), avg(pg_column_size(t.*)), {averages} FROM statesvc.{table} t"
    )
    columns = ", ".join(
        f"{name} {size:.0f}" for name, size in zip(names, sizes, strict=True) if size
    )
    return f"{count:,} rows of {row:.0f} bytes: {columns}"
