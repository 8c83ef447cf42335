"""The metrics of one process.

Built once by the composition root and handed down; nothing here is global, so that two instances
(as in tests) never share a number. Recording costs about 5 microseconds: hot loops add up per batch
and record once.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, Protocol

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import Link, NoOpTracer, Tracer
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest

from projections.lifecycle import Flag
from statesvc.background.periodic import Periodic
from statesvc.telemetry import gauges, names
from statesvc.telemetry.metric import Instrument, Metric, Stage
from statesvc.telemetry.objectives import (
    LAG,
    SEALING,
    ObjectiveCounts,
    ObjectiveHistogram,
    count_acknowledgement,
    count_first_attempt,
)
from statesvc.telemetry.tracing import span

Values = Mapping[str, str]
# Answers (value, attributes) pairs; called on each scrape, must not block.
Reading = Callable[[], Iterable[tuple[float, Values]]]


class PoolStatistics(Protocol):
    def get_stats(self) -> dict[str, int]: ...


class Telemetry:
    """Every instrument of the table in `names`, one attribute each.

    Attribute keys are those of `names.Attribute`.

    `resource` names the process; `tracer` is silent unless one is given; `exporter` sends the
    metrics somewhere as well.
    """

    def __init__(  # noqa: PLR0915 - an instrument each
        self,
        *,
        resource: Resource | None = None,
        tracer: Tracer | None = None,
        exporter: MetricReader | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.tracer: Tracer = tracer if tracer is not None else NoOpTracer()
        self._provider = MeterProvider(
            [
                PrometheusMetricReader(scope_info_enabled=False, registry=self.registry),
                *([] if exporter is None else [exporter]),
            ],
            resource=Resource({}) if resource is None else resource,
            exemplar_filter=AlwaysOffExemplarFilter(),
            shutdown_on_exit=False,
        )
        self._meter = self._provider.get_meter("statesvc")
        self._carriers: set[str] = set()
        self.objectives = ObjectiveCounts()
        self.ingest_ack_duration = self._counting(
            names.INGEST_ACK_DURATION, partial(count_acknowledgement, self.objectives)
        )
        self.ingest_duplicates = self._counter(names.INGEST_DUPLICATES)
        self.ingest_spooled = self._counter(names.INGEST_SPOOLED)
        self.refusals = self._counter(names.REFUSALS)
        self.request_warnings = self._counter(names.REQUEST_WARNINGS)
        self.messages_claimed = self._counter(names.MESSAGES_CLAIMED)
        self.message_attempts = self._counter(names.MESSAGE_ATTEMPTS)
        self.messages_settled = self._counter(names.MESSAGES_SETTLED)
        self.messages_rescued = self._counter(names.MESSAGES_RESCUED)
        self.messages_retried = self._counter(names.MESSAGES_RETRIED)
        self.messages_postponed = self._counter(names.MESSAGES_POSTPONED)
        self.messages_fallback = self._counter(names.MESSAGES_FALLBACK)
        self.messages_buried = self._counter(names.MESSAGES_BURIED)
        self.events = self._counter(names.EVENTS)
        self.event_times = self._counter(names.EVENT_TIMES)
        self.normalize_failures = self._counter(names.NORMALIZE_FAILURES)
        self.stage_duration = self._histogram(names.STAGE_DURATION)
        self.pickup_lag = self._histogram(names.PICKUP_LAG)
        self.applied_lag = self._counting(
            names.APPLIED_LAG, lambda seconds, _: self.objectives.timed(LAG, seconds)
        )
        self.events_unmapped = self._counter(names.EVENTS_UNMAPPED)
        self.transitions = self._counter(names.TRANSITIONS)
        self.moves_contradicted = self._counter(names.MOVES_CONTRADICTED)
        self.notifications_written = self._counter(names.NOTIFICATIONS_WRITTEN)
        self.notifications_coalesced = self._counter(names.NOTIFICATIONS_COALESCED)
        self.notification_attempts = self._counter(names.NOTIFICATION_ATTEMPTS)
        self.first_attempt_lag = self._counting(
            names.FIRST_ATTEMPT_LAG, partial(count_first_attempt, self.objectives)
        )
        self.delivered_lag = self._histogram(names.DELIVERED_LAG)
        self.delivery_duration = self._histogram(names.DELIVERY_DURATION)
        self.notices = self._counter(names.NOTICES)
        self.observations = self._counter(names.OBSERVATIONS)
        self.due_times_repaired = self._counter(names.DUE_TIMES_REPAIRED)
        self.claims = self._counter(names.CLAIMS)
        self.archived_bodies = self._counter(names.ARCHIVED_BODIES)
        self.archive_failures = self._counter(names.ARCHIVE_FAILURES)
        self.sealed_entries = self._counter(names.SEALED_ENTRIES)
        self.sealing_lag = self._counting(
            names.SEALING_LAG, lambda seconds, _: self.objectives.timed(SEALING, seconds)
        )
        self.checkpoint_stamps = self._counter(names.CHECKPOINT_STAMPS)
        self.checkpoint_cosignatures = self._counter(names.CHECKPOINT_COSIGNATURES)
        self.checkpoint_publications = self._counter(names.CHECKPOINT_PUBLICATIONS)
        self.api_problems = self._counter(names.API_PROBLEMS)
        self.loop_lag = self._histogram(names.LOOP_LAG)
        self.stream_transitions = self._counter(names.STREAM_TRANSITIONS)
        self.stream_ends = self._counter(names.STREAM_ENDS)

    def begin_carrier(self, carrier_id: str) -> None:
        """Start the carrier's trouble counters at 0: Prometheus sees no increase in a new
        series.
        """
        if carrier_id in self._carriers:
            return
        self._carriers.add(carrier_id)
        for counter in (
            self.messages_rescued,
            self.messages_retried,
            self.messages_postponed,
            self.messages_fallback,
            self.events_unmapped,
        ):
            counter.add(0, {"carrier": carrier_id})
        for flag in Flag:
            self.moves_contradicted.add(0, {"carrier": carrier_id, "flag": flag.value})
        self.message_attempts.add(0, {"carrier": carrier_id, "attempt": "2"})

    @contextmanager
    def stage(
        self, stage: Stage, *, links: Sequence[Link] = (), **attributes: str | int
    ) -> Iterator[None]:
        """Time one stage of a batch and open its span.

        `links` (to the spans of its messages) and `attributes` go to the span alone.
        """
        started = time.perf_counter()
        with span(self.tracer, stage, attributes, links=links):
            try:
                yield
            finally:
                self.stage_duration.record(time.perf_counter() - started, {"stage": stage.value})

    def observe(self, metric: Metric, reading: Reading) -> None:
        """Read an observed metric by `reading` on each scrape."""

        def callback(_options: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, dict(attributes)) for value, attributes in reading()]

        match metric.instrument:
            case Instrument.OBSERVED_GAUGE:
                self._meter.create_observable_gauge(
                    metric.name, [callback], metric.unit, metric.description
                )
            case Instrument.OBSERVED_COUNTER:
                self._meter.create_observable_counter(
                    metric.name, [callback], metric.unit, metric.description
                )
            case Instrument.COUNTER | Instrument.HISTOGRAM:
                raise ValueError(f"{metric.name} is recorded, not observed")

    def observe_pools(self, pools: Mapping[str, PoolStatistics]) -> None:
        def connections() -> Iterator[tuple[float, Values]]:
            for pool, statistics in _statistics(pools):
                available = statistics.get("pool_available", 0)
                yield available, {"pool": pool, "state": "idle"}
                yield statistics.get("pool_size", 0) - available, {"pool": pool, "state": "used"}
                yield statistics.get("pool_max", 0), {"pool": pool, "state": "max"}

        def waiting() -> Iterator[tuple[float, Values]]:
            for pool, statistics in _statistics(pools):
                yield statistics.get("requests_waiting", 0), {"pool": pool}

        def errors() -> Iterator[tuple[float, Values]]:
            for pool, statistics in _statistics(pools):
                yield statistics.get("requests_errors", 0), {"pool": pool, "type": "requests"}
                lost = statistics.get("connections_errors", 0) + statistics.get(
                    "connections_lost", 0
                )
                yield lost, {"pool": pool, "type": "connections"}

        self.observe(gauges.POOL_CONNECTIONS, connections)
        self.observe(gauges.POOL_WAITING, waiting)
        self.observe(gauges.POOL_ERRORS, errors)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)

    def close(self) -> None:
        """Detach the readers; idempotent."""
        self._provider.shutdown()

    def _counter(self, metric: Metric) -> Counter:
        made = self._meter.create_counter(metric.name, metric.unit, metric.description)
        if not metric.attributes:
            made.add(0)
        return made

    def _counting(
        self, metric: Metric, count: Callable[[float, Values], None]
    ) -> ObjectiveHistogram:
        return ObjectiveHistogram(metric.name, self._histogram(metric), count)

    def _histogram(self, metric: Metric) -> Histogram:
        return self._meter.create_histogram(
            metric.name,
            metric.unit,
            metric.description,
            explicit_bucket_boundaries_advisory=list(metric.buckets),
        )


def _statistics(pools: Mapping[str, PoolStatistics]) -> Iterator[tuple[str, dict[str, int]]]:
    for pool, source in pools.items():
        yield pool, source.get_stats()


_LAG_SECONDS: Final = 2.0


def loop_lag(telemetry: Telemetry) -> Periodic:
    """Return a job that notes by how much a timer of the event loop is missed."""
    # the first measurement has nothing to be late for
    due = float("inf")

    async def work() -> None:
        nonlocal due
        now = time.monotonic()
        telemetry.loop_lag.record(max(0.0, now - due))
        due = now + _LAG_SECONDS

    return Periodic("loop lag", work, every_seconds=_LAG_SECONDS, retry_seconds=_LAG_SECONDS)
