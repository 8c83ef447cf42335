"""An OTLP collector and a subscriber in one: what a service exports, and what it sends, as
the other side hears it.
"""

import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.world.ports import free_port


class Collector:
    """Takes OTLP over HTTP, and webhooks as a subscriber does."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []
        self.metrics: set[str] = set()
        self.bodies: list[bytes] = []
        self.notified: list[str | None] = []
        self.url = ""

    async def traces(self, request: web.Request) -> web.Response:
        body = _unpacked(request, await request.read())
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            role = next(
                one.value.string_value
                for one in resource.resource.attributes
                if one.key == "service.name"
            )
            self.spans += [(role, span) for scope in resource.scope_spans for span in scope.spans]
        return self._taken(body)

    async def measured(self, request: web.Request) -> web.Response:
        body = _unpacked(request, await request.read())
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            self.metrics |= {
                metric.name for scope in resource.scope_metrics for metric in scope.metrics
            }
        return self._taken(body)

    async def subscriber(self, request: web.Request) -> web.Response:
        self.notified.append(request.headers.get("traceparent"))
        return web.Response()

    def _taken(self, body: bytes) -> web.Response:
        self.bodies.append(body)
        return web.Response(body=b"", content_type="application/x-protobuf")

    def named(self, name: str) -> Iterator[tuple[str, Any]]:
        return ((role, span) for role, span in self.spans if span.name == name)


def _unpacked(request: web.Request, body: bytes) -> bytes:
    # aiohttp may have unpacked it already
    return (
        gzip.decompress(body)
        if request.headers.get("Content-Encoding") == "gzip" and body[:2] == b"\x1f\x8b"
        else body
    )


def settings_for(collector: Collector) -> dict[str, str]:
    """Return settings by which every webhook is traced, and everything goes out soon."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_TRACES_SAMPLER": "always_on",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
    }


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    application = web.Application(client_max_size=1 << 24)
    application.router.add_post("/v1/traces", collector.traces)
    application.router.add_post("/v1/metrics", collector.measured)
    application.router.add_post("/notify", collector.subscriber)
    runner = web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    collector.url = f"http://127.0.0.1:{port}"
    try:
        yield collector
    finally:
        await runner.cleanup()
