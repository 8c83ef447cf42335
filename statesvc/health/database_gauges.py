"""The gauges of the database that a scrape shows: read at once, at most every few seconds, by each
process that is scraped.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from statesvc.database.pool import Connections
from statesvc.health.database_sample import Sample, SubscriptionGauges, read_sample
from statesvc.health.reconciler import PromiseStatus
from statesvc.health.running_processes import count_died, count_silent
from statesvc.telemetry import gauges
from statesvc.telemetry.metric import Metric
from statesvc.telemetry.metrics import Telemetry, Values
from statesvc.telemetry.sampled import Sampled

SAMPLE_SECONDS: Final = 10.0
READ_SECONDS: Final = 5.0


class DatabaseGauges:
    """The last reading. `volumes`: folders of the disks that this process sees, by content."""

    def __init__(
        self,
        pool: Connections,
        *,
        volumes: Mapping[str, Path],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._volumes = volumes
        self._sampled = Sampled(
            pool,
            read_sample,
            name="database gauges",
            every_seconds=SAMPLE_SECONDS,
            read_seconds=READ_SECONDS,
            now=now,
        )

    def report_to(self, telemetry: Telemetry) -> None:
        def one(metric: Metric, value: Callable[[Sample], float | None]) -> None:
            many(metric, lambda sample: [] if (found := value(sample)) is None else [(found, {})])

        def many(
            metric: Metric, values: Callable[[Sample], Iterable[tuple[float, Values]]]
        ) -> None:
            telemetry.observe(
                metric, lambda: [] if self._sampled.last is None else values(self._sampled.last)
            )

        def subscriptions(metric: Metric, value: Callable[[SubscriptionGauges], float]) -> None:
            many(
                metric,
                lambda sample: [
                    (value(each), {"subscription": each.subscription_id})
                    for each in sample.subscriptions
                ],
            )

        def promises(metric: Metric, value: Callable[[PromiseStatus], float | None]) -> None:
            many(
                metric,
                lambda s: [
                    (found, {"promise": each.promise})
                    for each in s.promises
                    if (found := value(each)) is not None
                ],
            )

        one(gauges.OLDEST_UNSEALED, lambda sample: max(0.0, sample.oldest_unsealed_seconds))
        one(gauges.OLDEST_TRANSACTION, lambda sample: sample.oldest_transaction_seconds)
        one(gauges.NOTIFY_QUEUE, lambda sample: sample.notify_queue.share)
        one(gauges.DATABASE_SIZE, lambda sample: sample.size_bytes)
        one(gauges.DATABASE_WAL, lambda sample: sample.wal_bytes)
        one(gauges.PARTITION_HORIZON, lambda sample: sample.partition_horizon_seconds)
        many(
            gauges.DEAD_LETTERS_OPEN,
            lambda sample: [
                (count, {"kind": kind, "cause": cause})
                for kind, cause, count in sample.dead_letters
            ],
        )
        many(
            gauges.INGEST_LAST_PUSH,
            lambda sample: [(at, {"carrier": carrier_id}) for carrier_id, at in sample.last_pushes],
        )
        many(
            gauges.PROCESSES,
            lambda sample: [(count, {"type": role}) for role, count in sample.processes],
        )
        many(
            gauges.PROCESSES_SILENT,
            lambda sample: [
                (count, {"type": role}) for role, count in count_silent(sample.running).items()
            ],
        )
        many(
            gauges.PROCESSES_DIED,
            # 0 for a role that runs and did not die: an alert and a panel need the series
            lambda sample: [
                (count, {"type": role})
                for role, count in (
                    dict.fromkeys((role for role, _ in sample.processes), 0)
                    | count_died(sample.deaths)
                ).items()
            ],
        )
        many(
            gauges.SUBSCRIPTIONS_FAILING,
            lambda sample: [
                (sample.failing[0], {"state": "failing"}),
                (sample.failing[1], {"state": "disabled"}),
            ],
        )
        subscriptions(gauges.OUTBOX_OLDEST_READY, lambda each: each.oldest_ready_seconds)
        subscriptions(gauges.OUTBOX_WAITING, lambda each: each.waiting)
        subscriptions(gauges.LIMITER_LIMIT, lambda each: each.limit)
        subscriptions(gauges.LIMITER_IN_FLIGHT, lambda each: each.in_flight)
        subscriptions(gauges.LIMITER_OPEN, lambda each: each.open)
        promises(gauges.PROMISES_EXPECTED, lambda each: each.expected)
        promises(gauges.PROMISES_WAITING, lambda each: each.waiting)
        promises(gauges.PROMISES_MISSING, lambda each: each.missing)
        promises(gauges.PROMISES_BEHIND, lambda each: each.behind_seconds)
        telemetry.observe(gauges.DISK_FREE, self._disk_free)

    async def sample(self) -> None:
        """Read again, unless that was just done."""
        await self._sampled.sample()

    def _disk_free(self) -> Iterator[tuple[float, Values]]:
        for volume, folder in self._volumes.items():
            try:
                found = os.statvfs(folder)
            except OSError:
                continue
            yield found.f_bavail * found.f_frsize, {"volume": volume}
