"""One trace from a carrier's webhook to the subscriber, as a collector hears it; and nothing personal in what it hears."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from statesvc.telemetry.names import METRICS
from tests.acceptance.processes import Service, free_port, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert

NUMBER = "1Z5338FF0107231059"
SIGNER = "Quentin Maurer-Lindholm"


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
            role = next(one.value.string_value for one in resource.resource.attributes if one.key == "service.name")
            self.spans += [(role, span) for scope in resource.scope_spans for span in scope.spans]
        return self._taken(body)

    async def measured(self, request: web.Request) -> web.Response:
        body = _unpacked(request, await request.read())
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            self.metrics |= {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
        return self._taken(body)

    async def subscriber(self, request: web.Request) -> web.Response:
        self.notified.append(request.headers.get("traceparent"))
        return web.Response()

    async def waits(self) -> bool:
        heard = {span.name for _, span in self.spans}
        awaited = {"statesvc.ingest", "statesvc.append", "statesvc.process", "statesvc.deliver"}
        return not self.notified or not awaited <= heard or len(self.metrics) < 10

    def _taken(self, body: bytes) -> web.Response:
        self.bodies.append(body)
        return web.Response(body=b"", content_type="application/x-protobuf")

    def named(self, name: str) -> Iterator[tuple[str, Any]]:
        return ((role, span) for role, span in self.spans if span.name == name)


def _unpacked(request: web.Request, body: bytes) -> bytes:
    # aiohttp may have unpacked it already
    return gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" and body[:2] == b"\x1f\x8b" else body


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


async def test_one_trace_leads_from_the_webhook_to_the_subscriber(service_maker: ServiceMaker, tmp_path: Path) -> None:
    async with collecting() as collector:
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_TRACES_SAMPLER": "always_on",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
        }
        async with await service_maker(tmp_path, settings) as service:
            await service.start("api", "worker", "notifier")
            await _push(service, collector)
            async with asyncio.timeout(30):
                await until_false(collector.waits)
        ((ingest_role, ingest),) = collector.named("statesvc.ingest")
        ((process_role, process),) = collector.named("statesvc.process")
        ((deliver_role, deliver),) = collector.named("statesvc.deliver")
        assert (ingest_role, process_role, deliver_role) == ("api", "worker", "notifier")
        assert ingest.trace_id == process.trace_id == deliver.trace_id
        assert (process.parent_span_id, deliver.parent_span_id) == (ingest.span_id, process.span_id)
        (appended,) = [span for _, span in collector.named("statesvc.append") if span.links]
        assert [link.span_id for link in appended.links] == [process.span_id]
        assert [heard and heard[:-2] for heard in collector.notified] == [f"00-{deliver.trace_id.hex()}-{deliver.span_id.hex()}-"]
        assert collector.metrics <= {metric.name for metric in METRICS}, "names that the table does not have"
        heard = b"".join(collector.bodies)
        assert not [text for text in (NUMBER, SIGNER, *SIGNER.split()) if text.encode() in heard]


async def _push(service: Service, collector: Collector) -> None:
    subscription = orjson.dumps({"url": f"{collector.url}/notify"})
    status, _ = await service.post("/v1/subscriptions", subscription, **{"Content-Type": "application/json"})
    assert status == 201
    message = ups_alert(NUMBER, "D/KB", day=1, minute=1, signer=SIGNER)
    # what a carrier says of its own trace is not believed
    foreign = f"00-{'ab' * 16}-{'cd' * 8}-01"
    status, _ = await service.post("/v1/webhooks/ups", message.body, traceparent=foreign)
    assert status == 200
