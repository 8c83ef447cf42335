"""Duration of the report of promises over a million shipments; and, for comparison, over a million
events, of 200,000 shipments.
"""

import time
from datetime import date
from pathlib import Path
from statistics import median
from typing import Final

from psycopg import AsyncConnection

from statesvc.addons.expectations.promise_report import (
    DIMENSIONS,
    PromiseFilter,
    late_parcels,
    promise_groups,
)
from tests.bench.bench import Bench
from tests.bench.processor import server_cpu_seconds
from tests.bench.report import Row, milliseconds

EVENTS_OF_A_SHIPMENT: Final = 5
BAR_SECONDS: Final = 2.0
_STATE: Final = (
    '{"format":5,"status":"in_transit","events":[' + ",".join(['[1,1,"x","",""]'] * 28) + "]}"
)
"""State of the usual length."""


def shipments(count: int, *, one_under_way_in: int) -> str:
    """Fill the table: so many shipments of four carriers, promised in three days; the others were
    delivered within five.
    """
    return f"""
INSERT INTO statesvc.shipment (shipment_id, version, recorded_at, first_recorded_at, last_event_at, status_since, delivered_at, attempts,
    terminal, carrier_id, number, tracking_number, discriminator, status, flags, promised_until, lane, service, due_at, state)
SELECT gen_random_uuid(), {EVENTS_OF_A_SHIPMENT}, at, at, at, at, delivered, 0, delivered IS NOT NULL,
    (ARRAY['ups', 'fedex', 'gls', 'dpd'])[1 + n % 4], '1ZX' || n, '1ZX' || n, '',
    CASE WHEN delivered IS NULL THEN 'in_transit' ELSE 'delivered' END, '{{}}', at + interval '3 days',
    (ARRAY['US-US', 'US-CA', 'DE-FR', 'GB-US', NULL])[1 + n % 5],
    (ARRAY['Ground', 'Express', 'Next Day Air', 'Economy', 'Two Day', 'Freight', NULL])[1 + n % 7],
    CASE WHEN delivered IS NULL THEN at + interval '90 days' END,
    convert_to('{_STATE}', 'UTF8')
FROM (SELECT n, now() - n % 86400 * interval '80 seconds' AS at FROM generate_series(1, {count}) n) x
CROSS JOIN LATERAL (SELECT CASE WHEN n % {one_under_way_in} > 0 THEN at + n % 120 * interval '1 hour' END AS delivered) y
"""


async def measure(bench: Bench) -> list[Row]:
    rows = []
    for count, bar in ((200_000, None), (1_000_000, BAR_SECONDS)):
        async with bench.server.database() as place:
            await place.execute(
                shipments(count, one_under_way_in=20),
                "VACUUM ANALYZE statesvc.shipment",
                "CHECKPOINT",
            )
            data = Path(await place.value("SHOW data_directory"))
            report: list[float] = []
            late: list[float] = []
            cpu: list[float] = []
            async with await AsyncConnection.connect(place.service, autocommit=True) as connection:
                wanted = PromiseFilter(since=date(2000, 1, 1))
                for _ in range(bench.scale.runs):
                    began, used = time.perf_counter(), server_cpu_seconds(data)
                    await promise_groups(connection, wanted, DIMENSIONS)
                    report.append(time.perf_counter() - began)
                    cpu.append(server_cpu_seconds(data) - used)
                    began = time.perf_counter()
                    await late_parcels(connection, wanted, limit=200)
                    late.append(time.perf_counter() - began)
        what = f"promises, {count:,} shipments of {EVENTS_OF_A_SHIPMENT} events"
        met = None if bar is None else median(report) <= bar
        rows.append(
            Row(
                f"{what}: report",
                milliseconds(report),
                "" if bar is None else f"<= {bar:.0f} s",
                met,
            )
        )
        rows.append(Row("... processor of the server", milliseconds(cpu)))
        rows.append(Row("... a page of late parcels", milliseconds(late)))
    return rows
