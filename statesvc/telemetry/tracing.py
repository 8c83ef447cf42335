"""Spans for each stage of a message's way. Silent, at no cost, unless an exporter is configured.

A span never holds an exception's text or traceback, since those may quote a carrier's payload: only the type of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import NoOpTracer, Status, StatusCode, Tracer

from statesvc.telemetry.names import Stage

CONSOLE: Final = "console"
"""In place of an endpoint: spans are printed."""
OTLP_MODULE: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class TracingUnavailableError(RuntimeError):
    """Spans shall go out by OTLP, but its exporter is not installed: `pip install opentelemetry-exporter-otlp-proto-http`."""


def build_provider(*, role: str, endpoint: str | None, sample_ratio: float = 1.0) -> TracerProvider | None:
    """The provider of a process, or None where nothing is exported.

    `endpoint`: URL of a collector, or `console`. `sample_ratio`: share of traces that are sampled, 0..1.
    """
    if endpoint is None:
        return None
    spans: SpanExporter = ConsoleSpanExporter() if endpoint == CONSOLE else _otlp(endpoint)
    resource = Resource({"service.namespace": "statesvc", "service.name": role})
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(sample_ratio)), resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(spans))
    return provider


@contextmanager
def span(tracer: Tracer, stage: Stage, attributes: Mapping[str, str | int]) -> Iterator[None]:
    """One stage as a span; an exception passes through and leaves its type behind."""
    if isinstance(tracer, NoOpTracer):
        yield
        return
    with tracer.start_as_current_span(
        f"statesvc.{stage.value}", attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_attribute("error.type", type(error).__qualname__)
            current.set_status(Status(StatusCode.ERROR))
            raise


def _otlp(endpoint: str) -> SpanExporter:
    try:
        module = import_module(OTLP_MODULE)
    except ImportError as error:
        raise TracingUnavailableError(TracingUnavailableError.__doc__) from error
    exporter = module.OTLPSpanExporter(endpoint=endpoint)
    if not isinstance(exporter, SpanExporter):
        raise TracingUnavailableError(f"{OTLP_MODULE} has no usable exporter")
    return exporter
